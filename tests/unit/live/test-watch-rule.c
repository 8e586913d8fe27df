/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/watch-rule-priv.h"

#include "uprof/error.h"

#include <string.h>

static void
test_forms(void)
{
    static const struct {
        const char *text;
        UprofWatchSubject subject;
        const char *name;
        bool is_change, is_below;
        unsigned limit_ppm, seconds;
    } rows[] = {
        { "busy > 80 %", UPROF_WATCH_BUSY, "", false, false, 800000, UPROF_WATCH_RULE_S },
        { " busy>80", UPROF_WATCH_BUSY, "", false, false, 800000, UPROF_WATCH_RULE_S },
        { "busy < 0.5% for 3s", UPROF_WATCH_BUSY, "", false, true, 5000, 3 },
        { "vcpu > 95 %", UPROF_WATCH_VCPU, "", false, false, 950000, UPROF_WATCH_RULE_S },
        { "vcpu 3 > 95 % for 1m", UPROF_WATCH_VCPU, "3", false, false, 950000, 60 },
        { "function operator new > 30 %", UPROF_WATCH_FUNCTION, "operator new", false, false,
          300000, UPROF_WATCH_RULE_S },
        { "function A<b, C>::operator>> > 30 %", UPROF_WATCH_FUNCTION, "A<b, C>::operator>>", false,
          false, 300000, UPROF_WATCH_RULE_S },
        { "function wait for it > 30 %", UPROF_WATCH_FUNCTION, "wait for it", false, false, 300000,
          UPROF_WATCH_RULE_S },
        { "process nginx change > 40 % for 5s", UPROF_WATCH_PROCESS, "nginx", true, false, 400000,
          5 },
        { "crash", UPROF_WATCH_EVENT, "crash", false, false, 0, 0 },
        { "block-job", UPROF_WATCH_EVENT, "block-job", false, false, 0, 0 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofWatchRule) rule = uprof_watch_rule_new(rows[i].text, &error);
        g_assert_no_error(error);
        g_assert_cmpint(rule->subject, ==, rows[i].subject);
        g_assert_cmpstr(rule->name, ==, rows[i].name);
        g_assert_true(rule->is_change == rows[i].is_change);
        g_assert_true(rule->is_below == rows[i].is_below);
        g_assert_cmpuint(rule->limit_ppm, ==, rows[i].limit_ppm);
        g_assert_cmpuint(rule->seconds, ==, rows[i].seconds);
    }
}

static void
test_bad(void)
{
    static const char *const texts[] = {
        "",
        "busy",
        "busy >",
        "busy > %",
        "busy > 101 %",
        "busy > -1 %",
        "busy > x %",
        "busy 3 > 80 %",
        "function > 80 %",
        "process  > 80 %",
        "vcpu three > 80 %",
        "load > 3",
        "busy change < 30 %",
        "busy > 80 % for 0s",
        "busy > 80 % for 2h",
        "busy > 80 % for ever",
        "crashes",
        "> 5 %",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_null(uprof_watch_rule_new(texts[i], &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_USAGE);
        g_assert_nonnull(strstr(error->message, texts[i]));
    }
}

static bool
holds(const char *text, uint64_t now_ppm, uint64_t before_ppm)
{
    g_autoptr(UprofWatchRule) rule = uprof_watch_rule_new(text, NULL);

    return uprof_watch_rule_holds(rule, now_ppm, before_ppm);
}

static void
test_holds(void)
{
    g_assert_true(holds("busy > 80 %", 800001, 0));
    g_assert_false(holds("busy > 80 %", 800000, 0));
    g_assert_true(holds("busy < 5 %", 49999, 0));
    g_assert_false(holds("busy < 5 %", 50000, 0));
    g_assert_true(holds("busy change > 30 %", 900000, 500000));
    g_assert_true(holds("busy change > 30 %", 100000, 500000));
    g_assert_false(holds("busy change > 30 %", 700000, 500000));
}

static void
test_events(void)
{
    g_autoptr(UprofWatchRule) crash = uprof_watch_rule_new("crash", NULL);
    g_autoptr(UprofWatchRule) busy = uprof_watch_rule_new("busy > 80 %", NULL);

    g_assert_true(uprof_watch_rule_is_event(crash, "crash"));
    g_assert_false(uprof_watch_rule_is_event(crash, "reboot"));
    g_assert_false(uprof_watch_rule_is_event(busy, "busy"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/watch-rule/forms", test_forms);
    g_test_add_func("/watch-rule/bad", test_bad);
    g_test_add_func("/watch-rule/holds", test_holds);
    g_test_add_func("/watch-rule/events", test_events);
    return g_test_run();
}
