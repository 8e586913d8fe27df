/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confine.h - drops the rights of a helper program that needs files and the network
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/**
 * uprof_confine_leave_root: changes from root to the user `virt-uprof`, or to `nobody`, and drops
 * all capabilities; another user keeps his rights, without capabilities
 *
 * Call it in a process with one thread.
 *
 * Returns: false with an error if the process could get rights back
 */
bool uprof_confine_leave_root(GError **error);
