/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-trigger-priv.h"

#include "uprof/clock.h"

enum { START_S = 100, REST_S = 60 };

typedef struct {
    UprofWatchTriggers triggers;
    GString *said;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->said = g_string_new(NULL);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_watch_triggers_clear(&fixture->triggers);
    g_string_free(fixture->said, TRUE);
}

static void
keep_text(UprofNoticeKind kind, const char *text, void *data)
{
    GString *said = data;

    g_assert_cmpint(kind, ==, UPROF_NOTICE_HINT);
    g_string_append(said, text);
}

/* Rule @i, "rule-I", holds or not. @s: seconds since the start */
static bool
check_rule(Fixture *fixture, unsigned i, bool holds, unsigned s)
{
    g_autofree char *text = g_strdup_printf("rule-%u", i);

    return uprof_watch_triggers_check_rule(&fixture->triggers, i, holds, text,
                                           (START_S + s) * UPROF_NS_PER_S, REST_S * UPROF_NS_PER_S);
}

static bool
take_event(Fixture *fixture, const char *what, unsigned s)
{
    return uprof_watch_triggers_take_event(&fixture->triggers, what, (START_S + s) * UPROF_NS_PER_S,
                                           REST_S * UPROF_NS_PER_S);
}

/* @left_out: (nullable): what is said */
static void
assert_end(Fixture *fixture, const char *trigger, const char *left_out)
{
    const UprofNotices notices = { .show = keep_text, .data = fixture->said };

    g_string_truncate(fixture->said, 0);
    g_autofree char *text = uprof_watch_triggers_end(&fixture->triggers, "web-1", &notices);
    g_assert_cmpstr(text, ==, trigger);
    g_assert_cmpstr(fixture->said->str, ==, left_out ? left_out : "");
    g_assert_null(fixture->triggers.text);
}

/* A rule triggers once while it holds, and again after it has not held. */
static void
test_once(Fixture *fixture, gconstpointer data)
{
    g_assert_false(check_rule(fixture, 0, false, 0));
    g_assert_true(check_rule(fixture, 0, true, 1));
    g_assert_cmpuint(fixture->triggers.time_ns, ==, (START_S + 1) * UPROF_NS_PER_S);
    g_assert_false(check_rule(fixture, 0, true, 2));
    assert_end(fixture, "rule-0", NULL);
    g_assert_false(check_rule(fixture, 0, true, 1 + 2 * REST_S));
    g_assert_false(check_rule(fixture, 0, false, 2 + 2 * REST_S));
    g_assert_true(check_rule(fixture, 0, true, 3 + 2 * REST_S));
    assert_end(fixture, "rule-0", NULL);
}

/* A rule that begins to hold too soon triggers at the end of the rest, if it still holds then. */
static void
test_late(Fixture *fixture, gconstpointer data)
{
    g_assert_true(check_rule(fixture, 0, true, 1));
    assert_end(fixture, "rule-0", NULL);
    g_assert_false(check_rule(fixture, 1, true, 2));
    g_assert_false(check_rule(fixture, 2, true, 2));
    g_assert_false(check_rule(fixture, 1, true, REST_S));
    g_assert_false(check_rule(fixture, 2, false, REST_S));
    g_assert_true(check_rule(fixture, 1, true, REST_S + 1));
    g_assert_false(check_rule(fixture, 2, false, REST_S + 1));
    g_assert_false(check_rule(fixture, 1, true, 3 * REST_S));
    /* rule 2 counts once, and rule 1 was only late */
    assert_end(fixture, "rule-1",
               "web-1: left out 1 more trigger, which came too soon after others");
}

/* While a trigger waits for the time after it, no other begins, even if that is the longer time. */
static void
test_waiting(Fixture *fixture, gconstpointer data)
{
    g_assert_true(check_rule(fixture, 0, true, 0));
    g_assert_false(check_rule(fixture, 1, true, 2 * REST_S));
    g_assert_false(take_event(fixture, "crash", 2 * REST_S));
    assert_end(fixture, "rule-0",
               "web-1: left out 1 more trigger, which came too soon after others");
    g_assert_true(check_rule(fixture, 1, true, 2 * REST_S + 1));
    assert_end(fixture, "rule-1", NULL);
}

/* An event that comes too soon never triggers. */
static void
test_events(Fixture *fixture, gconstpointer data)
{
    g_assert_true(take_event(fixture, "io-error", 0));
    /* one fault, many events */
    g_assert_false(take_event(fixture, "io-error", 1));
    g_assert_false(take_event(fixture, "watchdog", 1));
    assert_end(fixture, "io-error",
               "web-1: left out 1 more trigger, which came too soon after others");
    g_assert_false(take_event(fixture, "io-error", REST_S - 1));
    g_assert_true(take_event(fixture, "watchdog", REST_S));
    assert_end(fixture, "watchdog",
               "web-1: left out 1 more trigger, which came too soon after others");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/watch-trigger/once", Fixture, NULL, set_up, test_once, tear_down);
    g_test_add("/watch-trigger/late", Fixture, NULL, set_up, test_late, tear_down);
    g_test_add("/watch-trigger/waiting", Fixture, NULL, set_up, test_waiting, tear_down);
    g_test_add("/watch-trigger/events", Fixture, NULL, set_up, test_events, tear_down);
    return g_test_run();
}
