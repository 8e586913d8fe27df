/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * end-watch-priv.h - a thread that ends the process if a run does not end in time
 *
 * Calls of libvirt have no time limit: they wait as long as a daemon or a QEMU hangs. So the main
 * thread may be late, and threads of the run may never end. If the process ends, the guardian
 * resumes its guests.
 */
#pragma once

#include "uprof/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct _UprofEndWatch UprofEndWatch;

/**
 * uprof_end_watch_new: the calling thread must have blocked all signals
 * @signals: borrowed: a signalfd, from which the main thread soon reads each signal
 * @leave: ends the process; called in the thread of the watch. @in_call: the main thread is between
 *   uprof_end_watch_begin_call() and uprof_end_watch_end_call(), and does not come back
 * @data: passed to @leave
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofEndWatch *uprof_end_watch_new(int signals, void (*leave)(bool in_call, void *data), void *data,
                                   GError **error);

/** uprof_end_watch_free: @watch: (nullable) */
void uprof_end_watch_free(UprofEndWatch *watch);

/** uprof_end_watch_set_patience: @ms: how long the main thread may leave a signal unread */
void uprof_end_watch_set_patience(UprofEndWatch *watch, unsigned ms);

/**
 * uprof_end_watch_begin_call: the main thread calls a daemon, which may hang
 * @watch: (nullable)
 * @ms: how long a call may take after a signal, until uprof_end_watch_end_call()
 */
void uprof_end_watch_begin_call(UprofEndWatch *watch, unsigned ms);

/**
 * uprof_end_watch_end_call: does not return if the watch has called its function @leave, which then
 * has all data of the main thread
 * @watch: (nullable)
 */
void uprof_end_watch_end_call(UprofEndWatch *watch);

/**
 * uprof_end_watch_limit: limits the time until the next call of this function
 * @watch: (nullable)
 * @ms: 0: no limit
 */
void uprof_end_watch_limit(UprofEndWatch *watch, unsigned ms);

/**
 * uprof_end_watch_limit_calls: from a time on, a call that takes longer than its patience ends the
 * process, as after a signal
 * @watch: (nullable)
 * @ms: from now
 */
void uprof_end_watch_limit_calls(UprofEndWatch *watch, uint64_t ms);
