/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * signal-mask.h - work that no signal may interrupt or stop
 *
 * A signal that stops this process during a hold, such as Ctrl-Z, would leave the
 * held vCPU stopped, too. So only threads that block all signals hold vCPUs.
 */
#pragma once

#include <glib.h>
#include <signal.h>
#include <stdbool.h>

/**
 * uprof_signal_mask_block:
 * @before: (out) (optional): the mask up to now, for pthread_sigmask()
 *
 * Blocks all signals in the calling thread. Threads that it starts inherit the mask.
 */
void uprof_signal_mask_block(sigset_t *before);

/**
 * uprof_signal_mask_run:
 * @name: of the thread, at most 15 bytes
 * @work: called in a new thread, in which all signals are blocked; its result is ignored
 * @data: borrowed: for @work
 *
 * Runs @work and waits for the end of its thread. The calling thread blocks all signals
 * meanwhile.
 *
 * Returns: false if no thread can be made; @work was not called then
 */
bool uprof_signal_mask_run(const char *name, GThreadFunc work, gpointer data, GError **error);

/** uprof_signal_end_is_pending: a blocked signal that ends the program has arrived */
bool uprof_signal_end_is_pending(void);
