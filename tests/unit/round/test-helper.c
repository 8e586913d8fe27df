/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <glib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../src/round/helper-priv.h"
#include "uprof/error.h"

#define MS G_GUINT64_CONSTANT(1000000)
#define S (1000 * MS)

static int signals = -1;
static sigset_t mask;
static gint *has_begun; /* shared with children */

static int
answer(int fd, void *data)
{
    uprof_helper_put(fd, "one");
    uprof_helper_put(fd, "");
    uprof_helper_put_number(fd, G_MAXUINT64);
    return GPOINTER_TO_INT(data);
}

static int
answer_much(int fd, void *data)
{
    g_autofree char *text = g_strnfill(1000 * 1000, 'x');

    for (int i = 0; i < 5; i++)
        uprof_helper_put(fd, text);
    return 0;
}

static int
cut_answer(int fd, void *data)
{
    uprof_helper_put(fd, "whole");
    if (write(fd, "half", 4) != 4)
        return 1;
    kill(getpid(), SIGKILL);
    return 0;
}

/* Cannot write the last text of its answer, and reports success. */
static int
lose_answer(int fd, void *data)
{
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    uprof_helper_put(fd, "first");
    uprof_helper_put(full, "lost");
    return 0;
}

static int
hang(int fd, void *data)
{
    uprof_helper_put(fd, "alive");
    g_atomic_int_set(has_begun, 1);
    for (;;)
        pause();
    return 0;
}

/* Waits for SIGTERM, then sends its results. @data: if not NULL, sends its parent SIGINT before */
static int
hang_gently(int fd, void *data)
{
    sigset_t set;
    int number;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    g_atomic_int_set(has_begun, 1);
    if (data)
        kill(getppid(), SIGINT);
    sigwait(&set, &number);
    uprof_helper_put(fd, "saved");
    return 7;
}

static int
talk_on(int fd, void *data)
{
    for (int i = 0; i < 12; i++) {
        uprof_helper_put(fd, ".");
        g_usleep(50 * 1000);
    }
    return 0;
}

static GPtrArray *
run(int (*work)(int, void *), void *data, uint64_t time_ns, uint64_t silence_ns, int *code,
    UprofHelperEnd *end, bool *signaled)
{
    g_autoptr(GError) error = NULL;
    bool ignored = false;
    const UprofHelperPlan plan = {
        .work = work,
        .data = data,
        .time_ns = time_ns,
        .silence_ns = silence_ns,
        .signals = signals,
        .mask = mask,
        .signaled = signaled ? signaled : &ignored,
    };
    GPtrArray *texts = uprof_helper_run(&plan, code, end, &error);

    g_assert_no_error(error);
    g_assert_cmpint(waitpid(-1, NULL, WNOHANG), ==, -1); /* no child is left */
    return texts;
}

/* Repeats the run if its time ended before the child began. This happens on a busy machine. */
static GPtrArray *
run_begun(int (*work)(int, void *), uint64_t time_ns, uint64_t silence_ns, int *code,
          UprofHelperEnd *end)
{
    enum { TRIES_MAX = 10 };
    GPtrArray *texts = NULL;

    g_atomic_int_set(has_begun, 0);
    for (unsigned n = 0; !g_atomic_int_get(has_begun) && n < TRIES_MAX; n++) {
        g_clear_pointer(&texts, g_ptr_array_unref);
        texts = run(work, NULL, time_ns, silence_ns, code, end, NULL);
    }
    return texts;
}

static void
test_answer(void)
{
    UprofHelperEnd end;
    int code;
    g_autoptr(GPtrArray) texts = run(answer, GINT_TO_POINTER(3), 60 * S, 0, &code, &end, NULL);

    g_assert_cmpint(end, ==, UPROF_HELPER_DONE);
    g_assert_cmpint(code, ==, 3);
    g_assert_cmpuint(texts->len, ==, 3);
    g_assert_cmpstr(texts->pdata[0], ==, "one");
    g_assert_cmpstr(texts->pdata[1], ==, "");
    g_assert_cmpstr(texts->pdata[2], ==, "18446744073709551615");

    /* more than a pipe holds */
    g_autoptr(GPtrArray) much = run(answer_much, NULL, 60 * S, 0, &code, &end, NULL);
    g_assert_cmpint(end, ==, UPROF_HELPER_DONE);
    g_assert_cmpuint(much->len, ==, 5);
}

static void
test_died(void)
{
    UprofHelperEnd end;
    int code;
    g_autoptr(GPtrArray) texts = run(cut_answer, NULL, 60 * S, 0, &code, &end, NULL);

    g_assert_cmpint(end, ==, UPROF_HELPER_DIED);
    g_assert_cmpint(code, ==, 1);
    g_assert_cmpuint(texts->len, ==, 1);
    g_assert_cmpstr(texts->pdata[0], ==, "whole");
}

static void
test_lost(void)
{
    UprofHelperEnd end;
    int code;
    g_autoptr(GPtrArray) texts = run(lose_answer, NULL, 60 * S, 0, &code, &end, NULL);

    g_assert_cmpint(end, ==, UPROF_HELPER_DIED);
    g_assert_cmpint(code, ==, UPROF_ERROR_FAILED);
    g_assert_cmpuint(texts->len, ==, 1);
}

static void
test_slow(void)
{
    UprofHelperEnd end;
    int code;
    g_autoptr(GPtrArray) texts = run_begun(hang, 200 * MS, 0, &code, &end);
    g_assert_cmpint(end, ==, UPROF_HELPER_SLOW);
    g_assert_cmpuint(texts->len, ==, 1);

    /* the texts of a helper that is too slow are kept */
    g_autoptr(GPtrArray) saved = run_begun(hang_gently, 200 * MS, 0, &code, &end);
    g_assert_cmpint(end, ==, UPROF_HELPER_SLOW);
    g_assert_cmpint(code, ==, 7);
    g_assert_cmpuint(saved->len, ==, 1);
    g_assert_cmpstr(saved->pdata[0], ==, "saved");
}

static void
test_silent(void)
{
    UprofHelperEnd end;
    int code;
    g_autoptr(GPtrArray) silent = run_begun(hang, 600 * S, 200 * MS, &code, &end);
    g_assert_cmpint(end, ==, UPROF_HELPER_SLOW);
    g_assert_cmpuint(silent->len, ==, 1);

    g_autoptr(GPtrArray) talking = run(talk_on, NULL, 600 * S, 30 * S, &code, &end, NULL);
    g_assert_cmpint(end, ==, UPROF_HELPER_DONE);
    g_assert_cmpuint(talking->len, ==, 12);
}

/* A signal to the round also ends its helper. The helper may save results, and is not too slow. */
static void
test_signal(void)
{
    UprofHelperEnd end;
    bool signaled = false;
    int code;
    g_autoptr(GPtrArray) texts =
        run(hang_gently, GINT_TO_POINTER(1), 600 * S, 0, &code, &end, &signaled);

    g_assert_true(signaled);
    g_assert_cmpint(end, ==, UPROF_HELPER_DONE);
    g_assert_cmpint(code, ==, 7);
    g_assert_cmpstr(texts->pdata[0], ==, "saved");
}

/* If the round is killed, its helper ends, too. */
static void
test_orphan(void)
{
    int pair[2];
    char byte;

    g_assert_cmpint(pipe(pair), ==, 0);
    const pid_t round = fork();
    if (round == 0) {
        UprofHelperEnd end;
        int code;
        close(pair[0]);
        /* the helper inherits the pipe, which ends when both processes have ended */
        g_ptr_array_unref(run(hang, NULL, 600 * S, 0, &code, &end, NULL));
        _exit(0);
    }
    close(pair[1]);
    g_usleep(200 * 1000);
    kill(round, SIGKILL);
    g_assert_cmpint(waitpid(round, NULL, 0), ==, round);
    g_assert_cmpint(read(pair[0], &byte, 1), ==, 0);
    close(pair[0]);
}

int
main(int argc, char **argv)
{
    sigset_t wanted;

    g_test_init(&argc, &argv, NULL);
    has_begun =
        mmap(NULL, sizeof(*has_begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    g_assert_true(has_begun != MAP_FAILED);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGINT);
    sigprocmask(SIG_BLOCK, &wanted, &mask);
    signals = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    g_test_add_func("/helper/answer", test_answer);
    g_test_add_func("/helper/died", test_died);
    g_test_add_func("/helper/lost", test_lost);
    g_test_add_func("/helper/slow", test_slow);
    g_test_add_func("/helper/silent", test_silent);
    g_test_add_func("/helper/signal", test_signal);
    g_test_add_func("/helper/orphan", test_orphan);
    return g_test_run();
}
