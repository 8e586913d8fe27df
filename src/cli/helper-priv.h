/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * helper-priv.h - one step of a round, in a process of its own
 *
 * What talks to a hypervisor daemon may wait for it for ever, and a library that
 * crashes takes its process with it. The round itself never connects: each step
 * that does is a child with a time limit, which dies with the round. Its answer
 * is texts, which come through a pipe.
 */
#pragma once

#include <glib.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofHelperEnd: how it ended */
typedef enum {
    UPROF_HELPER_DONE,
    UPROF_HELPER_DIED,
    UPROF_HELPER_SLOW, /* it was ended: by SIGTERM, and if that did not help, by SIGKILL */
} UprofHelperEnd;

/**
 * UprofHelperPlan:
 * @work: runs in the child, without connection or thread; puts its answer into @fd
 * @time_ns: after which it is ended
 * @silence_ns: the same, if nothing has come from it for so long; 0: it may be silent
 * @signals: a signalfd: SIGTERM and its like end the child, gently
 * @mask: of signals, for the child
 * @signaled: (inout): set when one has come
 */
typedef struct {
    int (*work)(int fd, void *data);
    void *data;
    uint64_t time_ns;
    uint64_t silence_ns;
    int signals;
    sigset_t mask;
    bool *signaled;
} UprofHelperPlan;

/**
 * uprof_helper_run:
 * @code: (out): what @work returned; 1 unless it is done
 * @end: (out)
 *
 * Returns: (transfer full) (nullable): of char: the texts of its answer that are
 *   whole; %NULL with %UPROF_ERROR_FAILED if there can be no child
 */
GPtrArray *
uprof_helper_run(const UprofHelperPlan *plan, int *code, UprofHelperEnd *end, GError **error);

/** uprof_helper_put: in the child: one text more */
void uprof_helper_put(int fd, const char *text);

/** uprof_helper_put_number: the same, in decimal */
void uprof_helper_put_number(int fd, uint64_t number);
