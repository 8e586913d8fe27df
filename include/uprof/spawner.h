/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * spawner.h - a process without rights that makes processes without rights
 *
 * The spawner is forked while the program has one thread and no connection. It drops its rights
 * once (src/base/confine-priv.h), and then forks a worker whenever the program asks for one. A
 * worker therefore has no data that the program got later, such as answers of daemons, and only the
 * descriptors that the program gives to it. A worker is sealed before it reads its first message.
 *
 * Only one thread uses a spawner.
 */
#pragma once

#include "uprof/error.h"

#include <stdint.h>
#include <sys/types.h>

/**
 * UprofConfined: rights that the host did not let workers drop; each member is a literal or %NULL
 */
typedef struct {
    const char *why_same_user; /* (nullable): why the process keeps its user, root */
    const char *why_same_view; /* (nullable): why it has no name spaces of its own */
} UprofConfined;

/** UprofConfineLimits: the resources that a sealed process may use */
typedef struct {
    uint64_t memory_max; /* bytes of private memory, including the memory at its start */
    uint64_t cpu_s;      /* processor time; 0: no limit */
    uint64_t file_max;   /* bytes of each file that is written; 0: no limit */
} UprofConfineLimits;

enum {
    UPROF_SPAWNER_FDS_MAX = 32,
    /* the exit status of work that has lost its channel to the program */
    UPROF_SPAWNER_EXIT_CUT_OFF = 97,
};

/**
 * UprofSpawnPlan: the work of each worker; all pointers are borrowed; workers have the data as it
 * was at the fork
 */
typedef struct {
    /*
     * Runs in the worker. @fds: the descriptors of uprof_spawner_spawn().
     *
     * Returns: the exit status
     */
    int (*work)(const int *fds, unsigned n_fds, void *data);
    void *data; /* passed to @work */
    UprofConfineLimits limits;
    bool is_background; /* its workers have a lower priority than the program */
    bool keeps_streams; /* stdin, stdout and stderr are those of the program, not /dev/null */
} UprofSpawnPlan;

typedef struct _UprofSpawner UprofSpawner;

/**
 * uprof_spawner_start: the program must have one thread
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofSpawner *uprof_spawner_start(const UprofSpawnPlan *plan, GError **error);

/** uprof_spawner_end: @spawner: (nullable): kills all workers, and frees the spawner */
void uprof_spawner_end(UprofSpawner *spawner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSpawner, uprof_spawner_end)

/** uprof_spawner_confined: Returns: (transfer none): the rights that workers keep, and why */
const UprofConfined *uprof_spawner_confined(const UprofSpawner *spawner);

/**
 * uprof_spawner_spawn: makes a worker
 * @fds: borrowed: its descriptors; up to %UPROF_SPAWNER_FDS_MAX
 *
 * Returns: the number of its process; -1 with an error
 */
pid_t uprof_spawner_spawn(UprofSpawner *spawner, const int *fds, unsigned n_fds, GError **error);

/**
 * uprof_spawner_wait: waits for the end of a worker
 * @timeout_ms: the longest wait; afterwards the worker is killed
 *
 * Returns: its status, as of waitpid(2); -1 if the spawner itself has died
 */
int uprof_spawner_wait(UprofSpawner *spawner, pid_t worker, unsigned timeout_ms);

/**
 * uprof_spawner_describe_end: says why a worker has ended before its work was done
 * @status: of uprof_spawner_wait()
 *
 * Returns: (transfer full) (nullable): such as "it died of signal 9 (Killed)"; %NULL if the work
 * itself has ended with an exit status
 */
char *uprof_spawner_describe_end(int status);
