/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/run/recording-priv.h"
#include "uprof/clock.h"

/* A recording at 99 Hz of a guest that is held as a whole, without a sampler. */
typedef struct {
    UprofGuest guest;
    UprofRun *run;
    UprofSession session;
    UprofNotices notices;
    UprofRecording recording;
    GString *said; /* all notices, each with a newline */
} Fixture;

static void
note_text(UprofNoticeKind kind, const char *text, void *data)
{
    g_string_append_printf(data, "%s\n", text);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->said = g_string_new(NULL);
    fixture->notices = (UprofNotices){ note_text, fixture->said };
    fixture->run = uprof_run_new();
    fixture->run->rate_mhz = 99000;
    fixture->guest.grain = UPROF_GRAIN_GUEST;
    fixture->session.shown = (char *)"web-1";
    fixture->session.guest = &fixture->guest;
    fixture->session.run = fixture->run;
    fixture->session.settings.budget_ppm = 50 * 1000;
    fixture->recording.session = &fixture->session;
    fixture->recording.notices = &fixture->notices;
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_run_free(fixture->run);
    g_string_free(fixture->said, TRUE);
}

/* @n: 0: only the trial holds of 1 ms */
static void
report_rate(Fixture *fixture, uint64_t stride, uint64_t n)
{
    const UprofSamplerCounts counts = {
        .divisor = 1,
        .stride = stride,
        .probe_ns = UPROF_NS_PER_MS,
        .n_holds = n,
        .held_ns = n * 2 * UPROF_NS_PER_MS,
    };

    uprof_recording_report_rate(&fixture->recording, &counts);
}

static void
test_full_rate(Fixture *fixture, gconstpointer data)
{
    report_rate(fixture, 1, 0);
    report_rate(fixture, 1, 100);
    g_assert_cmpstr(fixture->said->str, ==, "");
}

/* If holds have lowered the rate further before the first report, it shows their mean. */
static void
test_late_report(Fixture *fixture, gconstpointer data)
{
    report_rate(fixture, 2, 10);
    g_assert_cmpstr(fixture->said->str, ==,
                    "web-1: 49.5 instead of 99 Hz, so that holds take at most 5 % of the time "
                    "(--budget); each stops the guest 2 ms\n");
}

/* The rate falls and rises. Each low is reported if it is the lowest, and the first rise. */
static void
test_lower_rate(Fixture *fixture, gconstpointer data)
{
    report_rate(fixture, 2, 0);
    report_rate(fixture, 2, 10);
    report_rate(fixture, 3, 20);
    report_rate(fixture, 2, 30);
    g_assert_cmpstr(fixture->said->str, ==,
                    "web-1: 49.5 instead of 99 Hz, so that holds take at most 5 % of the time "
                    "(--budget); each stops the guest 1 ms\n"
                    "web-1: 33 instead of 99 Hz, so that holds take at most 5 % of the time "
                    "(--budget); each stops the guest 2 ms\n");
    g_string_truncate(fixture->said, 0);
    report_rate(fixture, 1, 40);
    report_rate(fixture, 2, 50);
    report_rate(fixture, 1, 60);
    g_assert_cmpstr(fixture->said->str, ==, "web-1: back to 99 Hz for now\n");
}

/* The run warns of a guest in which nothing ran, unless the user has asked for idle time. */
static void
test_nothing_ran(Fixture *fixture, gconstpointer data)
{
    fixture->run->samples = 5;
    fixture->run->idle = true;
    g_assert_true(uprof_recording_check(&fixture->recording));
    g_assert_cmpstr(fixture->said->str, ==, "");
    fixture->run->idle = false;
    g_assert_true(uprof_recording_check(&fixture->recording));
    g_assert_cmpstr(
        fixture->said->str, ==,
        "web-1: nothing ran: --idle shows idle time, --idle=stack shows where it waits\n");
}

static void
test_no_sample(Fixture *fixture, gconstpointer data)
{
    g_assert_false(uprof_recording_check(&fixture->recording));
    g_assert_cmpint(fixture->recording.code, ==, UPROF_ERROR_EMPTY);
    g_assert_cmpstr(fixture->said->str, ==, "web-1: no sample was taken\n");
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*run)(Fixture *fixture, gconstpointer data);
    } tests[] = {
        { "/recording/full-rate", test_full_rate },
        { "/recording/late-report", test_late_report },
        { "/recording/lower-rate", test_lower_rate },
        { "/recording/nothing-ran", test_nothing_ran },
        { "/recording/no-sample", test_no_sample },
    };

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].path, Fixture, NULL, set_up, tests[i].run, tear_down);
    return g_test_run();
}
