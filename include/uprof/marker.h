/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * marker.h - a shared page that flags a guest as held, and outlives the profiler
 *
 * Each domain has one file, named by its UUID, in /run/virt-uprof (for users other than root in
 * their own runtime directory). It is locked with flock() while a run lasts, and mapped by the
 * profiler and its guardian. A hold changes one word of the mapping, without a system call. The
 * files are never deleted, because deleting a lock file races with processes that open it.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    UPROF_MARKER_UUID_BYTES = 37,
    UPROF_MARKER_URI_BYTES_MAX = 1024,
    UPROF_MARKER_NAME_BYTES_MAX = 1024,
};

/** UprofHeld: the state of the guest, as the profiler reports it */
typedef enum {
    UPROF_HELD_NOT,
    UPROF_HELD_ASKED, /* the call that stops the guest has not returned */
    UPROF_HELD_YES,   /* that call has returned */
    UPROF_HELD_LEFT,  /* the profiler could not resume the guest: the guardian may do so at once */
} UprofHeld;

/** UprofMarkerInfo: the guest of the marker; set once, before the first hold */
typedef struct {
    char uuid[UPROF_MARKER_UUID_BYTES];
    char uri[UPROF_MARKER_URI_BYTES_MAX];   /* libvirt connection; "" for libvirt's default */
    char name[UPROF_MARKER_NAME_BYTES_MAX]; /* of the domain, safe to print */
    char access[16];                        /* name of the backend */
    int32_t id;                             /* libvirt's number of the running domain */
    int32_t qemu_pid;                       /* process that runs the guest; 0: not known */
    uint64_t qemu_start;                    /* its start time: see process-stat.h */
    int32_t pid;                            /* of the profiler */
    uint64_t start;                         /* its start time */
    bool yields;                            /* it gives up the domain if another run waits */
} UprofMarkerInfo;

typedef struct _UprofMarker UprofMarker;

/** uprof_marker_folder: Returns: (transfer none): the folder of all markers */
const char *uprof_marker_folder(void);

/** uprof_marker_make_folder: makes that folder, unless it is there. Returns: false with an error */
bool uprof_marker_make_folder(GError **error);

/**
 * uprof_marker_open:
 * @uuid: of the domain
 * @taken: (out): another run has the lock; then no error is set
 *
 * Makes the folder and the file if necessary, and locks the file. Refuses a folder that is a
 * link or belongs to somebody else. A hold that a dead run has left is still flagged in the
 * result: ask uprof_marker_held().
 *
 * Returns: (transfer full) (nullable)
 */
UprofMarker *uprof_marker_open(const char *uuid, bool *taken, GError **error);

/**
 * uprof_marker_owner: Returns: the process that samples the domain, as far as is known; 0 if it is
 * not
 *
 * Takes no lock, so this is only for messages.
 */
pid_t uprof_marker_owner(const char *uuid);

/** uprof_marker_owner_yields: does that process give up the domain if another run waits for it? */
bool uprof_marker_owner_yields(const char *uuid);

/**
 * uprof_marker_await: says that this run waits for the domain
 *
 * Returns: a descriptor, owned by the caller: the wait ends when it is closed; -1 on failure
 */
int uprof_marker_await(const char *uuid);

/** uprof_marker_is_awaited: does a run wait for the domain, by uprof_marker_await()? */
bool uprof_marker_is_awaited(const char *uuid);

/** uprof_marker_close: @marker: (nullable): unlocked unless the guardian has it, too */
void uprof_marker_close(UprofMarker *marker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofMarker, uprof_marker_close)

/** uprof_marker_set_info: call it once, while nothing is held */
void uprof_marker_set_info(UprofMarker *marker, const UprofMarkerInfo *info);

/** uprof_marker_held: @since_ns: (out) (optional): monotonic time of the last %UPROF_HELD_ASKED */
UprofHeld uprof_marker_held(const UprofMarker *marker, uint64_t *since_ns);

/**
 * uprof_marker_set_ran: before a hold
 * @marker: (nullable)
 * @cpu_ns: CPU time that the guest has had so far; not 0
 * @at_ns: monotonic time of that measurement
 *
 * If the guest's CPU time has grown much since @at_ns, the hold does not stop the guest any more.
 */
void uprof_marker_set_ran(UprofMarker *marker, uint64_t cpu_ns, uint64_t at_ns);

/**
 * uprof_marker_ran:
 * @at_ns: (out): monotonic time of the measurement
 *
 * Returns: the CPU time of uprof_marker_set_ran(); 0: not known
 */
uint64_t uprof_marker_ran(const UprofMarker *marker, uint64_t *at_ns);

/** uprof_marker_list: Returns: (transfer full): the UUIDs (char *) of all markers */
GPtrArray *uprof_marker_list(void);

/**
 * uprof_marker_lock_round: takes the lock of periodic rounds, a file beside the markers
 * @taken: (out): another round has the lock; then no error is set
 *
 * Returns: a descriptor, owned by the caller. The lock is free when all processes that have
 *   the descriptor have closed it. -1 on failure
 */
int uprof_marker_lock_round(bool *taken, GError **error);
