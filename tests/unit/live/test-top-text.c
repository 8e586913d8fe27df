/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/top-text.h"

#include "../../../src/live/hot-rows-priv.h"
#include "uprof/clock.h"

#include <string.h>

typedef struct {
    UprofTopChoice choice;
    UprofTopView view;
    UprofHotRows *rows;
    GArray *domains;
    GPtrArray *said;
} Fixture;

static void
add_domain(Fixture *fixture, const char *shown, uint64_t ran)
{
    const UprofTopDomain domain = {
        .shown = shown,
        .share = { .ticks = 100, .ran = ran, .missed = 3 },
        .most_held_ns = 720 * UPROF_NS_PER_MS,
        .elapsed_ns = 72 * UPROF_NS_PER_S,
        .rate_mhz = 99 * 1000,
    };

    g_array_append_val(fixture->domains, domain);
}

static void
add_row(Fixture *fixture, unsigned domain, const char *name, uint64_t self)
{
    g_autoptr(GArray) round = g_array_new(FALSE, FALSE, sizeof(UprofProfileRow));
    UprofNames *names = uprof_hot_rows_names(fixture->rows);
    const UprofProfileRow row = { uprof_names_intern(names, (UprofSlice){ name, strlen(name) }),
                                  self, self };

    g_array_append_val(round, row);
    uprof_hot_rows_add(fixture->rows, domain, UPROF_BY_FUNCTION, round);
}

static void
set_up(Fixture *fixture, gconstpointer data)
{
    fixture->rows = uprof_hot_rows_new();
    fixture->domains = g_array_new(FALSE, TRUE, sizeof(UprofTopDomain));
    fixture->said = g_ptr_array_new();
    fixture->view =
        (UprofTopView){ &fixture->choice, fixture->rows, fixture->domains, fixture->said };
    add_domain(fixture, "web-1", 75);
    add_row(fixture, 0, "parse", 30);
    add_row(fixture, 0, "render", 10);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    uprof_hot_rows_free(fixture->rows);
    g_array_unref(fixture->domains);
    g_ptr_array_unref(fixture->said);
}

/* Returns: (transfer full): the text of the screen */
static char *
draw_screen(const Fixture *fixture, unsigned lines)
{
    const UprofTableStyle style = { .width = 80 };

    return g_string_free(uprof_top_text_screen(&fixture->view, lines, &style), FALSE);
}

static void
test_batch(Fixture *fixture, gconstpointer data)
{
    g_autofree char *text = g_string_free(uprof_top_text_batch(&fixture->view, 1), FALSE);

    g_assert_cmpstr(text, ==,
                    "web-1: 75.0 % busy, 25.0 % idle, 75 samples in this round, 3 missed in total, "
                    "each vCPU held 1.0 %; asked 99 Hz for 72 s\n"
                    "  self   total  function\n"
                    "  75.0    75.0  parse\n");
}

static void
test_empty_batch(Fixture *fixture, gconstpointer data)
{
    fixture->choice.by = UPROF_BY_PROCESS;
    g_autofree char *text = g_string_free(uprof_top_text_batch(&fixture->view, 1), FALSE);

    g_assert_true(g_pattern_match_simple(
        "*\nno processes are known: *; --by function shows functions\n*", text));
}

/* With several domains, each row ends with its own domain. */
static void
test_domains(Fixture *fixture, gconstpointer data)
{
    g_array_index(fixture->domains, UprofTopDomain, 0).is_ended = true;
    add_domain(fixture, "db-1", 100);
    add_row(fixture, 1, "sort", 60);
    g_autofree char *text = g_string_free(uprof_top_text_batch(&fixture->view, 10), FALSE);

    g_assert_nonnull(strstr(text, "web-1 (ended): 75.0 % busy"));
    g_assert_nonnull(strstr(text, "sort  (db-1)\n"));
    g_assert_nonnull(strstr(text, "parse  (web-1)\n"));
    /* Each row has the share of its own domain. */
    g_assert_nonnull(strstr(text, " 100.0   100.0  sort  (db-1)\n"));
    g_assert_nonnull(strstr(text, "  75.0    75.0  parse  (web-1)\n"));
    g_autofree char *screen = draw_screen(fixture, 24);
    g_assert_nonnull(strstr(screen, "the last ten seconds, in percent of each domain; ? for keys"));
}

static void
test_processes(Fixture *fixture, gconstpointer data)
{
    fixture->choice.by = UPROF_BY_PROCESS;
    g_autofree char *unknown = draw_screen(fixture, 24);
    g_assert_nonnull(strstr(unknown, "web-1 (processes unknown): 75.0 % busy"));
    g_assert_nonnull(strstr(unknown, "no processes are known: the guest is no Linux"));
    g_assert_nonnull(strstr(unknown, "s shows functions"));
    g_array_index(fixture->domains, UprofTopDomain, 0).has_processes = true;
    g_autofree char *known = draw_screen(fixture, 24);
    g_assert_null(strstr(known, "processes unknown"));
    g_assert_nonnull(strstr(known, "no samples: no vCPU runs"));
}

static void
test_title(Fixture *fixture, gconstpointer data)
{
    g_autofree char *plain = draw_screen(fixture, 24);
    g_assert_nonnull(strstr(plain, "functions sorted by self, the last ten seconds; ? for keys"));
    fixture->choice.by_total = fixture->choice.keeps_all = fixture->choice.is_paused = true;
    g_strlcpy(fixture->choice.pattern, "par", sizeof(fixture->choice.pattern));
    fixture->choice.reads_pattern = true;
    g_autofree char *chosen = draw_screen(fixture, 24);
    g_assert_nonnull(strstr(
        chosen, "functions sorted by total, all samples, with 'par_'; PAUSED, space goes on"));
    g_assert_nonnull(strstr(chosen, "  parse"));
    g_assert_null(strstr(chosen, "render"));
}

static void
test_help(Fixture *fixture, gconstpointer data)
{
    fixture->choice.shows_help = true;
    g_autofree char *text = draw_screen(fixture, 24);

    g_assert_nonnull(strstr(text, "q  quit"));
    g_assert_null(strstr(text, "parse"));
}

static void
test_nothing(Fixture *fixture, gconstpointer data)
{
    uprof_hot_rows_clear(fixture->rows);
    g_autofree char *none = draw_screen(fixture, 24);
    g_assert_nonnull(strstr(none, "no samples: no vCPU runs"));
    g_strlcpy(fixture->choice.pattern, "x", sizeof(fixture->choice.pattern));
    g_autofree char *without = draw_screen(fixture, 24);
    g_assert_nonnull(strstr(without, "no row has this text"));
}

static unsigned
count_lines(const char *text)
{
    unsigned n = 0;

    for (; (text = strstr(text, "\r\n")); text++)
        n++;
    return n;
}

/* Many domains, rows and messages never make more lines than the screen has. */
static void
test_room(Fixture *fixture, gconstpointer data)
{
    for (unsigned i = 0; i < 30; i++) {
        g_autofree char *name = g_strdup_printf("function_%02u", i);
        add_row(fixture, 0, name, 1);
        add_domain(fixture, "db-1", 1);
        g_ptr_array_add(fixture->said, (gpointer)(i == 29 ? "the last message" : "a message"));
    }
    g_autofree char *text = draw_screen(fixture, 24);
    g_assert_cmpuint(count_lines(text), <=, 23);
    g_assert_nonnull(strstr(text, "and 23 more domains"));
    g_assert_nonnull(strstr(text, "the last message\x1b[K\r\n"));
    g_autofree char *tiny = draw_screen(fixture, 3);
    g_assert_cmpuint(count_lines(tiny), ==, 2);
    g_autofree char *none = draw_screen(fixture, 0);
    g_assert_cmpuint(count_lines(none), ==, 0);
}

int
main(int argc, char **argv)
{
    static const struct {
        const char *path;
        void (*run)(Fixture *fixture, gconstpointer data);
    } tests[] = {
        { "/top-text/batch", test_batch },     { "/top-text/batch/empty", test_empty_batch },
        { "/top-text/domains", test_domains }, { "/top-text/processes", test_processes },
        { "/top-text/title", test_title },     { "/top-text/help", test_help },
        { "/top-text/nothing", test_nothing }, { "/top-text/room", test_room },
    };

    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++)
        g_test_add(tests[i].path, Fixture, NULL, set_up, tests[i].run, tear_down);
    return g_test_run();
}
