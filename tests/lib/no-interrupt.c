/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * no-interrupt.c - to be preloaded: after a while threads that are traced are
 * not interrupted any more, as if they were in an uninterruptible sleep
 *
 * UPROF_TEST_INTERRUPTS: how many PTRACE_INTERRUPT come through before (0).
 * UPROF_TEST_LOST: how many do not before that (0).
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/types.h>

long ptrace(enum __ptrace_request request, ...);

static int
ask_number(const char *variable)
{
    const char *asked = getenv(variable);

    return asked ? atoi(asked) : 0;
}

long
ptrace(enum __ptrace_request request, ...)
{
    static int n_left = -1, n_lost;
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
    }
    if (request == PTRACE_INTERRUPT && n_lost > 0) {
        n_lost--;
        return 0;
    }
    if (request == PTRACE_INTERRUPT && n_left-- <= 0) {
        n_left = 0;
        return 0;
    }
    *(void **)&real = dlsym(RTLD_NEXT, "ptrace");
    return real(request, thread, address, data);
}
