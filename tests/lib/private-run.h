/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * private-run.h - a folder of markers that no other process sees, for tests
 */
#pragma once

#include <stdbool.h>

/**
 * private_run_enter:
 *
 * As root, gives this process an empty /run of its own; else an empty
 * XDG_RUNTIME_DIR. Before the first thread and the first use of the folder.
 *
 * Returns: false if this host does not let it
 */
bool private_run_enter(void);

/** private_run_leave: removes what private_run_enter() has made */
void private_run_leave(void);
