/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * loop.h - a thread that takes samples, each when it is due
 *
 * All guests that are held vCPU by vCPU share one loop, so that one thread keeps
 * their holds apart; a guest that is held as a whole has a loop of its own,
 * since a slow daemon must delay nobody else.
 */
#pragma once

#include "uprof/sampler.h"

typedef struct _UprofLoop UprofLoop;

/** uprof_loop_new: starts the thread */
UprofLoop *uprof_loop_new(void);

/**
 * uprof_loop_free: stops all that it samples, waits for the thread's end
 * @loop: (nullable)
 */
void uprof_loop_free(UprofLoop *loop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLoop, uprof_loop_free)

/**
 * uprof_loop_add: from any thread, at any time
 * @sampler: borrowed until it has ended and uprof_loop_sync() has returned, or
 *   the loop is freed
 */
void uprof_loop_add(UprofLoop *loop, UprofSampler *sampler);

/** uprof_loop_sync: waits until the loop uses no sampler that has ended */
void uprof_loop_sync(UprofLoop *loop);
