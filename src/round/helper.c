/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "helper-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    POLL_MS = 1000,
    GRACE_S = 10, /* from SIGTERM to SIGKILL: time to resume guests and to write files */
    ANSWER_BYTES_MAX = 64 * 1024 * 1024,
    EXIT_CUT = 97, /* the child could not write its answer */
};

/* A child that the caller waits for. */
typedef struct {
    const UprofHelperPlan *plan;
    pid_t pid;
    int process;       /* pidfd; readable when the child has ended */
    int answer;        /* the pipe to read the answer from */
    GByteArray *bytes; /* borrowed; of the answer */
    /* when the time limit is over; when the child wrote last */
    uint64_t end_ns, heard_ns;
    uint64_t termed_ns; /* when the child got SIGTERM; 0: not yet */
    bool is_slow;       /* the child got SIGTERM because its time was over */
} Helper;

static bool is_cut; /* in the child */

void
uprof_helper_put(int fd, const char *text)
{
    size_t left = strlen(text) + 1;

    while (left > 0) {
        const ssize_t n = write(fd, text, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            is_cut = true;
            return;
        }
        text += n;
        left -= (size_t)n;
    }
}

void
uprof_helper_put_number(int fd, uint64_t number)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, number);

    uprof_helper_put(fd, text);
}

static G_GNUC_NORETURN void
run_child(const UprofHelperPlan *plan, pid_t parent, int fd)
{
    /* a process group of its own: only the round gets the signal of Ctrl-C, and sends SIGTERM */
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(UPROF_ERROR_FAILED);
    sigprocmask(SIG_SETMASK, &plan->mask, NULL);
    const int code = plan->work(fd, plan->data);
    fflush(NULL);
    _exit(is_cut ? EXIT_CUT : code);
}

/* Returns: false at the end of the answer */
static bool
read_answer(Helper *helper)
{
    uint8_t bytes[4096];

    for (;;) {
        const ssize_t n = read(helper->answer, bytes, sizeof(bytes));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN;
        if (n == 0)
            return false;
        helper->heard_ns = uprof_clock_now_ns();
        if (helper->bytes->len + (size_t)n <= ANSWER_BYTES_MAX)
            g_byte_array_append(helper->bytes, bytes, (guint)n);
    }
}

static void
terminate_child(Helper *helper)
{
    if (helper->termed_ns > 0)
        return;
    helper->termed_ns = uprof_clock_now_ns();
    kill(helper->pid, SIGTERM);
}

static void
read_signals(Helper *helper)
{
    struct signalfd_siginfo info;

    while (read(helper->plan->signals, &info, sizeof(info)) == sizeof(info)) {
        *helper->plan->signaled = true;
        terminate_child(helper);
    }
}

static void
check_time(Helper *helper)
{
    const UprofHelperPlan *plan = helper->plan;
    const uint64_t now_ns = uprof_clock_now_ns();

    if (now_ns >= helper->end_ns ||
        (plan->silence_ns > 0 && now_ns >= helper->heard_ns + plan->silence_ns)) {
        helper->is_slow |= helper->termed_ns == 0;
        terminate_child(helper);
    }
    if (helper->termed_ns > 0 && now_ns >= helper->termed_ns + GRACE_S * UPROF_NS_PER_S)
        kill(helper->pid, SIGKILL);
}

static void
wait_for_end(Helper *helper)
{
    struct pollfd waits[] = {
        { .fd = helper->process, .events = POLLIN },
        { .fd = helper->answer, .events = POLLIN },
        { .fd = helper->plan->signals, .events = POLLIN },
    };

    for (bool is_over = false; !is_over;) {
        const uint64_t now_ns = uprof_clock_now_ns();
        const uint64_t left_ms =
            helper->end_ns > now_ns ? (helper->end_ns - now_ns) / UPROF_NS_PER_MS + 1 : POLL_MS;
        poll(waits, G_N_ELEMENTS(waits), (int)MIN(left_ms, POLL_MS));
        is_over = waits[0].revents;
        if (!read_answer(helper))
            waits[1].fd = -1;
        if (waits[2].revents)
            read_signals(helper);
        check_time(helper);
    }
}

/* Drops the last text if it does not end with NUL: the child died while writing it. */
static GPtrArray *
split_answer(const GByteArray *bytes)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    const char *at = (const char *)bytes->data;
    size_t left = bytes->len;
    const char *end;

    while (left > 0 && (end = memchr(at, '\0', left))) {
        g_ptr_array_add(texts, g_strdup(at));
        left -= (size_t)(end + 1 - at);
        at = end + 1;
    }
    return texts;
}

static GPtrArray *
reap_child(Helper *helper, int *code, UprofHelperEnd *end)
{
    int status = 0;

    while (waitpid(helper->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *end = UPROF_HELPER_DONE;
    if (helper->is_slow)
        *end = UPROF_HELPER_SLOW;
    else if (!WIFEXITED(status) || WEXITSTATUS(status) == EXIT_CUT)
        *end = UPROF_HELPER_DIED;
    *code =
        *end != UPROF_HELPER_DIED && WIFEXITED(status) ? WEXITSTATUS(status) : UPROF_ERROR_FAILED;
    return split_answer(helper->bytes);
}

static bool
start_child(Helper *helper, GError **error)
{
    const pid_t parent = getpid();
    int pair[2];

    if (pipe2(pair, O_CLOEXEC) < 0)
        return uprof_error_fail_errno(error, "cannot make a pipe");
    fflush(NULL);
    helper->pid = fork();
    if (helper->pid == 0) {
        close(pair[0]);
        run_child(helper->plan, parent, pair[1]);
    }
    close(pair[1]);
    helper->answer = pair[0];
    if (helper->pid < 0)
        return uprof_error_fail_errno(error, "cannot start a process");
    fcntl(helper->answer, F_SETFL, O_NONBLOCK);
    helper->process = (int)syscall(SYS_pidfd_open, helper->pid, 0);
    if (helper->process >= 0)
        return true;
    uprof_error_fail_errno(error, "cannot watch a process");
    kill(helper->pid, SIGKILL);
    waitpid(helper->pid, NULL, 0);
    return false;
}

GPtrArray *
uprof_helper_run(const UprofHelperPlan *plan, int *code, UprofHelperEnd *end, GError **error)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    Helper helper = { .plan = plan, .process = -1, .answer = -1, .bytes = bytes };
    GPtrArray *texts = NULL;

    *code = UPROF_ERROR_FAILED;
    *end = UPROF_HELPER_DIED;
    helper.heard_ns = uprof_clock_now_ns();
    helper.end_ns = helper.heard_ns + plan->time_ns;
    if (start_child(&helper, error)) {
        wait_for_end(&helper);
        texts = reap_child(&helper, code, end);
    }
    if (helper.answer >= 0)
        close(helper.answer);
    if (helper.process >= 0)
        close(helper.process);
    return texts;
}
