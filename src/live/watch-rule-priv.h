/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * watch-rule-priv.h - checks the conditions of --when
 */
#pragma once

#include "uprof/watch-rule.h"

enum {
    UPROF_WATCH_RULE_S = 10, /* seconds that a share is taken over, without "for" */
};

/** uprof_watch_rule_is_event: does the event of libvirt meet the rule? */
bool uprof_watch_rule_is_event(const UprofWatchRule *rule, const char *event);

/**
 * uprof_watch_rule_holds:
 * @now_ppm: the share of the rule's time until now
 * @before_ppm: the share of the time before
 */
bool uprof_watch_rule_holds(const UprofWatchRule *rule, uint64_t now_ppm, uint64_t before_ppm);
