/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * loop.h - a thread that calls samplers, each when its sample is due
 *
 * All guests that are held vCPU by vCPU share one loop, so that their holds do not coincide.
 * A guest that is held as a whole has its own loop, because a slow daemon of its hypervisor
 * must not delay the others.
 */
#pragma once

#include "uprof/sampler.h"

typedef struct _UprofLoop UprofLoop;

/**
 * uprof_loop_new: starts the thread
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofLoop *uprof_loop_new(GError **error);

/**
 * uprof_loop_free:
 * @loop: (nullable)
 *
 * Stops all samplers and waits for the end of the thread.
 */
void uprof_loop_free(UprofLoop *loop);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLoop, uprof_loop_free)

/**
 * uprof_loop_add: from any thread, at any time
 * @sampler: borrowed until the loop is freed, or the sampler has ended and uprof_loop_sync()
 *   has returned
 */
void uprof_loop_add(UprofLoop *loop, UprofSampler *sampler);

/** uprof_loop_sync: waits until the loop has dropped all samplers that have ended */
void uprof_loop_sync(UprofLoop *loop);
