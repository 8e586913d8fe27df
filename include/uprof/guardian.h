/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guardian.h - the process that lets go what a dead profiler held
 *
 * Forked before any thread or connection. It is told of each guest, opens it
 * by itself (rescue_only) and answers; no whole guest is held before that. It
 * shares the guest's marker with the profiler. When the profiler's end of the
 * socket closes, however that came about, it calls `rescue` for each guest
 * that is flagged; a hold that grows 2 s old means a profiler that was itself
 * stopped: it is killed first. The guardian ignores the terminal and its
 * signals, and waits for a hypervisor daemon that is down.
 */
#pragma once

#include "uprof/guest.h"

typedef struct _UprofGuardian UprofGuardian;

/**
 * UprofGuardianFind: gives the ops table for an access name, in the guardian
 *
 * Returns: (nullable): %NULL if there is none
 */
typedef const UprofGuestOps *(*UprofGuardianFind)(const char *access);

/**
 * uprof_guardian_start:
 * @find: called in the guardian
 *
 * Forks. Call it before the first thread and the first connection.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED
 */
UprofGuardian *uprof_guardian_start(UprofGuardianFind find, GError **error);

/**
 * uprof_guardian_watch:
 * @marker: with its info set; the guardian gets its own descriptor of it
 *
 * Waits until the guardian has opened the guest and found that it may resume it.
 *
 * Returns: false with the guardian's error
 */
bool uprof_guardian_watch(UprofGuardian *guardian, UprofMarker *marker, GError **error);

/**
 * uprof_guardian_forget:
 * @uuid: of a domain that is watched; others are no error
 *
 * Lets it verify that the domain is not held any more, and close its marker:
 * with the profiler's own descriptor closed too, the lock is free.
 *
 * Returns: false with %UPROF_ERROR_LEFT_HELD if it may still be stopped
 */
bool uprof_guardian_forget(UprofGuardian *guardian, const char *uuid, GError **error);

/** uprof_guardian_fd: Returns: readable when the guardian has died; borrowed */
int uprof_guardian_fd(const UprofGuardian *guardian);

/**
 * uprof_guardian_end:
 * @guardian: (nullable): freed
 *
 * Lets it verify that nothing is held any more, and waits for its end.
 *
 * Returns: false with %UPROF_ERROR_LEFT_HELD if a guest may still be stopped
 */
bool uprof_guardian_end(UprofGuardian *guardian, GError **error);

/**
 * uprof_guardian_heal_marker:
 * @marker: locked by the caller
 * @was_held: (out): whether a dead run had left it flagged
 *
 * Returns: false with %UPROF_ERROR_LEFT_HELD if the guest may still be stopped
 */
bool uprof_guardian_heal_marker(UprofGuardianFind find, UprofMarker *marker, bool *was_held,
                                GError **error);

/**
 * UprofGuardianHealed: called for each marker that a dead run had left flagged
 * @name: clean name of the domain
 * @error: (nullable): why it may still be stopped; %NULL: it runs, or was never ours
 */
typedef void (*UprofGuardianHealed)(const char *name, const GError *error, void *data);

/**
 * uprof_guardian_heal:
 * @find: as for uprof_guardian_start()
 * @healed: called for each leftover
 *
 * Looks through all markers that nobody holds locked and lets go what a
 * profiler and a guardian that died together had left stopped. What cannot be
 * verified stays flagged.
 *
 * Returns: false if something may still be stopped
 */
bool uprof_guardian_heal(UprofGuardianFind find, UprofGuardianHealed healed, void *data);
