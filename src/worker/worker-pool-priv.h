/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker-pool-priv.h - all workers of a program, and the thread that serves them
 *
 * The thread answers the requests of the workers (worker-pool.c). Other threads call functions in
 * them (worker.c). Both use the members below under the lock of the pool.
 */
#pragma once

#include "begin-priv.h"
#include "checkpoint-priv.h"
#include "own-time-priv.h"
#include "worker-message-priv.h"

/** UprofWorkerNotice: what a worker has said and nobody has shown yet */
typedef struct {
    UprofNoticeKind kind;
    char *text; /* owned */
} UprofWorkerNotice;

struct _UprofWorkers {
    UprofSpawner *spawner;
    GMutex lock;        /* guards the members of all workers, unless they say otherwise */
    GCond changed;      /* a reply is complete, or a worker is dead */
    GPtrArray *workers; /* of UprofWorker, borrowed */
    GThread *thread;
    int wakeup;              /* eventfd: something is new for the thread */
    UprofRing *ring;         /* (nullable): borrowed */
    bool is_last;            /* the ring gets no more snapshots */
    gint is_hurried;         /* atomic, bool: a signal ends the run */
    bool ends;               /* the thread ends */
    UprofWorkerInput *input; /* of the thread */
    /* (nullable): the thread works for this worker without the lock */
    const UprofWorker *served;
};

struct _UprofWorker {
    UprofWorkers *pool; /* borrowed */
    char *shown;
    pid_t pid;
    int requests; /* channel: the thread alone uses it */
    int stream;   /* channel: does not block */
    const UprofFileRules *rules;
    const UprofNotices *shown_by; /* (nullable) */
    GMutex guest_lock;            /* guards @guest, which the thread reads from */
    UprofGuest *guest;
    UprofWindowSize *sizes; /* (nullable): borrowed; the sampler reads them */
    unsigned n_sizes;
    const UprofLinks *links; /* (nullable): atomic; the sampler reads it */
    GPtrArray *all_links;    /* of UprofLinks: owned */
    UprofWorkerCounts counts;
    GArray *notices;      /* of UprofWorkerNotice */
    unsigned n_notices;   /* of all times */
    int saving;           /* output that the worker writes now, a descriptor; -1: none */
    GBytes *reading;      /* (nullable): the request for the file that it may be parsing */
    GBytes *refused;      /* (nullable): the request for a file that it does not get again */
    UprofOwnTime heard;   /* since the last message came, or the worker got new work */
    UprofOwnTime full;    /* since there was no room for a snapshot */
    UprofOwnTime called;  /* since the current call began */
    UprofOwnTime hurried; /* since it first had to end after Ctrl-C */
    bool is_ready;        /* the analysis has begun: it may get snapshots */
    bool is_full;         /* there was no room for the last snapshot */
    bool is_calling;      /* a call waits for its reply */
    bool has_reply;
    GByteArray *reply;
    const char *doing; /* literal: "analyzed samples", or what the current call does */
    char *death;       /* (nullable): what happened, once a caller was told */
    bool is_dead;
    const char *why_dead; /* (nullable): literal */

    /* For the process that takes over */
    GByteArray *begin;     /* (nullable): the first message, for every process of the domain */
    const GArray *outputs; /* of UprofWorkerOutput: borrowed */
    UprofBeginMode mode;   /* of the current process */
    int checkpoints[UPROF_N_CHECKPOINTS];
    int checkpoint; /* the one that is complete; -1: none */
    uint64_t saved; /* samples in it */
    uint64_t lost;  /* samples that a process had counted when it died, or could not take */
};

/**
 * uprof_worker_give_up: a worker that is given up gets nothing any more; call it with the lock
 * @why: (nullable): literal; %NULL: the end of its process will tell
 */
void uprof_worker_give_up(UprofWorker *worker, const char *why);

/** uprof_worker_is_hurried: does a signal end the run? */
bool uprof_worker_is_hurried(const UprofWorker *worker);

/**
 * uprof_worker_check_time: gives up a worker that takes too long; call it with the lock, repeatedly
 *
 * Returns: false if the worker is given up
 */
bool uprof_worker_check_time(UprofWorker *worker);

/** uprof_worker_note_reading: @request: (nullable): for the file that the worker may parse now */
void uprof_worker_note_reading(UprofWorker *worker, const UprofWorkerInput *request, size_t len);
