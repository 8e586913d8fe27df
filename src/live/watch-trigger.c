/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch-trigger-priv.h"

void
uprof_watch_triggers_clear(UprofWatchTriggers *triggers)
{
    g_free(triggers->text);
    *triggers = (UprofWatchTriggers){ 0 };
}

/* Returns: false if another trigger came too short a time ago */
static bool
begin_trigger(UprofWatchTriggers *triggers, const char *text, uint64_t now_ns, uint64_t rest_ns)
{
    if (triggers->text || (triggers->last_ns > 0 && now_ns - triggers->last_ns < rest_ns))
        return false;
    triggers->text = g_strdup(text);
    triggers->time_ns = triggers->last_ns = now_ns;
    return true;
}

bool
uprof_watch_triggers_check_rule(UprofWatchTriggers *triggers, unsigned i, bool holds,
                                const char *text, uint64_t now_ns, uint64_t rest_ns)
{
    UprofWatchRuleState *state = &triggers->rules[i];

    if (!holds) {
        triggers->n_left_out += *state == UPROF_WATCH_RULE_WAITS;
        *state = UPROF_WATCH_RULE_RESTS;
        return false;
    }
    if (*state == UPROF_WATCH_RULE_HAS_TRIGGERED)
        return false;
    if (begin_trigger(triggers, text, now_ns, rest_ns)) {
        *state = UPROF_WATCH_RULE_HAS_TRIGGERED;
        return true;
    }
    *state = UPROF_WATCH_RULE_WAITS;
    return false;
}

bool
uprof_watch_triggers_take_event(UprofWatchTriggers *triggers, const char *what, uint64_t now_ns,
                                uint64_t rest_ns)
{
    if (g_strcmp0(triggers->text, what) == 0)
        return false;
    if (begin_trigger(triggers, what, now_ns, rest_ns))
        return true;
    triggers->n_left_out++;
    return false;
}

char *
uprof_watch_triggers_end(UprofWatchTriggers *triggers, const char *shown,
                         const UprofNotices *notices)
{
    if (triggers->n_left_out > 0)
        uprof_notice(notices, UPROF_NOTICE_HINT,
                     "%s: left out %u more trigger%s, which came too soon after others", shown,
                     triggers->n_left_out, triggers->n_left_out == 1 ? "" : "s");
    triggers->n_left_out = 0;
    return g_steal_pointer(&triggers->text);
}
