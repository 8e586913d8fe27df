/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confine.h - drops the rights of a helper program that needs files and the network
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * uprof_confine_leave_root: changes from root to the user `virt-uprof`, or to `nobody`, and drops
 * all capabilities; another user keeps his rights, without capabilities
 *
 * Call it in a process with one thread.
 *
 * Returns: false with an error if the process could get rights back
 */
bool uprof_confine_leave_root(GError **error);

/**
 * uprof_confine_limit_helper: limits the resources of this process
 * @memory_max: bytes of its address space; a build with address sanitizer has no such limit
 * @cpu_s: seconds of processor time
 *
 * It writes neither files nor a core dump afterwards.
 *
 * Returns: false with errno
 */
bool uprof_confine_limit_helper(uint64_t memory_max, uint64_t cpu_s);
