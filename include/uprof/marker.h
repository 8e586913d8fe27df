/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker.h - the page that says what is held and outlives who held it
 *
 * One file per domain, named by its UUID, in /run/virt-uprof (for those who
 * are not root in their own runtime directory): locked with flock() while a run
 * lasts, and mapped by the profiler and its guardian. In a hold only one word
 * of the mapping changes: a store, no system call. Files are never deleted:
 * deleting a lock races with whoever opens it next.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UPROF_MARKER_UUID_BYTES = 37,
    UPROF_MARKER_URI_BYTES_MAX = 1024,
    UPROF_MARKER_NAME_BYTES_MAX = 1024,
};

/**
 * UprofHeld: what the profiler says of the guest
 * @UPROF_HELD_ASKED: the stopping call is on its way
 * @UPROF_HELD_YES: it has returned
 * @UPROF_HELD_LEFT: the profiler has given up on it and will not touch it again:
 *   the guardian may let go at once
 */
typedef enum {
    UPROF_HELD_NOT,
    UPROF_HELD_ASKED,
    UPROF_HELD_YES,
    UPROF_HELD_LEFT,
} UprofHeld;

/**
 * UprofMarkerInfo: whose guest it is; set once, before the first hold
 * @uri: libvirt connection; "" for libvirt's default
 * @access: name of the backend
 * @id: libvirt's number of the running domain
 * @qemu_pid, @qemu_start: process and its start time (/proc/PID/stat, field 22), 0: not known
 * @pid, @start: of the profiler
 */
typedef struct {
    char uuid[UPROF_MARKER_UUID_BYTES];
    char uri[UPROF_MARKER_URI_BYTES_MAX];
    char name[UPROF_MARKER_NAME_BYTES_MAX]; /* clean, for messages */
    char access[16];
    int32_t id;
    int32_t qemu_pid;
    uint64_t qemu_start;
    int32_t pid;
    uint64_t start;
} UprofMarkerInfo;

typedef struct _UprofMarker UprofMarker;

/** uprof_marker_folder: Returns: (transfer none): where markers are */
const char *uprof_marker_folder(void);

/**
 * uprof_marker_open:
 * @uuid: of the domain
 * @taken: (out): false with no error set: another run has the lock
 *
 * Makes folder and file where missing; refuses a folder that is a link or
 * somebody else's. A hold that a dead run left is still flagged in what is
 * returned: look with uprof_marker_held().
 *
 * Returns: (transfer full) (nullable): the marker, locked
 */
UprofMarker *uprof_marker_open(const char *uuid, bool *taken, GError **error);

/** uprof_marker_adopt: @fd: of an open marker, now owned. Returns: (nullable): it, mapped */
UprofMarker *uprof_marker_adopt(int fd, GError **error);

/** uprof_marker_close: @marker: (nullable): unlocks unless the guardian has it too */
void uprof_marker_close(UprofMarker *marker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofMarker, uprof_marker_close)

/** uprof_marker_fd: Returns: borrowed descriptor, to be passed to the guardian */
int uprof_marker_fd(const UprofMarker *marker);

/** uprof_marker_set_info: once, while nothing is held */
void uprof_marker_set_info(UprofMarker *marker, const UprofMarkerInfo *info);

/**
 * uprof_marker_get_info:
 * @info: (out): copied, strings terminated whatever the file holds
 *
 * Returns: false if the file holds none, or one of before the host was booted
 */
bool uprof_marker_get_info(const UprofMarker *marker, UprofMarkerInfo *info);

/**
 * uprof_marker_ask: sets %UPROF_HELD_ASKED, which counts from
 * @now_ns: by the monotonic clock; reading it may take longer than all the rest
 */
void uprof_marker_ask(UprofMarker *marker, uint64_t now_ns);

/** uprof_marker_set_held: @marker: (nullable): stores what is so from now on, with the time */
void uprof_marker_set_held(UprofMarker *marker, UprofHeld held);

/**
 * uprof_marker_held:
 * @since_ns: (out) (optional): monotonic time of the hold's first flag
 */
UprofHeld uprof_marker_held(const UprofMarker *marker, uint64_t *since_ns);

/**
 * uprof_marker_set_ran: before a hold
 * @marker: (nullable)
 * @cpu_ns: of CPU time that the guest had had when it was looked at, not 0
 * @at_ns: monotonic time of that look
 *
 * A guest that has run much longer since is not stopped by that hold any more.
 */
void uprof_marker_set_ran(UprofMarker *marker, uint64_t cpu_ns, uint64_t at_ns);

/** uprof_marker_ran: @at_ns: (out). Returns: see uprof_marker_set_ran(); 0: not known */
uint64_t uprof_marker_ran(const UprofMarker *marker, uint64_t *at_ns);

/**
 * uprof_marker_is_flagged:
 *
 * Returns: whether the marker of domain @uuid says that something is held; takes
 *   no lock, so this is a hint
 */
bool uprof_marker_is_flagged(const char *uuid);

/** uprof_marker_list: Returns: (transfer full): UUIDs (char *) of all markers there are */
GPtrArray *uprof_marker_list(void);

/** uprof_marker_process_start: Returns: start time of process @pid as in /proc, 0: gone */
uint64_t uprof_marker_process_start(int pid);

/**
 * uprof_marker_lock_round: the lock of a periodic round, beside the markers
 * @taken: (out): -1 with no error set: another round has it
 *
 * Returns: a descriptor that keeps it until it is closed, also in other processes
 *   that have it; -1 with @error
 */
int uprof_marker_lock_round(bool *taken, GError **error);
