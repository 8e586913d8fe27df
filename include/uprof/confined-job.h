/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confined-job.h - one job in a process without rights, from its start to its end
 *
 * The process asks for what it needs on a channel. The program answers, and checks each message:
 * a hostile file may have taken over the process.
 */
#pragma once

#include "uprof/channel.h"
#include "uprof/spawner.h"

/** UprofConfinedJob: what the program does for the process; all pointers are borrowed */
typedef struct {
    UprofSlice begin; /* the first message to the process; its type is 0; empty: none */
    const int *fds;   /* descriptors for the process, after its end of the channel */
    unsigned n_fds;
    /*
     * Answers one message.
     * @content: aligned for every type
     * @last_file: (inout) (nullable): owned by the job: a file that the process reads, safe to print
     *
     * Returns: false if the message breaks the rules; the process is then killed
     */
    bool (*answer)(int channel, const UprofMessage *message, UprofSlice content, char **last_file,
                   void *data);
    void *data;          /* passed to @answer */
    bool has_user;       /* somebody waits for it, and can end it: the next limits do not hold */
    unsigned silence_ms; /* without a message, the process is killed; 0: two minutes */
    unsigned time_ms;    /* after which it is killed in any case; 0: one hour */
} UprofConfinedJob;

/**
 * uprof_confined_job_run: makes a process, and answers it until it ends
 * @spawner: its plan says what the process does
 *
 * Returns: the exit status of the process; -1 with an error if it has died. The error names the
 *   last file that it read.
 */
int uprof_confined_job_run(UprofSpawner *spawner, const UprofConfinedJob *job, GError **error);
