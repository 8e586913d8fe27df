/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-rule.h - when `watch` keeps what it has recorded: the condition of --when
 *
 *   busy > 80 %                  the share of time in which vCPUs ran
 *   vcpu > 95 %                  the same, of the busiest vCPU; "vcpu 3": of that one
 *   function memcpy > 30 %       the share of time in a function or in what it calls
 *   process nginx < 1 %          the share of time of a process of a Linux guest
 *   busy change > 40 % for 5s    the share of the last five seconds, against the time before
 *   crash                        an event of libvirt: crash, reboot, watchdog, io-error, block-job
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    UPROF_WATCH_RULES_MAX = 32,
};

/** UprofWatchSubject: what a rule is about */
typedef enum {
    UPROF_WATCH_BUSY,
    UPROF_WATCH_VCPU,
    UPROF_WATCH_FUNCTION,
    UPROF_WATCH_PROCESS,
    UPROF_WATCH_EVENT,
} UprofWatchSubject;

/** UprofWatchRule: a condition. Strings are owned. */
typedef struct {
    char *text; /* as the user wrote it */
    UprofWatchSubject subject;
    char *name;         /* of the function, process, vCPU or event; "" for busy, or for any vCPU */
    bool is_change;     /* compares with the time before */
    bool is_below;      /* "<" */
    uint64_t limit_ppm; /* in millionths */
    unsigned seconds;   /* that the share is taken over */
} UprofWatchRule;

/** uprof_watch_rule_new: Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_USAGE */
UprofWatchRule *uprof_watch_rule_new(const char *text, GError **error);
void uprof_watch_rule_free(UprofWatchRule *rule);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofWatchRule, uprof_watch_rule_free)

/** uprof_watch_rule_needs_ns: Returns: how much time must be kept, so that the rule can be checked
 */
uint64_t uprof_watch_rule_needs_ns(const UprofWatchRule *rule);
