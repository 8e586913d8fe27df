/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker.h - the program's side of the analysis: one process without rights for each domain
 *
 * The program holds guests, reads their memory and opens files. A worker (analysis.h) parses what
 * it gets from there. The program parses nothing of it. A worker that dies, hangs or asks for what
 * it may not have costs its domain the samples since its last checkpoint, and nothing else.
 *
 * UprofWorkers has a thread that answers the requests of all workers. Functions of UprofWorker may
 * be called by any thread but that one.
 */
#pragma once

#include "uprof/analysis.h"
#include "uprof/file-rules.h"
#include "uprof/output.h"
#include "uprof/ring.h"
#include "uprof/spawner.h"

typedef struct _UprofWorkers UprofWorkers;
typedef struct _UprofWorker UprofWorker;

/** UprofWorkerCounts: what a worker has counted so far */
typedef struct {
    uint64_t samples, running, complete; /* as in UprofRun */
    uint64_t untimed;                    /* see uprof_profile_n_untimed() */
} UprofWorkerCounts;

/** UprofWorkerOutput: a file that a worker writes */
typedef struct {
    const UprofFormat *format; /* borrowed */
    UprofFile *file;           /* (nullable): borrowed: open for writing; %NULL: committed */
} UprofWorkerOutput;

/** UprofWorkerJob: the domain that a worker analyzes; all pointers are borrowed */
typedef struct {
    const char *shown;                 /* the domain's name, safe to print */
    UprofGuest *guest;                 /* until the worker is freed or moved */
    const UprofRun *run;               /* its members that are known at the start */
    const GPtrArray *metadata_symbols; /* of char: files that the domain's metadata names */
    const GPtrArray *metadata_folders; /* of char: where these files may be */
    const char *kernel;                /* (nullable): the kernel file of the domain */
    const char *kernel_hint;           /* (nullable): why it has none that could be used */
    const GArray *outputs;             /* of UprofWorkerOutput */
    const GPtrArray *file_names;       /* of char: for the run's facts */
    const UprofNotices *notices;       /* (nullable): get what the worker says, when a function of
                                  * UprofWorker is called */
} UprofWorkerJob;

/**
 * uprof_workers_new: forks the process that makes workers
 *
 * The program must have one thread, and no connection.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofWorkers *uprof_workers_new(const UprofWorkerPlan *plan, GError **error);

/** uprof_workers_free: @workers: (nullable): has no UprofWorker any more */
void uprof_workers_free(UprofWorkers *workers);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWorkers, uprof_workers_free)

/** uprof_workers_confined: Returns: (transfer none): what this host does not allow to take */
const UprofConfined *uprof_workers_confined(const UprofWorkers *workers);

/**
 * uprof_workers_feed: makes the thread of @workers send all snapshots of @ring to their workers
 * @ring: borrowed until uprof_workers_stop(); the owner of each snapshot is an UprofWorker
 */
void uprof_workers_feed(UprofWorkers *workers, UprofRing *ring);

/** uprof_workers_hurry: a signal ends the run: each worker has 1.2 s, and more for a large
 * profile, for what is left; a handler of signals may call it */
void uprof_workers_hurry(UprofWorkers *workers);

/** uprof_workers_stop: waits until the ring is empty; no sampler may add snapshots any more */
void uprof_workers_stop(UprofWorkers *workers);

/**
 * uprof_worker_new: makes a worker, and lets it read the symbol files
 * @job: borrowed for this call; its guest, outputs and notices until the worker is freed
 * @rules: borrowed until the worker is freed
 *
 * If the process dies, a second one begins without the file that the first one read.
 *
 * Returns: (transfer full) (nullable): %NULL with an error, such as a file of the command line that
 *   cannot be read
 */
UprofWorker *uprof_worker_new(UprofWorkers *workers, const UprofWorkerJob *job,
                              const UprofFileRules *rules, GError **error);
void uprof_worker_free(UprofWorker *worker);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWorker, uprof_worker_free)

/**
 * uprof_worker_continue: starts another process for a worker that is dead
 *
 * The process has the samples of the last checkpoint. It does not get the file that the dead
 * process read, and does not continue the capture.
 */
bool uprof_worker_continue(UprofWorker *worker, GError **error);

/**
 * uprof_worker_rescue: starts a process that can only write the outputs that are still open
 *
 * The process has the samples of the last checkpoint, and reads no file and no guest.
 */
bool uprof_worker_rescue(UprofWorker *worker, GError **error);

/** uprof_worker_lost: Returns: samples that no process could count */
uint64_t uprof_worker_lost(UprofWorker *worker);

/** uprof_worker_take: sends one snapshot; use it only if no ring is fed */
bool uprof_worker_take(UprofWorker *worker, const UprofSnapshot *snapshot);

/** uprof_worker_move: continues with another access to the same guest; see uprof_pipeline_move() */
bool uprof_worker_move(UprofWorker *worker, UprofGuest *guest, GError **error);

/** uprof_worker_sync: waits until all snapshots are analyzed */
bool uprof_worker_sync(UprofWorker *worker, GError **error);

/**
 * uprof_worker_call: calls a function in the worker, and waits for its end
 * @call: index in the plan
 * @reply: (out) (transfer full): any bytes
 *
 * Earlier snapshots are analyzed before.
 *
 * Returns: false with an error if the worker has died, or was killed because it did nothing for
 *   long
 */
bool uprof_worker_call(UprofWorker *worker, unsigned call, UprofSlice argument, GByteArray **reply,
                       GError **error);

/**
 * uprof_worker_end: completes the run's facts and names
 * @run: its members that are known at the end
 * @counts: (out): of the complete run
 */
bool uprof_worker_end(UprofWorker *worker, const UprofRun *run, UprofWorkerCounts *counts,
                      GError **error);

/**
 * uprof_worker_save: writes one output
 * @i: index in the job's outputs
 * @is_closed: (out): the reader of the output has closed it
 */
bool uprof_worker_save(UprofWorker *worker, unsigned i, bool *is_closed, GError **error);

/** uprof_worker_counts: what the worker has counted; at most some 100 ms old */
void uprof_worker_counts(UprofWorker *worker, UprofWorkerCounts *counts);

/**
 * uprof_worker_links: Returns: (transfer none): where the sampler finds what a worker has found of
 *   the guest's kernel; the pointer there changes atomically, and what it points to stays valid
 */
const UprofLinks **uprof_worker_links(UprofWorker *worker);

/**
 * uprof_worker_set_sizes: sets the windows that the worker adapts
 * @sizes: (nullable): borrowed; by vCPU
 */
void uprof_worker_set_sizes(UprofWorker *worker, UprofWindowSize *sizes, unsigned n_vcpus);

/** uprof_worker_show_notices: sends what the worker has said since the last call */
void uprof_worker_show_notices(UprofWorker *worker);

/** uprof_worker_is_dead: the worker has ended, or was killed */
bool uprof_worker_is_dead(UprofWorker *worker);
