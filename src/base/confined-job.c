/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/confined-job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    END_WAIT_MS = 10 * 1000, /* for the process, after it has closed its channel */
    SILENCE_MS = 2 * 60 * 1000,
    TIME_MS = 60 * 60 * 1000,
};

static unsigned
silence_of(const UprofConfinedJob *job)
{
    return job->silence_ms > 0 ? job->silence_ms : SILENCE_MS;
}

/* A process that reads no answer must not make the program wait for ever. */
static void
limit_sending(int channel, const UprofConfinedJob *job)
{
    const struct timeval limit = { .tv_sec = silence_of(job) / 1000 + 1 };

    setsockopt(channel, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

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
    if (!job->has_user)
        limit_sending(ends[0], job);
    *channel = ends[0];
    fds[0] = ends[1];
    for (unsigned i = 0; i < job->n_fds; i++)
        fds[i + 1] = job->fds[i];
    const pid_t process = uprof_spawner_spawn(spawner, fds, job->n_fds + 1, error);
    close(ends[1]);
    return process;
}

/* Returns: false if the process neither sends a message nor ends in time */
static bool
wait_for_message(int channel, const UprofConfinedJob *job, gint64 end_us)
{
    struct pollfd wait = { .fd = channel, .events = POLLIN };
    int n;

    do {
        const gint64 left_ms = (end_us - g_get_monotonic_time()) / 1000;
        n = poll(&wait, 1, job->has_user ? -1 : (int)CLAMP(left_ms, 0, (gint64)silence_of(job)));
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

/*
 * Answers until the process closes its channel. No message can be sent to a process that has ended,
 * but the messages that it sent before are read. Its exit status shows why it ended. A process that
 * has not ended, but to which a message could not be sent, reads the end of the channel and ends.
 *
 * Returns: (nullable): the broken rule; literal
 */
static const char *
serve_process(int channel, const UprofConfinedJob *job, char **last_file)
{
    const unsigned time_ms = job->time_ms > 0 ? job->time_ms : TIME_MS;
    const gint64 end_us = g_get_monotonic_time() + time_ms * G_TIME_SPAN_MILLISECOND;
    g_autofree uint8_t *bytes = g_malloc(UPROF_CHANNEL_BYTES_MAX);
    UprofMessage message;

    if (job->begin.len > 0 && !uprof_channel_send(channel, 0, &job->begin, 1, NULL, 0))
        shutdown(channel, SHUT_WR);
    for (;;) {
        if (!wait_for_message(channel, job, end_us))
            return "it does not answer";
        if (!uprof_channel_receive(channel, &message, bytes, UPROF_CHANNEL_BYTES_MAX))
            return NULL;
        errno = 0;
        const bool ok =
            message.n_fds == 0 && job->answer(channel, &message, (UprofSlice){ bytes, message.len },
                                              last_file, job->data);
        const bool has_ended = errno == EPIPE || errno == ECONNRESET;
        uprof_message_close(&message);
        if (!ok && !has_ended)
            return "it broke the rules of its requests";
        if (!ok)
            shutdown(channel, SHUT_WR);
    }
}

int
uprof_confined_job_run(UprofSpawner *spawner, const UprofConfinedJob *job, GError **error)
{
    g_autofree char *last_file = NULL;
    int channel;
    const pid_t process = spawn_process(spawner, job, &channel, error);
    const char *broken = process > 0 ? serve_process(channel, job, &last_file) : NULL;

    if (channel >= 0)
        close(channel);
    if (process <= 0)
        return -1;
    const int status = uprof_spawner_wait(spawner, process, broken ? 0 : END_WAIT_MS);
    g_autofree char *why = broken ? g_strdup(broken) : uprof_spawner_describe_end(status);
    if (!why)
        return WEXITSTATUS(status);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "the process that reads the files has failed: %s%s%s%s", why,
                last_file ? "; the last file that it read is '" : "", last_file ? last_file : "",
                last_file ? "'" : "");
    return -1;
}
