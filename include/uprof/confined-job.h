/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined-job.h - one job in a process without rights, from its start to its end
 *
 * The process sends its requests on a channel. The program answers them, and checks each message,
 * because a hostile file may have taken over the process.
 */
#pragma once

#include "uprof/channel.h"
#include "uprof/spawner.h"

/** UprofConfinedJob: the program's side of a job; all pointers are borrowed */
typedef struct {
    UprofSlice begin; /* the first message to the process; its type is 0; empty: none */
    const int *fds;   /* descriptors for the process, after its end of the channel */
    unsigned n_fds;
    /*
     * Answers one message.
     * @content: aligned for every type
     * @last_file: (inout) (nullable): owned by the job: the last file that the process has read,
     *   safe to print
     *
     * Returns: false if the message breaks the rules; the process is then killed
     */
    bool (*answer)(int channel, const UprofMessage *message, UprofSlice content, char **last_file,
                   void *data);
    void *data;          /* passed to @answer */
    bool has_user;       /* a user waits, and can end it: no limit below applies */
    unsigned silence_ms; /* longest wait for a message before a kill; 0: two minutes */
    unsigned time_ms;    /* longest time before a kill in any case; 0: one hour */
} UprofConfinedJob;

/**
 * uprof_confined_job_run: makes a process, and answers its messages until it ends
 * @spawner: its plan has the work of the process
 *
 * Returns: the exit status of the process; -1 with an error if the process has died. The error
 *   names the last file that the process read.
 */
int uprof_confined_job_run(UprofSpawner *spawner, const UprofConfinedJob *job, GError **error);
