/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * keeper.h - a thread that looks after guests while they are sampled
 *
 * Once a second it asks what changes rarely (pauses, jobs, plugged memory and
 * vCPUs), so that no tick has to. What it asks may take as long as a daemon
 * takes; no sampler waits for it.
 */
#pragma once

#include "uprof/guest.h"

typedef struct _UprofKeeper UprofKeeper;

/** uprof_keeper_new: starts the thread */
UprofKeeper *uprof_keeper_new(void);

/** uprof_keeper_free: @keeper: (nullable): waits for the look that it may be at */
void uprof_keeper_free(UprofKeeper *keeper);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofKeeper, uprof_keeper_free)

/*
 * Each of those below may wait for the look that the thread is at, and so for as
 * long as a daemon takes to answer.
 */

/** uprof_keeper_add: @guest: borrowed until uprof_keeper_remove() */
void uprof_keeper_add(UprofKeeper *keeper, UprofGuest *guest);

/**
 * uprof_keeper_park, uprof_keeper_unpark: between the two it looks at nothing,
 * unless it is at a look that takes longer than a second
 *
 * Returns: whether it is parked, and must be unparked
 */
bool uprof_keeper_park(UprofKeeper *keeper);
void uprof_keeper_unpark(UprofKeeper *keeper);

/** uprof_keeper_remove: waits for the look that it may be at; @guest need not be known */
void uprof_keeper_remove(UprofKeeper *keeper, UprofGuest *guest);
