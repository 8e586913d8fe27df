/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.h - one domain, opened for sampling
 *
 * The commands record, dump and check all open a domain in this way. A session has the domain's
 * lock, the open guest and its symbols. The guardian watches the guest.
 */
#pragma once

#include "uprof/access.h"
#include "uprof/guardian.h"
#include "uprof/kernel-files.h"
#include "uprof/notice.h"
#include "uprof/sampler.h"
#include "uprof/settings.h"
#include "uprof/symbol-settings.h"
#include "uprof/worker.h"

#include <signal.h>

/**
 * UprofSessionSettings: how to open and sample domains
 *
 * Sessions borrow the settings until they are closed. All pointers are borrowed.
 */
typedef struct {
    const char *program;         /* name and version, for the run's facts */
    const char *uri;             /* (nullable): of --connect; %NULL: the domain's own connection */
    const char *access;          /* "auto", or the name of an access method */
    const UprofSettings *run;    /* rate, duration and the like; metadata can change them */
    UprofConfig *config;         /* (nullable): of periodic runs; limits what metadata asks for */
    UprofSymbolSettings symbols; /* of the command line */
    bool yields;                 /* the run gives up a domain if another run waits for it */
    bool only_enabled;           /* refuses domains that neither metadata nor @config enables */
    const UprofNotices *notices;
} UprofSessionSettings;

/** UprofSessionFlags: options of uprof_session_open() */
typedef enum {
    UPROF_SESSION_PLAIN = 0,
    UPROF_SESSION_MAY_BE_PAUSED = 1 << 0, /* also opens a guest that somebody else has paused */
    UPROF_SESSION_WAIT_FOR_LOCK = 1 << 1, /* waits up to a minute if another run has the lock */
    UPROF_SESSION_NO_WAIT = 1 << 2,       /* waits not even for a run that gives up the domain */
} UprofSessionFlags;

/** UprofSession: one open domain. All members are owned unless they say "borrowed". */
typedef struct {
    const UprofSessionSettings *caller_settings; /* borrowed */
    char *shown;                                 /* the domain's name, safe to print */
    UprofDomain *domain;
    UprofSettings settings;  /* uprof_session_prepare() applies the metadata */
    char *why;               /* why this access method is used, and not a better one */
    UprofMarker *marker;     /* has the domain's lock */
    UprofGuardian *guardian; /* (nullable): borrowed; watches the domain until the close */
    UprofGuest *guest;
    UprofRun *run;         /* the facts that the program knows; the worker has the counts */
    UprofFileRules *rules; /* the files that the worker may read */
    UprofWorker *worker;   /* analyzes the snapshots */
    UprofSampler *sampler;
    UprofSamplerCounts counts_before; /* of the sampler before a fall-back; zeros: there was none */
    UprofWindowSize *sizes;           /* by vCPU */
    bool *wanted;                     /* by vCPU: the run samples this vCPU */
    sigset_t signals;                 /* the signal mask before uprof_session_open() */
} UprofSession;

/**
 * uprof_session_open:
 * @domain: (transfer full): freed even if the call fails
 * @settings: borrowed until the session is closed
 * @guardian: borrowed until the session is closed; watches the guest, unless it is paused
 *
 * Blocks the signals that end or stop the process until the session is closed, so that the close
 * always restores the vCPU pages that access `direct` changes (kvm-vcpu-priv.h).
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_LOCKED if another run samples the
 *   domain, or with another code
 */
UprofSession *uprof_session_open(UprofDomain *domain, const UprofSessionSettings *settings,
                                 UprofGuardian *guardian, UprofSessionFlags flags, GError **error);

/**
 * uprof_session_close: frees the session, and releases the domain's lock
 * @session: (nullable)
 *
 * The guardian makes sure that the guest is not held any more. If the guest may still be stopped, a
 * notice reports this.
 */
void uprof_session_close(UprofSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSession, uprof_session_close)

/** UprofSessionOutputs: the files that the worker of a session writes; all pointers are borrowed */
typedef struct {
    const GArray *outputs;       /* of UprofWorkerOutput: until the session is closed */
    const GPtrArray *file_names; /* of char: for the run's facts */
} UprofSessionOutputs;

/**
 * uprof_session_prepare: makes the worker and the sampler, and adds the symbol files
 * @workers: borrowed until the session is closed
 * @outputs: (nullable): %NULL: none
 * @ring: (nullable): borrowed; gets the snapshots. Without a ring only
 *   uprof_sampler_sample_once() works.
 *
 * Returns: false with the error if a symbol file of the command line cannot be read, if a vCPU of
 *   the settings does not exist, or if the capture cannot be written. If other symbol files cannot
 *   be used, a notice says why.
 */
bool uprof_session_prepare(UprofSession *session, UprofWorkers *workers,
                           const UprofSessionOutputs *outputs, UprofRing *ring, GError **error);

/** uprof_session_budget_ppm: Returns: the share of time that a vCPU may be held, in millionths */
uint64_t uprof_session_budget_ppm(const UprofSession *session);

/**
 * uprof_session_find_kernel: finds the symbol file of the kernel that <os><kernel> names
 * @files: read the file
 * @why: (out) (transfer full) (nullable): why there is no such file
 *
 * Returns: (transfer full) (nullable): the path of the file
 */
char *uprof_session_find_kernel(const UprofDomain *domain, UprofKernelFiles *files, char **why);

/**
 * uprof_session_recover: resumes guests that dead runs left stopped
 *
 * Sends a notice for each such guest.
 *
 * Returns: NONE; LEFT_HELD if a guest may still be stopped
 */
UprofErrorCode uprof_session_recover(const UprofNotices *notices);

/**
 * uprof_session_end_guardian:
 * @guardian: (nullable): freed
 * @died: the caller has already reported that the guardian has died
 *
 * If the guardian has died, this process resumes the guests that the guardian watched.
 *
 * Returns: NONE; LEFT_HELD if a guest may still be stopped; FAILED if the guardian has died. A
 *   notice was sent.
 */
UprofErrorCode
uprof_session_end_guardian(UprofGuardian *guardian, bool died, const UprofNotices *notices);

/**
 * uprof_session_note_counts: writes the counts of all samplers of the session to the run's facts
 * @counts: (out): of the current sampler alone
 */
void uprof_session_note_counts(UprofSession *session, UprofSamplerCounts *counts);
