/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-log-priv.h"

#include "uprof/clock.h"

enum { KEEP_S = 60, BYTES_MAX = 10000, SLICE_BYTES = 100, TICKS = 50 };

/* Adds a step of one second, the @i-th, with @matched ticks of rule 0. */
static void
add_step(UprofWatchLog *log, unsigned i, uint64_t ticks, uint64_t matched, size_t bytes)
{
    g_autofree char *content = g_malloc0(bytes);
    UprofWatchStep step = {
        .start_ns = (i + 100) * UPROF_NS_PER_S,
        .end_ns = (i + 101) * UPROF_NS_PER_S,
        .sampled_ns = ticks > 0 ? UPROF_NS_PER_S : 0,
        .ticks = ticks,
        .matched[0] = matched,
        .slice = g_bytes_new(content, bytes),
        .facts = g_bytes_new_static("facts", 5),
    };

    uprof_watch_log_add(log, &step);
}

static unsigned
count_steps(const UprofWatchLog *log)
{
    return g_list_length((GList *)uprof_watch_log_steps(log));
}

static uint64_t
count_bytes(const UprofWatchLog *log)
{
    uint64_t bytes = 0;

    for (const GList *i = uprof_watch_log_steps(log); i; i = i->next)
        bytes += g_bytes_get_size(((const UprofWatchStep *)i->data)->slice);
    return bytes;
}

static UprofWatchLog *
make_log(void)
{
    return uprof_watch_log_new(KEEP_S * UPROF_NS_PER_S, BYTES_MAX);
}

static void
test_age(void)
{
    g_autoptr(UprofWatchLog) log = make_log();

    for (unsigned i = 0; i < 2 * KEEP_S; i++)
        add_step(log, i, TICKS, 0, SLICE_BYTES);
    g_assert_cmpuint(count_steps(log), ==, KEEP_S + 1);
    g_assert_cmpuint(count_bytes(log), ==, (KEEP_S + 1) * SLICE_BYTES);
    g_assert_cmpuint(((const UprofWatchStep *)uprof_watch_log_steps(log)->data)->end_ns, ==,
                     (2 * KEEP_S - 1 - KEEP_S + 101) * UPROF_NS_PER_S);
    uprof_watch_log_drop_old(log, (2 * KEEP_S + 101 + KEEP_S) * UPROF_NS_PER_S);
    g_assert_cmpuint(count_steps(log), ==, 0);
    g_assert_cmpuint(count_bytes(log), ==, 0);
}

static void
test_size(void)
{
    g_autoptr(UprofWatchLog) log = make_log();

    for (unsigned i = 0; i < 10; i++)
        add_step(log, i, TICKS, 0, BYTES_MAX / 4);
    g_assert_cmpuint(count_steps(log), ==, 4);
    /* a slice that is larger than the limit is not kept, and costs no other one */
    add_step(log, 10, TICKS, 0, BYTES_MAX + 1);
    g_assert_cmpuint(count_steps(log), ==, 4);
    g_assert_cmpuint(count_bytes(log), ==, BYTES_MAX);
}

static void
add_line(UprofNoticeKind kind, const char *text, void *data)
{
    GString *said = data;

    g_assert_cmpint(kind, ==, UPROF_NOTICE_WARNING);
    g_string_append_printf(said, "%s\n", text);
}

/* What --keep-memory drops is said once. What --keep drops is not said. */
static void
test_short(void)
{
    g_autoptr(UprofWatchLog) log = uprof_watch_log_new(KEEP_S * UPROF_NS_PER_S, 3 << 20);
    g_autoptr(GString) said = g_string_new(NULL);
    const UprofNotices notices = { .show = add_line, .data = said };

    for (unsigned i = 0; i < 2 * KEEP_S; i++) {
        add_step(log, i, TICKS, 0, SLICE_BYTES);
        uprof_watch_log_say_short(log, "web-1", &notices);
    }
    g_assert_cmpstr(said->str, ==, "");
    for (unsigned i = 2 * KEEP_S; i < 3 * KEEP_S; i++) {
        add_step(log, i, TICKS, 0, 1 << 20);
        uprof_watch_log_say_short(log, "web-1", &notices);
    }
    g_assert_cmpuint(count_steps(log), ==, 3);
    g_assert_cmpstr(said->str, ==,
                    "web-1: its samples need more than 3 MiB, so less time is kept than --keep "
                    "says; to keep more, use --keep-memory\n");
}

static void
test_share(void)
{
    g_autoptr(UprofWatchRule) rule = uprof_watch_rule_new("busy > 50 % for 5s", NULL);
    g_autoptr(UprofWatchLog) log = make_log();

    g_assert_false(uprof_watch_log_holds(log, rule, 0));
    for (unsigned i = 0; i < 3; i++)
        add_step(log, i, TICKS, TICKS, SLICE_BYTES);
    /* three of five seconds are too few */
    g_assert_false(uprof_watch_log_holds(log, rule, 0));
    add_step(log, 3, TICKS, TICKS, SLICE_BYTES);
    g_assert_true(uprof_watch_log_holds(log, rule, 0));
    for (unsigned i = 4; i < 7; i++)
        add_step(log, i, TICKS, 0, SLICE_BYTES);
    g_assert_false(uprof_watch_log_holds(log, rule, 0));
}

/* Seconds in which the guest was paused say nothing. */
static void
test_paused(void)
{
    g_autoptr(UprofWatchRule) rule = uprof_watch_rule_new("busy < 10 % for 5s", NULL);
    g_autoptr(UprofWatchLog) log = make_log();

    for (unsigned i = 0; i < 10; i++)
        add_step(log, i, 0, 0, SLICE_BYTES);
    g_assert_false(uprof_watch_log_holds(log, rule, 0));
    for (unsigned i = 10; i < 15; i++)
        add_step(log, i, TICKS, 1, SLICE_BYTES);
    g_assert_true(uprof_watch_log_holds(log, rule, 0));
}

static void
test_change(void)
{
    g_autoptr(UprofWatchRule) rule = uprof_watch_rule_new("busy change > 40 % for 5s", NULL);
    g_autoptr(UprofWatchLog) log = make_log();
    unsigned i = 0;

    for (; i < 10; i++)
        add_step(log, i, TICKS, TICKS / 10, SLICE_BYTES);
    for (; i < 15; i++)
        add_step(log, i, TICKS, TICKS, SLICE_BYTES);
    /* ten seconds before are too few to compare with */
    g_assert_false(uprof_watch_log_holds(log, rule, 0));
    for (; i < 30; i++)
        add_step(log, i, TICKS, TICKS / 10, SLICE_BYTES);
    g_assert_false(uprof_watch_log_holds(log, rule, 0));
    for (; i < 35; i++)
        add_step(log, i, TICKS, TICKS, SLICE_BYTES);
    g_assert_true(uprof_watch_log_holds(log, rule, 0));
}

/* At a low rate most seconds have no tick. */
static void
test_low_rate(void)
{
    g_autoptr(UprofWatchRule) rule = uprof_watch_rule_new("busy > 50 %", NULL);
    g_autoptr(UprofWatchLog) log = make_log();

    for (unsigned i = 0; i < 30; i++) {
        UprofWatchStep step = {
            .start_ns = (i + 100) * UPROF_NS_PER_S,
            .end_ns = (i + 101) * UPROF_NS_PER_S,
            .sampled_ns = UPROF_NS_PER_S,
            .ticks = i % 3 == 0,
            .matched[0] = i % 3 == 0,
            .slice = g_bytes_new_static("x", 1),
            .facts = g_bytes_new_static("facts", 5),
        };
        uprof_watch_log_add(log, &step);
    }
    g_assert_true(uprof_watch_log_holds(log, rule, 0));
}

static void
test_needs(void)
{
    g_autoptr(UprofWatchRule) share = uprof_watch_rule_new("busy > 50 % for 5s", NULL);
    g_autoptr(UprofWatchRule) change = uprof_watch_rule_new("busy change > 50 % for 5s", NULL);
    g_autoptr(UprofWatchRule) event = uprof_watch_rule_new("crash", NULL);

    g_assert_cmpuint(uprof_watch_rule_needs_ns(share), ==, 5 * UPROF_NS_PER_S);
    g_assert_cmpuint(uprof_watch_rule_needs_ns(change), ==, 20 * UPROF_NS_PER_S);
    g_assert_cmpuint(uprof_watch_rule_needs_ns(event), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch-log/age", test_age);
    g_test_add_func("/watch-log/size", test_size);
    g_test_add_func("/watch-log/short", test_short);
    g_test_add_func("/watch-log/share", test_share);
    g_test_add_func("/watch-log/paused", test_paused);
    g_test_add_func("/watch-log/change", test_change);
    g_test_add_func("/watch-log/low-rate", test_low_rate);
    g_test_add_func("/watch-log/needs", test_needs);
    return g_test_run();
}
