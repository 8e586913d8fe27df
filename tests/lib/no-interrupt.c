/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * no-interrupt.c - a library to preload: PTRACE_INTERRUPT has no effect on traced threads, as if
 * the threads were in uninterruptible sleep
 *
 * Each variable is a number N of PTRACE_INTERRUPT requests; the default is 0.
 *     UPROF_TEST_LOST        the first N requests have no effect
 *     UPROF_TEST_INTERRUPTS  the next N requests reach the kernel; all later requests do not
 *     UPROF_TEST_HIDDEN      every second stop by the first N requests that reach the kernel is
 *                            hidden from a waitpid() that waits; waitpid() with WNOHANG reports it
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
