/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guardian.h - the process that resumes guests that a dead profiler left stopped
 *
 * The profiler forks its guardian before its first thread and connection. For each guest,
 * the guardian opens its own connection (rescue_only) and confirms. Only then may the
 * profiler stop the guest as a whole. Both processes share the guest's marker.
 *
 * When the profiler's end of their socket closes for any reason, the guardian calls `rescue` for
 * each guest that is flagged as held. A hold that is older than 2 s means that the profiler itself
 * is stopped: the guardian then kills the profiler first. The guardian ignores the terminal and its
 * signals, and waits for a hypervisor daemon that is down.
 */
#pragma once

#include "uprof/guest.h"

typedef struct _UprofGuardian UprofGuardian;

/**
 * UprofGuardianFind: called in the guardian
 *
 * Returns: (nullable): the backend of that name; %NULL if there is none
 */
typedef const UprofGuestOps *(*UprofGuardianFind)(const char *access);

/**
 * uprof_guardian_start:
 * @find: called in the guardian
 *
 * Forks. Call it before the first thread and the first connection.
 *
 * Returns: (transfer full) (nullable): end it with uprof_guardian_end(); %NULL with
 *   %UPROF_ERROR_FAILED
 */
UprofGuardian *uprof_guardian_start(UprofGuardianFind find, GError **error);

/**
 * uprof_guardian_watch:
 * @marker: with its info set; borrowed: the guardian gets its own descriptor
 *
 * Waits until the guardian has opened the guest and found that it is permitted to resume it.
 *
 * Returns: false with the guardian's error
 */
bool uprof_guardian_watch(UprofGuardian *guardian, UprofMarker *marker, GError **error);

/**
 * uprof_guardian_forget:
 * @uuid: of the domain; nothing happens if it is not watched
 *
 * The guardian makes sure that the domain is not held any more, and closes its descriptor of the
 * marker. The lock of the marker is free after the profiler has closed its own descriptor, too.
 *
 * Returns: false with %UPROF_ERROR_LEFT_HELD if the domain may still be stopped
 */
bool uprof_guardian_forget(UprofGuardian *guardian, const char *uuid, GError **error);

/** uprof_guardian_fd: Returns: borrowed descriptor, readable when the guardian has died */
int uprof_guardian_fd(const UprofGuardian *guardian);

/**
 * uprof_guardian_end:
 * @guardian: (nullable): freed
 *
 * The guardian makes sure that nothing is held any more, and ends.
 *
 * Returns: false with %UPROF_ERROR_LEFT_HELD if a guest may still be stopped
 */
bool uprof_guardian_end(UprofGuardian *guardian, GError **error);

/**
 * uprof_guardian_heal_marker:
 * @find: called in this process
 * @marker: locked by the caller
 * @was_held: (out): a dead run had left the guest flagged as held
 *
 * Resumes one guest. A profiler and a guardian that died together may have left it stopped.
 *
 * Returns: false with %UPROF_ERROR_LEFT_HELD if the guest may still be stopped
 */
bool uprof_guardian_heal_marker(UprofGuardianFind find, UprofMarker *marker, bool *was_held,
                                GError **error);

/**
 * UprofGuardianHealed: called for each marker that a dead run had left flagged
 * @name: of the domain, safe to print; its UUID if the marker cannot be opened
 * @error: (nullable): why the guest may still be stopped; %NULL: the guest runs
 */
typedef void (*UprofGuardianHealed)(const char *name, const GError *error, void *data);

/**
 * uprof_guardian_heal: uprof_guardian_heal_marker() for all markers that are not locked
 * @healed: called for each guest that was flagged
 *
 * A guest stays flagged unless it certainly runs.
 *
 * Returns: false if some guest may still be stopped
 */
bool uprof_guardian_heal(UprofGuardianFind find, UprofGuardianHealed healed, void *data);
