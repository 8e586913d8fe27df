/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/confined-job.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_WAIT_MS = 10 * 1000 }; /* for the process, after it has closed its channel */

/* @channel: (out): the program's end. Returns: the process; -1 with an error */
static pid_t
spawn_process(UprofSpawner *spawner, const UprofConfinedJob *job, int *channel, GError **error)
{
    int ends[2], fds[UPROF_SPAWNER_FDS_MAX];

    *channel = -1;
    if (job->n_fds + 1 > G_N_ELEMENTS(fds)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "more than %d outputs",
                    UPROF_SPAWNER_FDS_MAX - 1);
        return -1;
    }
    if (!uprof_channel_new(ends, error))
        return -1;
    *channel = ends[0];
    fds[0] = ends[1];
    for (unsigned i = 0; i < job->n_fds; i++)
        fds[i + 1] = job->fds[i];
    const pid_t process = uprof_spawner_spawn(spawner, fds, job->n_fds + 1, error);
    close(ends[1]);
    return process;
}

/* The process has closed its channel: so an answer could not be sent. */
static bool
has_ended(int channel)
{
    struct pollfd wait = { .fd = channel };

    return poll(&wait, 1, 0) > 0 && (wait.revents & POLLHUP);
}

/* Answers until the process closes its channel. Returns: false if it breaks the rules */
static bool
serve_process(int channel, const UprofConfinedJob *job, char **last_file)
{
    g_autofree uint8_t *bytes = g_malloc(UPROF_CHANNEL_BYTES_MAX);
    UprofMessage message;
    bool ok = job->begin.len == 0 || uprof_channel_send(channel, 0, &job->begin, 1, NULL, 0);

    while (ok && uprof_channel_receive(channel, &message, bytes, UPROF_CHANNEL_BYTES_MAX)) {
        ok =
            message.n_fds == 0 && job->answer(channel, &message, (UprofSlice){ bytes, message.len },
                                              last_file, job->data);
        uprof_message_close(&message);
    }
    return ok || has_ended(channel);
}

int
uprof_confined_job_run(UprofSpawner *spawner, const UprofConfinedJob *job, GError **error)
{
    g_autofree char *last_file = NULL;
    int channel;
    const pid_t process = spawn_process(spawner, job, &channel, error);
    const bool is_sound = process > 0 && serve_process(channel, job, &last_file);

    if (channel >= 0)
        close(channel);
    if (process <= 0)
        return -1;
    const int status = uprof_spawner_wait(spawner, process, is_sound ? END_WAIT_MS : 0);
    g_autofree char *why = is_sound ? uprof_spawner_describe_end(status)
                                    : g_strdup("it broke the rules of its requests");
    if (!why)
        return WEXITSTATUS(status);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "the process that reads the files has failed: %s%s%s%s", why,
                last_file ? "; the last file that it read is '" : "", last_file ? last_file : "",
                last_file ? "'" : "");
    return -1;
}
