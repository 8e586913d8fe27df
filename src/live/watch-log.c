/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch-log-priv.h"

#include "uprof/clock.h"

enum {
    PPM = 1000 * 1000,
    /* of the time that a rule looks at, the part that must have been sampled, in percent */
    SAMPLED_PERCENT = 80,
    /* a change is compared with at least so many times the rule's time */
    BEFORE_TIMES = 3,
};

struct _UprofWatchLog {
    uint64_t keep_ns, bytes_max, bytes;
    bool is_short, has_said_short;
    GQueue steps; /* of UprofWatchStep, owned; the oldest first */
};

UprofWatchLog *
uprof_watch_log_new(uint64_t keep_ns, uint64_t bytes_max)
{
    UprofWatchLog *log = g_new0(UprofWatchLog, 1);

    log->keep_ns = keep_ns;
    log->bytes_max = bytes_max;
    g_queue_init(&log->steps);
    return log;
}

static void
free_step(gpointer data)
{
    UprofWatchStep *step = data;

    g_bytes_unref(step->slice);
    g_bytes_unref(step->facts);
    g_free(step);
}

void
uprof_watch_log_free(UprofWatchLog *log)
{
    if (!log)
        return;
    g_queue_clear_full(&log->steps, free_step);
    g_free(log);
}

static void
drop_oldest(UprofWatchLog *log)
{
    UprofWatchStep *step = g_queue_pop_head(&log->steps);

    log->bytes -= g_bytes_get_size(step->slice);
    free_step(step);
}

void
uprof_watch_log_drop_old(UprofWatchLog *log, uint64_t now_ns)
{
    const UprofWatchStep *oldest;

    while ((oldest = g_queue_peek_head(&log->steps)) && oldest->end_ns + log->keep_ns < now_ns)
        drop_oldest(log);
}

void
uprof_watch_log_add(UprofWatchLog *log, const UprofWatchStep *step)
{
    if (g_bytes_get_size(step->slice) > log->bytes_max) {
        log->is_short = true;
        g_bytes_unref(step->slice);
        g_bytes_unref(step->facts);
        return;
    }
    g_queue_push_tail(&log->steps, g_memdup2(step, sizeof(*step)));
    log->bytes += g_bytes_get_size(step->slice);
    uprof_watch_log_drop_old(log, step->end_ns);
    while (log->bytes > log->bytes_max) {
        log->is_short = true;
        drop_oldest(log);
    }
}

void
uprof_watch_log_say_short(UprofWatchLog *log, const char *shown, const UprofNotices *notices)
{
    if (log->has_said_short || !log->is_short)
        return;
    log->has_said_short = true;
    uprof_notice(notices, UPROF_NOTICE_WARNING,
                 "%s: its samples need more than %" G_GUINT64_FORMAT
                 " MiB, so less time is kept than --keep says; to keep more, use --keep-memory",
                 shown, log->bytes_max >> 20);
}

uint64_t
uprof_watch_rule_needs_ns(const UprofWatchRule *rule)
{
    const unsigned times = rule->is_change ? 1 + BEFORE_TIMES : 1;

    return rule->subject == UPROF_WATCH_EVENT ? 0 : times * rule->seconds * UPROF_NS_PER_S;
}

/* The samples of a time, and how long it was sampled. */
typedef struct {
    uint64_t sampled_ns, ticks, matched;
} Sum;

static Sum
add_steps(const UprofWatchLog *log, unsigned rule, uint64_t from_ns, uint64_t to_ns)
{
    Sum sum = { 0 };

    for (const GList *at = log->steps.tail; at; at = at->prev) {
        const UprofWatchStep *step = at->data;
        if (step->end_ns <= from_ns)
            break;
        if (step->end_ns > to_ns)
            continue;
        sum.sampled_ns += step->sampled_ns;
        sum.ticks += step->ticks;
        sum.matched += step->matched[rule];
    }
    return sum;
}

static uint64_t
share_ppm(const Sum *sum)
{
    return sum->ticks > 0 ? (uint64_t)((unsigned __int128)sum->matched * PPM / sum->ticks) : 0;
}

bool
uprof_watch_log_holds(const UprofWatchLog *log, const UprofWatchRule *rule, unsigned i)
{
    const UprofWatchStep *newest = log->steps.tail ? log->steps.tail->data : NULL;
    const uint64_t time_ns = rule->seconds * UPROF_NS_PER_S;

    if (!newest || rule->subject == UPROF_WATCH_EVENT)
        return false;
    const uint64_t from_ns = newest->end_ns > time_ns ? newest->end_ns - time_ns : 0;
    const Sum now = add_steps(log, i, from_ns, newest->end_ns);
    const Sum before = rule->is_change ? add_steps(log, i, 0, from_ns) : (Sum){ 0 };
    if (now.sampled_ns < time_ns * SAMPLED_PERCENT / 100 ||
        (rule->is_change && before.sampled_ns < BEFORE_TIMES * time_ns))
        return false;
    return uprof_watch_rule_holds(rule, share_ppm(&now), share_ppm(&before));
}

const GList *
uprof_watch_log_steps(const UprofWatchLog *log)
{
    return log->steps.head;
}
