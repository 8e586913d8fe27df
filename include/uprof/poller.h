/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * poller.h - a thread that polls guests while they are sampled
 *
 * Once a second the thread calls uprof_guest_poll() for facts that change rarely (pauses, jobs,
 * plugged memory and vCPUs), so that no tick has to ask. A poll takes as long as a hypervisor's
 * daemon takes to answer. No sampler waits for a poll, but the functions below may.
 */
#pragma once

#include "uprof/guest.h"

typedef struct _UprofPoller UprofPoller;

/**
 * uprof_poller_new: starts the thread
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofPoller *uprof_poller_new(GError **error);

/** uprof_poller_free: @poller: (nullable): waits for the end of the present poll */
void uprof_poller_free(UprofPoller *poller);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPoller, uprof_poller_free)

/** uprof_poller_add: @guest: borrowed until uprof_poller_remove() */
void uprof_poller_add(UprofPoller *poller, UprofGuest *guest);

/** uprof_poller_remove: @guest: not polled any more on return; may be unknown */
void uprof_poller_remove(UprofPoller *poller, UprofGuest *guest);

/**
 * uprof_poller_park, uprof_poller_unpark:
 *
 * Between the two calls no guest is polled.
 *
 * Returns: false if a poll took longer than a second; then the poller is not parked, and must not
 *   be unparked
 */
bool uprof_poller_park(UprofPoller *poller);
void uprof_poller_unpark(UprofPoller *poller);
