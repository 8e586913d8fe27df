/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/confined-job.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Types of messages from the process. */
enum { ASK_DOUBLE = 1, TELL_FILE, TELL_NONSENSE };

static bool
answer(int channel, const UprofMessage *message, UprofSlice content, char **last_file, void *data)
{
    unsigned number;
    const UprofSlice part = { &number, sizeof(number) };

    ++*(unsigned *)data;
    if (message->type == TELL_FILE) {
        g_free(*last_file);
        *last_file = g_strndup(content.data, content.len);
        return true;
    }
    if (message->type != ASK_DOUBLE || content.len != sizeof(number))
        return false;
    memcpy(&number, content.data, sizeof(number));
    number *= 2;
    return uprof_channel_send(channel, 0, &part, 1, NULL, 0);
}

/* ---- Functions of processes. @fds: the channel, and a pipe ---- */

static void
tell(int channel, unsigned type, const char *text)
{
    const UprofSlice part = { text, strlen(text) };

    uprof_channel_send(channel, type, &part, 1, NULL, 0);
}

/* Writes the double of its first message to the pipe. */
static int
work_well(const int *fds, unsigned n_fds, void *data)
{
    UprofMessage message;
    unsigned number;
    const UprofSlice part = { &number, sizeof(number) };

    g_assert(n_fds == 2);
    g_assert(uprof_channel_receive(fds[0], &message, &number, sizeof(number)));
    uprof_channel_send(fds[0], ASK_DOUBLE, &part, 1, NULL, 0);
    g_assert(uprof_channel_receive(fds[0], &message, &number, sizeof(number)));
    return write(fds[1], &number, sizeof(number)) == sizeof(number) ? 3 : 4;
}

static int
abort_behind_file(const int *fds, unsigned n_fds, void *data)
{
    tell(fds[0], TELL_FILE, "one.elf");
    tell(fds[0], TELL_FILE, "other.elf");
    prctl(PR_SET_DUMPABLE, 0);
    abort();
}

/* Waits until the program closes the channel. */
static int
wait_for_end(int channel)
{
    UprofMessage message;
    unsigned number;

    while (uprof_channel_receive(channel, &message, &number, sizeof(number)))
        ;
    return 0;
}

static int
send_nonsense(const int *fds, unsigned n_fds, void *data)
{
    tell(fds[0], TELL_NONSENSE, "x");
    return wait_for_end(fds[0]);
}

static int
send_descriptor(const int *fds, unsigned n_fds, void *data)
{
    uprof_channel_send(fds[0], TELL_FILE, NULL, 0, &fds[1], 1);
    return wait_for_end(fds[0]);
}

static int
spin(const int *fds, unsigned n_fds, void *data)
{
    volatile bool goes_on = true;

    while (goes_on)
        ;
    return 0;
}

static int
sleep_for_ever(const int *fds, unsigned n_fds, void *data)
{
    tell(fds[0], TELL_FILE, "one.elf");
    for (unsigned i = 0; i < 1000; i++)
        g_usleep(1000 * 1000);
    return 0;
}

static int
tell_for_ever(const int *fds, unsigned n_fds, void *data)
{
    for (unsigned i = 0; i < 1000000; i++) {
        tell(fds[0], TELL_FILE, "one.elf");
        g_usleep(1000);
    }
    return 0;
}

/* Reads no answers, so that they fill its socket. */
static int
ask_and_ignore(const int *fds, unsigned n_fds, void *data)
{
    const unsigned number = 1;
    const UprofSlice part = { &number, sizeof(number) };

    for (unsigned i = 0; i < 1000000; i++)
        uprof_channel_send(fds[0], ASK_DOUBLE, &part, 1, NULL, 0);
    return 0;
}

/* Dies before it is answered. The answer then cannot be sent, but the process broke no rule. */
static int
ask_and_die(const int *fds, unsigned n_fds, void *data)
{
    const unsigned number = 1;
    const UprofSlice part = { &number, sizeof(number) };

    uprof_channel_send(fds[0], ASK_DOUBLE, &part, 1, NULL, 0);
    prctl(PR_SET_DUMPABLE, 0);
    abort();
}

/* clang-format off */
static const struct {
    const char *name;
    int (*work)(const int *fds, unsigned n_fds, void *data);
    int status;        /* of the process; -1: it dies */
    const char *error; /* pattern */
    unsigned silence_ms;
} cases[] = {
    { "well",       work_well,         3,  NULL },
    { "abort",      abort_behind_file, -1, "the process that reads the files has failed: it died of signal 6 (Aborted); the last "
                                           "file that it read is 'other.elf'" },
    { "nonsense",   send_nonsense,     -1, "*has failed: it broke the rules of its requests" },
    { "descriptor", send_descriptor,   -1, "*has failed: it broke the rules of its requests" },
    { "spin",       spin,              -1, "*has failed: it used all its processor time" },
    { "sleep",      sleep_for_ever,    -1, "*has failed: it does not answer; the last file that it read is 'one.elf'", 2000 },
    { "tell",       tell_for_ever,     -1, "*has failed: it does not answer; the last file that it read is 'one.elf'", 2000 },
    { "ask-and-ignore", ask_and_ignore, -1, "*has failed: it *", 2000 },
    { "ask-and-die", ask_and_die,      -1, "*has failed: it died of signal 6 (Aborted)" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    const UprofSpawnPlan plan = {
        .work = cases[i].work,
        .limits = { .memory_max = 64 << 20, .cpu_s = 1 },
    };
    g_autoptr(GError) error = NULL;
    unsigned n_messages = 0, number = 21;
    int ends[2];

    g_assert_cmpint(pipe(ends), ==, 0);
    const UprofConfinedJob job = {
        .begin = { &number, sizeof(number) },
        .fds = &ends[1],
        .n_fds = 1,
        .answer = answer,
        .data = &n_messages,
        .silence_ms = cases[i].silence_ms,
        .time_ms = 2 * cases[i].silence_ms,
    };
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&plan, &error);
    g_assert_no_error(error);
    g_assert_cmpint(uprof_confined_job_run(spawner, &job, &error), ==, cases[i].status);
    if (cases[i].error) {
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
        if (!g_pattern_match_simple(cases[i].error, error->message))
            g_error("%s", error->message);
    } else {
        g_assert_no_error(error);
        g_assert_cmpuint(n_messages, ==, 1);
        g_assert_cmpint(read(ends[0], &number, sizeof(number)), ==, sizeof(number));
        g_assert_cmpuint(number, ==, 42);
    }
    close(ends[0]);
    close(ends[1]);
}

/* One spawner makes a process for each job. */
static void
test_again(void)
{
    const UprofSpawnPlan plan = { .work = work_well, .limits = { .memory_max = 64 << 20 } };
    unsigned n_messages = 0;
    int ends[2];

    g_assert_cmpint(pipe(ends), ==, 0);
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&plan, NULL);
    for (unsigned number = 0; number < 10; number++) {
        const UprofConfinedJob job = {
            .begin = { &number, sizeof(number) },
            .fds = &ends[1],
            .n_fds = 1,
            .answer = answer,
            .data = &n_messages,
        };
        unsigned doubled;
        g_assert_cmpint(uprof_confined_job_run(spawner, &job, NULL), ==, 3);
        g_assert_cmpint(read(ends[0], &doubled, sizeof(doubled)), ==, sizeof(doubled));
        g_assert_cmpuint(doubled, ==, 2 * number);
    }
    g_assert_cmpuint(n_messages, ==, 10);
    close(ends[0]);
    close(ends[1]);
}

/* A process may end before the program sends it the first message. */
static void
test_ends_early(void)
{
    const UprofSpawnPlan plan = { .work = abort_behind_file, .limits = { .memory_max = 64 << 20 } };
    unsigned n_messages = 0, number = 21;
    g_autoptr(UprofSpawner) spawner = uprof_spawner_start(&plan, NULL);
    const UprofConfinedJob job = {
        .begin = { &number, sizeof(number) },
        .answer = answer,
        .data = &n_messages,
    };

    for (unsigned i = 0; i < 100; i++) {
        g_autoptr(GError) error = NULL;
        g_assert_cmpint(uprof_confined_job_run(spawner, &job, &error), ==, -1);
        g_assert_nonnull(strstr(error->message, "'other.elf'"));
    }
    g_assert_cmpuint(n_messages, ==, 2 * 100);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/confined-job/", cases[i].name, NULL);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_case);
    }
    g_test_add_func("/confined-job/again", test_again);
    g_test_add_func("/confined-job/ends-early", test_ends_early);
    return g_test_run();
}
