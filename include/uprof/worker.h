/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * worker.h - the program's side of the analysis: one process without rights for each domain
 *
 * The program holds guests, reads their memory and opens files, but parses none of that: a worker
 * does (analysis.h). If a worker dies, hangs or breaks the rules of its requests, its domain loses
 * the samples since the last checkpoint, and nothing else.
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

enum {
    /* processor time of a worker besides that for the samples of a run: two of the longest calls */
    UPROF_WORKER_CPU_S = 1800,
};

typedef struct _UprofWorkers UprofWorkers;
typedef struct _UprofWorker UprofWorker;

/** UprofWorkerCounts: the counts of a worker so far */
typedef struct {
    uint64_t samples, running, complete; /* as in UprofRun */
    uint64_t untimed;                    /* see uprof_profile_n_untimed() */
} UprofWorkerCounts;

/** UprofWorkerOutput: a file that a worker writes */
typedef struct {
    const UprofFormat *format; /* borrowed */
    UprofFile *file;           /* (nullable): borrowed: open for writing; %NULL: committed */
    bool is_waits;             /* gets the profile of waits, not that of samples */
} UprofWorkerOutput;

/** UprofWorkerJob: the domain that a worker analyzes; all pointers are borrowed */
typedef struct {
    const char *shown;                 /* the domain's name, safe to print */
    UprofGuest *guest;                 /* until the worker is freed or moved */
    const UprofRun *run;               /* its members that are known at the start */
    const GPtrArray *metadata_symbols; /* of char: files that the domain's metadata names */
    const GPtrArray *metadata_folders; /* of char: the folders in which these files may be */
    const char *kernel;                /* (nullable): the kernel file of the domain */
    const char *kernel_hint;           /* (nullable): why @kernel is missing */
    const GArray *outputs;             /* of UprofWorkerOutput */
    const GPtrArray *file_names;       /* of char: for the run's facts */
    bool waits;                        /* counts where tasks wait, too: see waits.h */
    const UprofNotices *notices;       /* (nullable): get the notices of the worker, when a
                                        * function of UprofWorker is called */
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

/** uprof_workers_confined: Returns: (transfer none): the rights that this host does not let drop */
const UprofConfined *uprof_workers_confined(const UprofWorkers *workers);

/**
 * uprof_workers_feed: makes the thread of @workers send all snapshots of @ring to their workers
 * @ring: borrowed until uprof_workers_stop(); the owner of each snapshot is an UprofWorker
 * @is_prompt: the caller uses results during the run, so snapshots wait for 100 ms at most, not for
 * 250
 */
void uprof_workers_feed(UprofWorkers *workers, UprofRing *ring, bool is_prompt);

/** uprof_workers_hurry: limits the time of all workers, because a signal ends the run: to 1.2 s
 * each, and more for a large profile; a signal handler may call it */
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

/** uprof_worker_lost: Returns: the number of samples that no process could count */
uint64_t uprof_worker_lost(UprofWorker *worker);

/**
 * uprof_worker_take: sends one snapshot without the ring, and waits while the worker has no room
 *
 * Call it only while the ring has no snapshots of @worker, so that the order stays right.
 *
 * Returns: false if the worker is dead
 */
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
 * The worker first analyzes all earlier snapshots.
 *
 * Returns: false with an error if the worker has died, or took too long
 */
bool uprof_worker_call(UprofWorker *worker, unsigned call, UprofSlice argument, GByteArray **reply,
                       GError **error);

/**
 * uprof_worker_call_within: the same with another limit of time
 * @limit_s: if the call takes longer, the worker counts as dead; the time in which it waits for a
 *   processor does not count
 */
bool uprof_worker_call_within(UprofWorker *worker, unsigned limit_s, unsigned call,
                              UprofSlice argument, GByteArray **reply, GError **error);

/**
 * uprof_worker_call_then: the same with a function for the end of the call
 * @ended: called in this thread as soon as the worker has replied or is dead, before its notices
 * are shown
 * @data: for @ended
 */
bool
uprof_worker_call_then(UprofWorker *worker, unsigned call, UprofSlice argument,
                       void (*ended)(void *data), void *data, GByteArray **reply, GError **error);

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

/** uprof_worker_counts: @counts: (out): of the worker; some tenths of a second old */
void uprof_worker_counts(UprofWorker *worker, UprofWorkerCounts *counts);

/**
 * uprof_worker_links: Returns: (transfer none): a pointer to the current links into the guest's
 *   kernel, for the sampler. It changes atomically; old links stay valid until the worker is freed.
 */
const UprofLinks **uprof_worker_links(UprofWorker *worker);

/** uprof_worker_chains: Returns: (transfer none): the chains in the guest's processes, for the
 * sampler */
const UprofChains *uprof_worker_chains(UprofWorker *worker);

/**
 * uprof_worker_set_sizes: sets the windows that the worker adapts
 * @sizes: (nullable): borrowed; by vCPU
 */
void uprof_worker_set_sizes(UprofWorker *worker, UprofWindowSize *sizes, unsigned n_vcpus);

/**
 * uprof_worker_set_walks: tells the worker now and then that there is time to walk tasks, or ends
 * that; its job has @waits. uprof_worker_end() ends it, too.
 */
void uprof_worker_set_walks(UprofWorker *worker, bool walks);

/** uprof_worker_show_notices: sends the notices of the worker since the last call */
void uprof_worker_show_notices(UprofWorker *worker);

/** uprof_worker_is_dead: has the worker ended, or does it count as dead? */
bool uprof_worker_is_dead(UprofWorker *worker);
