/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * private-run.h - a folder of markers that no other process sees, for tests
 */
#pragma once

#include <stdbool.h>

/**
 * private_run_enter:
 *
 * Gives this process an empty /run of its own if it runs as root, else an empty
 * XDG_RUNTIME_DIR. Call it before the first thread and the first use of the folder.
 *
 * Returns: false if the host does not permit this
 */
bool private_run_enter(void);

/** private_run_leave: removes the files of private_run_enter() */
void private_run_leave(void);
