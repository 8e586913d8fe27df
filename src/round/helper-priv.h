/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * helper-priv.h - one step of a round, in a process of its own
 *
 * A call to a hypervisor daemon may never return, and a library may crash. So the round itself
 * never connects. A child process with a time limit does each step that needs a connection. The
 * child sends its answer through a pipe, as a list of texts. If the round dies, the kernel kills
 * the child.
 */
#pragma once

#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofHelperEnd: how the child ended */
typedef enum {
    UPROF_HELPER_DONE, /* the child has exited */
    /* a signal has killed the child in time, or the child could not write its answer */
    UPROF_HELPER_DIED,
    UPROF_HELPER_SLOW, /* its time was over: SIGTERM or, 10 s later, SIGKILL has ended the child */
} UprofHelperEnd;

/** UprofHelperPlan: the work of the child, and its time limits; all pointers are borrowed */
typedef struct {
    /* Called in the child: writes the answer to @fd. Returns: the exit status */
    int (*work)(int fd, void *data);
    void *data;          /* passed to @work */
    uint64_t time_ns;    /* time limit of the step */
    uint64_t silence_ns; /* limit of the time between two writes of the child; 0: none */
    int signals;         /* a signalfd; if a signal arrives, the child gets SIGTERM */
    sigset_t mask;       /* signal mask of the child */
    bool *signaled;      /* (inout): set to true if a signal arrives in @signals */
} UprofHelperPlan;

/**
 * uprof_helper_run: starts the child, and waits until it has ended
 * @code: (out): exit status of the child; %UPROF_ERROR_FAILED if the child died
 * @end: (out)
 *
 * Returns: (transfer full) (nullable): of char: the texts of the answer; %NULL with
 *   %UPROF_ERROR_FAILED if no child can be started
 */
GPtrArray *
uprof_helper_run(const UprofHelperPlan *plan, int *code, UprofHelperEnd *end, GError **error);

/** uprof_helper_put: adds a text to the answer; only the child calls it */
void uprof_helper_put(int fd, const char *text);

/** uprof_helper_put_number: adds a number, as a decimal text; only the child calls it */
void uprof_helper_put_number(int fd, uint64_t number);
