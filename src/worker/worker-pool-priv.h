/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker-pool-priv.h - all workers of a program, and the thread that serves them
 *
 * The thread answers the requests of the workers (worker-pool.c). Other threads call functions in
 * the workers (worker.c). Both use the members below under the lock of the pool.
 */
#pragma once

#include "begin-priv.h"
#include "checkpoint-priv.h"
#include "own-time-priv.h"
#include "uprof/fetcher.h"
#include "worker-message-priv.h"

/** UprofWorkerNotice: a notice of a worker that was not shown yet */
typedef struct {
    UprofNoticeKind kind;
    char *text; /* owned */
} UprofWorkerNotice;

struct _UprofWorkers {
    UprofSpawner *spawner;
    GMutex lock;        /* guards the members of all workers, unless they say otherwise */
    GCond changed;      /* a reply is complete, or a worker is dead */
    GCond served_other; /* @served has changed */
    unsigned n_waits;   /* threads that wait for @served_other */
    GPtrArray *workers; /* of UprofWorker, borrowed */
    GThread *thread;
    int wakeup;              /* eventfd: wakes the thread */
    UprofRing *ring;         /* (nullable): borrowed */
    bool is_prompt;          /* see uprof_workers_feed() */
    bool is_last;            /* the ring gets no more snapshots */
    gint is_hurried;         /* atomic, bool: a signal ends the run */
    bool ends;               /* the thread must end */
    UprofWorkerInput *input; /* of the thread */
    UprofFetcher *fetcher;   /* (nullable): downloads files that workers lack */
    unsigned n_reported;     /* the sum of the counts of downloads at the last notice */
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
    UprofChains chains;      /* the thread writes them; the sampler reads them */
    UprofWorkerCounts counts;
    GArray *notices;       /* of UprofWorkerNotice */
    unsigned n_notices;    /* since the worker was made */
    int saving;            /* output that the worker writes now, a descriptor; -1: none */
    GBytes *reading;       /* (nullable): the request for the file that the worker may be parsing */
    GBytes *refused;       /* (nullable): the request for a file that the worker must not get */
    bool walks;            /* the worker also walks the tasks of its guest ... */
    uint64_t walk_ns;      /* ... and was told last at this time that there is time for it */
    uint32_t n_pauses;     /* as in UprofWaitTick */
    unsigned n_told;       /* files of the fetcher that the worker knows */
    UprofOwnTime heard;    /* since the last message came, or the worker got new work */
    UprofOwnTime full;     /* since there was no room for a snapshot */
    UprofOwnTime called;   /* since the current call began */
    unsigned call_limit_s; /* the longest time of the current call */
    UprofOwnTime hurried;  /* since Ctrl-C, while a call runs */
    UprofOwnTime asked;    /* since Ctrl-C, until the worker has sent UPROF_TELL_ANSWER */
    bool is_asked;         /* UPROF_DO_ANSWER was sent */
    bool is_ready;         /* the analysis has begun: it may get snapshots */
    uint64_t ready_ns;     /* monotonic: since when */
    bool is_calm;          /* its first moments are over: see find_batch_ms() */
    bool is_full;          /* there was no room for the last snapshot */
    bool is_calling;       /* a call waits for its reply */
    bool has_reply;
    GByteArray *reply;
    const char *doing; /* literal: "analyzed samples", or the work of the current call */
    char *death;       /* (nullable): how the process died; set when a caller got the error */
    bool is_dead;
    const char *why_dead; /* (nullable): literal */

    /* For the next process of the domain */
    GByteArray *begin;     /* (nullable): the first message, for every process of the domain */
    const GArray *outputs; /* of UprofWorkerOutput: borrowed */
    UprofBeginMode mode;   /* of the current process */
    int checkpoints[UPROF_N_CHECKPOINTS];
    int checkpoint; /* the one that is complete; -1: none */
    char *uuid;     /* (nullable): of the domain */
    int kept;       /* of uprof_kept_file_open(); -1: none */
    uint64_t saved; /* samples in it */
    uint64_t lost;  /* samples since the checkpoint of a dead process, or that were not sent */
};

/**
 * uprof_worker_give_up: marks a worker as dead: it gets no more messages; call it with the lock
 * @why: (nullable): literal; %NULL: the exit status of its process will show the cause
 */
void uprof_worker_give_up(UprofWorker *worker, const char *why);

/** uprof_worker_is_hurried: does a signal end the run? */
bool uprof_worker_is_hurried(const UprofWorker *worker);

/**
 * uprof_worker_check_time: marks a worker that takes too long as dead; call it with the lock, often
 *
 * Returns: false if the worker is dead
 */
bool uprof_worker_check_time(UprofWorker *worker);

/** uprof_worker_note_reading: @request: (nullable): for the file that the worker may parse now */
void uprof_worker_note_reading(UprofWorker *worker, const UprofWorkerInput *request, size_t len);
