/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/calendar.h"

#include <libxml/parser.h>
#include <string.h>
#include <time.h>

#include "../../../src/output/timeline-priv.h"
#include "uprof/output.h"

/* Summer time begins on 2026-03-29 at 02:00, and ends on 2026-10-25 at 03:00. */
#define BERLIN "CET-1CEST,M3.5.0,M10.5.0/3"
#define KOLKATA "IST-5:30"

enum {
    HOUR_S = 3600,
    DAY_S = 24 * HOUR_S,
    MARCH_29 = 1774742400, /* 2026-03-29, 00:00 UTC */
    OCTOBER_25 = 1792886400,
};

typedef struct {
    UprofNames *names;
    UprofCalendar *calendar;
} Fixture;

static void
init_fixture(Fixture *fixture, const char *zone, int64_t first_s, int64_t last_s)
{
    g_setenv("TZ", zone, TRUE);
    tzset();
    fixture->names = uprof_names_new();
    fixture->calendar = uprof_calendar_new(fixture->names, "web-1", first_s, last_s);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_calendar_free(fixture->calendar);
    uprof_names_free(fixture->names);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
add(const Fixture *fixture, unsigned first, unsigned last, const char *function, uint64_t running,
    uint64_t samples)
{
    const UprofName *const frames[] = { uprof_names_marker(fixture->names, "main"),
                                        uprof_names_marker(fixture->names, function) };
    g_autoptr(UprofProfile) stacks =
        uprof_profile_new(fixture->names, uprof_names_marker(fixture->names, "other-root"), true);

    uprof_profile_add(stacks, frames, 2, running);
    uprof_calendar_add(fixture->calendar, first, last, stacks, samples, running);
}

static const UprofSlot *
slot(const Fixture *fixture, unsigned i)
{
    g_assert_cmpuint(i, <, fixture->calendar->slots->len);
    return &g_array_index(fixture->calendar->slots, UprofSlot, i);
}

/* An hour that does not exist has no time; two hours of the same name are one slot. */
static void
test_zones(void)
{
    static const struct {
        const char *zone;
        int64_t first_s, last_s, at_s;
        const char *first_day;
        unsigned n_days;
        int slot;
    } cases[] = {
        { "UTC", MARCH_29, MARCH_29, MARCH_29 + DAY_S - 1, "2026-03-29", 1, 23 },
        { "UTC", MARCH_29, MARCH_29, MARCH_29 + DAY_S, "2026-03-29", 1, -1 },
        { "UTC", MARCH_29, MARCH_29, MARCH_29 - 1, "2026-03-29", 1, -1 },
        { BERLIN, MARCH_29 - DAY_S, MARCH_29, MARCH_29 - HOUR_S, "2026-03-28", 2, 24 },
        { BERLIN, MARCH_29, MARCH_29, MARCH_29 + HOUR_S - 1, "2026-03-29", 1, 1 },
        { BERLIN, MARCH_29, MARCH_29, MARCH_29 + HOUR_S, "2026-03-29", 1, 3 },
        { BERLIN, OCTOBER_25, OCTOBER_25, OCTOBER_25, "2026-10-25", 1, 2 },
        { BERLIN, OCTOBER_25, OCTOBER_25, OCTOBER_25 + HOUR_S, "2026-10-25", 1, 2 },
        { BERLIN, OCTOBER_25, OCTOBER_25, OCTOBER_25 + 2 * HOUR_S, "2026-10-25", 1, 3 },
        { KOLKATA, MARCH_29, MARCH_29, MARCH_29, "2026-03-29", 1, 5 },
        { "UTC", 0, MARCH_29, MARCH_29, "2025-03-29", UPROF_CALENDAR_DAYS_MAX, 365 * 24 },
        { "UTC", MARCH_29, MARCH_29, INT64_MAX, "2026-03-29", 1, -1 },
        { "UTC", MARCH_29, MARCH_29, INT64_MIN, "2026-03-29", 1, -1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_auto(Fixture) fixture = { 0 };
        init_fixture(&fixture, cases[i].zone, cases[i].first_s, cases[i].last_s);
        const GPtrArray *days = fixture.calendar->days;
        g_assert_cmpstr(g_ptr_array_index(days, 0), ==, cases[i].first_day);
        g_assert_cmpuint(days->len, ==, cases[i].n_days);
        g_assert_cmpuint(fixture.calendar->slots->len, ==, 24 * cases[i].n_days);
        g_assert_cmpint(uprof_calendar_find(fixture.calendar, cases[i].at_s), ==, cases[i].slot);
    }
}

/* Times that no calendar has do not make a calendar without days. */
static void
test_forged_times(void)
{
    static const int64_t times[] = { INT64_MIN, -DAY_S, 0, MARCH_29, INT64_MAX };

    for (size_t i = 0; i < G_N_ELEMENTS(times); i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(times); j++) {
            g_auto(Fixture) fixture = { 0 };
            init_fixture(&fixture, "UTC", times[i], times[j]);
            g_assert_cmpuint(fixture.calendar->days->len, >=, 1);
            g_assert_cmpuint(fixture.calendar->days->len, <=, UPROF_CALENDAR_DAYS_MAX);
            uprof_calendar_fail(fixture.calendar, times[i]);
        }
    }
}

static void
test_slots(void)
{
    g_auto(Fixture) fixture = { 0 };
    unsigned samples = 0, running = 0;

    init_fixture(&fixture, "UTC", MARCH_29, MARCH_29 + DAY_S);
    add(&fixture, 9, 9, "cold", 5, 10);
    add(&fixture, 9, 9, "hot", 20, 30);
    add(&fixture, 9, 9, "cold", 6, 6);
    uprof_calendar_fail(fixture.calendar, MARCH_29 + 9 * HOUR_S);
    uprof_calendar_fail(fixture.calendar, MARCH_29 + 9 * HOUR_S + 600);
    g_assert_cmpuint(slot(&fixture, 9)->samples, ==, 46);
    g_assert_cmpuint(slot(&fixture, 9)->running, ==, 31);
    g_assert_cmpstr(uprof_name_text(slot(&fixture, 9)->hottest), ==, "hot");
    g_assert_cmpuint(slot(&fixture, 9)->hottest_self, ==, 20);
    g_assert_cmpuint(slot(&fixture, 9)->n_failed, ==, 2);
    g_assert_false(slot(&fixture, 9)->is_joined);
    g_assert_cmpuint(slot(&fixture, 8)->samples, ==, 0);
    /* a closed day: its samples are divided, and no sample is lost */
    add(&fixture, 24, 47, "hot", 100, 1001);
    for (unsigned i = 24; i < 48; i++) {
        samples += slot(&fixture, i)->samples;
        running += slot(&fixture, i)->running;
        g_assert_cmpint(slot(&fixture, i)->is_joined, ==, i > 24);
    }
    g_assert_cmpuint(samples, ==, 1001);
    g_assert_cmpuint(running, ==, 100);
    g_assert_cmpuint(uprof_profile_total(fixture.calendar->profile), ==, 131);
}

/* Each slot is a cell with its stacks; a closed day has its stacks in its first slot. */
static void
test_timeline(void)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, "UTC", MARCH_29, MARCH_29 + DAY_S);
    add(&fixture, 2, 2, "work", 5, 10);
    add(&fixture, 24, 47, "work", 48, 96);
    g_autoptr(UprofTree) tree = uprof_tree_new(fixture.calendar->profile);
    g_autoptr(UprofPicture) picture = uprof_picture_new(tree, 10000);
    g_autoptr(UprofTimeline) timeline = uprof_timeline_new_of_days(fixture.calendar, picture);
    g_assert_cmpuint(timeline->n_columns, ==, 2);
    g_assert_cmpuint(timeline->n_rows, ==, UPROF_CALENDAR_HOURS);
    g_assert_cmpuint(timeline->n_shared, ==, 1);
    const UprofTimeCell *cells = (const UprofTimeCell *)timeline->cells->data;
    g_assert_cmpuint(cells[2].samples, ==, 10);
    g_assert_cmpuint(cells[2].running, ==, 5);
    g_assert_cmpuint(cells[47].samples, ==, 4);
    /* frame 2 with weights 5 and 48 */
    g_auto(GStrv) lines = g_strsplit(timeline->lists->str, "\n", -1);
    g_assert_cmpstr(lines[1], ==, "");
    g_assert_cmpstr(lines[2], ==, "JF");
    g_assert_cmpstr(lines[24], ==, "JwB");
    g_assert_cmpstr(lines[25], ==, "");
}

/* A hostile name is text, and an empty calendar is a picture. */
static void
test_picture(void)
{
    g_auto(Fixture) fixture = { 0 };

    init_fixture(&fixture, "UTC", MARCH_29, MARCH_29);
    for (unsigned i = 0; i < 2; i++) {
        GString *text = uprof_svg_history(fixture.calendar);
        xmlDocPtr page = xmlReadMemory(text->str, (int)text->len, "page", NULL, XML_PARSE_NONET);
        g_assert_nonnull(page);
        xmlFreeDoc(page);
        g_assert_nonnull(strstr(text->str, "<u:days>2026-03-29\n</u:days>"));
        g_assert_null(strstr(text->str, "<script>alert"));
        g_assert_cmpint(strstr(text->str, "<u:hottest>&lt;script&gt;alert") != NULL, ==, i > 0);
        g_string_free(text, TRUE);
        add(&fixture, 1, 1, "<script>alert(1)</script>", 7, 9);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/calendar/zones", test_zones);
    g_test_add_func("/calendar/forged-times", test_forged_times);
    g_test_add_func("/calendar/slots", test_slots);
    g_test_add_func("/calendar/timeline", test_timeline);
    g_test_add_func("/calendar/picture", test_picture);
    return g_test_run();
}
