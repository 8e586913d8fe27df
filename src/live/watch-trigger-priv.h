/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-trigger-priv.h - the triggers of a domain: which rule or event writes a profile, and when
 *
 * A rule triggers when it begins to hold. If that is too soon after another trigger, and the rule
 * still holds later, it triggers then; else it is left out. An event that comes too soon is left
 * out.
 */
#pragma once

#include "uprof/notice.h"
#include "uprof/watch-rule.h"

/** UprofWatchRuleState: the state of a rule for one domain */
typedef enum {
    UPROF_WATCH_RULE_RESTS,         /* does not hold */
    UPROF_WATCH_RULE_WAITS,         /* holds, but began to hold too soon after another trigger */
    UPROF_WATCH_RULE_HAS_TRIGGERED, /* holds, and has triggered */
} UprofWatchRuleState;

/** UprofWatchTriggers: of one domain; empty: all zero */
typedef struct {
    UprofWatchRuleState rules[UPROF_WATCH_RULES_MAX];
    char *text;          /* (nullable): owned: the trigger that waits for the time after it */
    uint64_t time_ns;    /* when it came */
    uint64_t last_ns;    /* when the last trigger came; 0: none */
    unsigned n_left_out; /* triggers that were left out, since the last profile */
} UprofWatchTriggers;

void uprof_watch_triggers_clear(UprofWatchTriggers *triggers);

/**
 * uprof_watch_triggers_check_rule:
 * @i: the number of the rule
 * @text: of the rule
 * @rest_ns: the least time between two triggers
 *
 * Returns: true if a trigger begins
 */
bool uprof_watch_triggers_check_rule(UprofWatchTriggers *triggers, unsigned i, bool holds,
                                     const char *text, uint64_t now_ns, uint64_t rest_ns);

/**
 * uprof_watch_triggers_take_event: an event has come that is a trigger
 *
 * The same event again, before the profile is written, is part of the trigger.
 *
 * Returns: true if a trigger begins
 */
bool uprof_watch_triggers_take_event(UprofWatchTriggers *triggers, const char *what,
                                     uint64_t now_ns, uint64_t rest_ns);

/**
 * uprof_watch_triggers_end: ends the trigger, and says how many others were left out
 * @shown: the domain's name, safe to print
 *
 * Returns: (transfer full): @text
 */
char *uprof_watch_triggers_end(UprofWatchTriggers *triggers, const char *shown,
                               const UprofNotices *notices);
