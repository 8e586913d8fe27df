/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * waits.h - where the tasks of a Linux guest wait, and for how long
 *
 * From time to time all tasks are listed, without a hold. The time since the last walk is counted
 * for each task that does not run: by its state, its process and its stack, in microseconds. The
 * stack of a task is found between two walks. A task that has not run since then waits where it has
 * waited, so a walk of an idle guest is only the list.
 */
#pragma once

#include "uprof/pipeline.h"

typedef struct _UprofWaits UprofWaits;

/** UprofWaitClock: Returns: monotonic nanoseconds, such as uprof_clock_now_ns(): what a step costs
 */
typedef uint64_t UprofWaitClock(void);

/** UprofWaitTick: a moment in which the worker has time for a part of a walk */
typedef struct {
    uint64_t time_ns;  /* monotonic */
    uint32_t n_pauses; /* how often somebody else has stopped the guest: no time of a stop counts */
    uint32_t reset;    /* of the last snapshot */
} UprofWaitTick;

/**
 * uprof_waits_new:
 * @pipeline: borrowed; uprof_pipeline_want_waits() was called. Its profile of waits and its run get
 *   the counts.
 * @guest: borrowed; its memory is read
 */
UprofWaits *uprof_waits_new(UprofPipeline *pipeline, UprofGuest *guest, UprofWaitClock *clock);
void uprof_waits_free(UprofWaits *waits);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWaits, uprof_waits_free)

/** uprof_waits_move: continues with another access to the same guest; see uprof_pipeline_move() */
void uprof_waits_move(UprofWaits *waits, UprofGuest *guest);

/**
 * uprof_waits_step: walks, or finds some stacks, or does nothing if it is too early
 *
 * Call it between two snapshots, as often as there is time. A walk takes up to a second; other
 * steps take some milliseconds. All steps take about a tenth of the time; if the list of tasks is
 * so long that a walk in 3 s takes more, they take up to a third.
 */
void uprof_waits_step(UprofWaits *waits, const UprofWaitTick *tick);

/**
 * uprof_waits_end: finds the stacks that are still missing, and counts all time
 * @time_ns: the time that it may take
 */
void uprof_waits_end(UprofWaits *waits, uint64_t time_ns);

/**
 * uprof_waits_obstacle: Returns: (nullable) (transfer none): why the last walk was not possible;
 * %NULL if it was
 */
const char *uprof_waits_obstacle(const UprofWaits *waits);
