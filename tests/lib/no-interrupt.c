/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * no-interrupt.c - to be preloaded: after a while threads that are traced are
 * not interrupted any more, as if they were in an uninterruptible sleep
 *
 * UPROF_TEST_INTERRUPTS: how many PTRACE_INTERRUPT come through before (0).
 * UPROF_TEST_LOST: how many do not before that (0).
 * UPROF_TEST_HIDDEN: of so many (0) that come through each second one's stop is not seen in time:
 *   only who looks without waiting sees it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

long ptrace(enum __ptrace_request request, ...);
pid_t waitpid(pid_t thread, int *status, int options);

static bool is_hidden;

static int
ask_number(const char *variable)
{
    const char *asked = getenv(variable);

    return asked ? atoi(asked) : 0;
}

long
ptrace(enum __ptrace_request request, ...)
{
    static int n_left = -1, n_lost, n_hidden, n_sent;
    long (*real)(enum __ptrace_request, pid_t, void *, void *);
    va_list arguments;

    va_start(arguments, request);
    const pid_t thread = va_arg(arguments, pid_t);
    void *address = va_arg(arguments, void *);
    void *data = va_arg(arguments, void *);
    va_end(arguments);

    if (n_left < 0) {
        n_left = ask_number("UPROF_TEST_INTERRUPTS");
        n_lost = ask_number("UPROF_TEST_LOST");
        n_hidden = ask_number("UPROF_TEST_HIDDEN");
    }
    if (request == PTRACE_INTERRUPT && n_lost > 0) {
        n_lost--;
        return 0;
    }
    if (request == PTRACE_INTERRUPT && n_left-- <= 0) {
        n_left = 0;
        return 0;
    }
    if (request == PTRACE_INTERRUPT) {
        n_sent++;
        is_hidden = n_sent % 2 == 0 && n_sent <= n_hidden;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
    return real(request, thread, address, data);
}

pid_t
waitpid(pid_t thread, int *status, int options)
{
    pid_t (*real)(pid_t, int *, int);

    if (is_hidden && (options & __WALL) && !(options & WNOHANG)) {
        usleep(1000);
        errno = EINTR;
        return -1;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "waitpid");
    return real(thread, status, options);
}
