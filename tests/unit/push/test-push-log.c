/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/push/push-log-priv.h"

#include <string.h>

#include "../../lib/store-folder.h"
#include "uprof/error.h"

typedef struct {
    StoreFolder store;
} Fixture;

static void
set_up(Fixture *fixture, gconstpointer data)
{
    store_folder_init(&fixture->store);
}

static void
tear_down(Fixture *fixture, gconstpointer data)
{
    store_folder_clear(&fixture->store);
}

static UprofPushLog *
open_log(Fixture *fixture)
{
    g_autoptr(GError) error = NULL;
    UprofPushLog *log = uprof_push_log_open(fixture->store.store, "a", true, &error);

    g_assert_no_error(error);
    return log;
}

/* Makes a log with this content. */
static void
put_log(Fixture *fixture, const char *text)
{
    uprof_push_log_close(open_log(fixture)); /* makes the folder */
    store_folder_put(&fixture->store, "push/a.log", text);
}

static char *
read_file(const Fixture *fixture)
{
    g_autofree char *path = g_build_filename(fixture->store.top, "push", "a.log", NULL);
    char *text = NULL;

    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return text;
}

static void
assert_state(const UprofPushLog *log, const char *stem, UprofPushState state, unsigned n_later)
{
    unsigned found;

    g_assert_cmpint(uprof_push_log_state(log, stem, &found), ==, state);
    g_assert_cmpuint(found, ==, n_later);
}

static void
add_lines(UprofPushLog *log)
{
    g_assert_true(uprof_push_log_add(log, "web-1-20261120T091500Z", UPROF_PUSH_STATE_LATER,
                                     "503 busy", NULL));
    g_assert_true(
        uprof_push_log_add(log, "web-1-20261120T091500Z", UPROF_PUSH_STATE_LATER, NULL, NULL));
    g_assert_true(
        uprof_push_log_add(log, "web-1-20261120T091500Z", UPROF_PUSH_STATE_SENT, NULL, NULL));
    g_assert_true(uprof_push_log_add(log, "web-1-20261120T092500Z", UPROF_PUSH_STATE_REFUSED,
                                     "400 a\nb", NULL));
}

static void
test_again(Fixture *fixture, gconstpointer data)
{
    UprofPushLog *log = open_log(fixture);

    g_assert_cmpint(uprof_push_log_begin(log, 1234, NULL), ==, 1234);
    add_lines(log);
    uprof_push_log_close(log);
    log = open_log(fixture);
    g_assert_cmpint(uprof_push_log_begin(log, 9999, NULL), ==, 1234);
    assert_state(log, "web-1-20261120T091500Z", UPROF_PUSH_STATE_SENT, 2);
    assert_state(log, "web-1-20261120T092500Z", UPROF_PUSH_STATE_REFUSED, 0);
    assert_state(log, "web-1-20261120T093500Z", UPROF_PUSH_STATE_NEW, 0);
    uprof_push_log_close(log);
    g_autofree char *text = read_file(fixture);
    g_assert_cmpstr(
        text, ==,
        "- since 1234\nweb-1-20261120T091500Z later 503 busy\nweb-1-20261120T091500Z later\n"
        "web-1-20261120T091500Z sent\nweb-1-20261120T092500Z refused 400 a?b\n");
}

/* A killed process, or a full disk, can leave a part of a line. */
static void
test_half_line(Fixture *fixture, gconstpointer data)
{
    put_log(fixture, "a-1 sent\nb-1 se");
    UprofPushLog *log = open_log(fixture);

    assert_state(log, "a-1", UPROF_PUSH_STATE_SENT, 0);
    assert_state(log, "b-1", UPROF_PUSH_STATE_NEW, 0);
    g_assert_true(uprof_push_log_add(log, "c-1", UPROF_PUSH_STATE_SENT, NULL, NULL));
    uprof_push_log_close(log);
    g_autofree char *text = read_file(fixture);
    g_assert_cmpstr(text, ==, "a-1 sent\nb-1 se\nc-1 sent\n");
    log = open_log(fixture);
    assert_state(log, "b-1", UPROF_PUSH_STATE_NEW, 0);
    assert_state(log, "c-1", UPROF_PUSH_STATE_SENT, 0);
    uprof_push_log_close(log);
}

static void
test_strange_lines(Fixture *fixture, gconstpointer data)
{
    put_log(fixture, "\n \n x\nsent\na sent \nb  sent\nc SENT\nd sent\x01\n- since x\n- since -4\n"
                     "- since 99999999999999999999\ne later\xff\nf sent more words\n");
    UprofPushLog *log = open_log(fixture);

    g_assert_cmpint(uprof_push_log_begin(log, 5, NULL), ==, 5);
    assert_state(log, "a", UPROF_PUSH_STATE_SENT, 0);
    assert_state(log, "b", UPROF_PUSH_STATE_NEW, 0);
    assert_state(log, "c", UPROF_PUSH_STATE_NEW, 0);
    assert_state(log, "d", UPROF_PUSH_STATE_NEW, 0);
    assert_state(log, "e", UPROF_PUSH_STATE_NEW, 0);
    assert_state(log, "f", UPROF_PUSH_STATE_SENT, 0);
    uprof_push_log_close(log);
}

static void
test_lock(Fixture *fixture, gconstpointer data)
{
    g_autoptr(UprofPushLog) log = open_log(fixture);
    g_autoptr(GError) error = NULL;

    g_assert_nonnull(log);
    g_assert_null(uprof_push_log_open(fixture->store.store, "b", true, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_LOCKED);
}

/* Without permission to create, nothing is written. */
static void
test_dry(Fixture *fixture, gconstpointer data)
{
    g_autoptr(UprofPushLog) log = uprof_push_log_open(fixture->store.store, "a", false, NULL);

    g_assert_nonnull(log);
    g_assert_true(uprof_push_log_add(log, "a-1", UPROF_PUSH_STATE_SENT, NULL, NULL));
    assert_state(log, "a-1", UPROF_PUSH_STATE_SENT, 0);
    g_assert_false(store_folder_has(&fixture->store, "push/a.log"));
}

static void
test_shrink(Fixture *fixture, gconstpointer data)
{
    g_autoptr(GHashTable) stems = g_hash_table_new(g_str_hash, g_str_equal);
    UprofPushLog *log = open_log(fixture);

    uprof_push_log_begin(log, 1234, NULL);
    g_hash_table_add(stems, (gpointer) "web-1-20261120T091500Z");
    add_lines(log);
    g_assert_true(uprof_push_log_shrink(log, stems, NULL));
    assert_state(log, "web-1-20261120T092500Z", UPROF_PUSH_STATE_REFUSED, 0);
    for (unsigned i = 0; i < 1100; i++) {
        g_autofree char *stem = g_strdup_printf("old-%u", i);
        g_assert_true(uprof_push_log_add(log, stem, UPROF_PUSH_STATE_SENT, NULL, NULL));
    }
    g_assert_true(uprof_push_log_shrink(log, stems, NULL));
    g_assert_true(
        uprof_push_log_add(log, "web-1-20261120T093500Z", UPROF_PUSH_STATE_SENT, NULL, NULL));
    uprof_push_log_close(log);
    g_autofree char *text = read_file(fixture);
    g_assert_cmpstr(text, ==,
                    "- since 1234\nweb-1-20261120T091500Z later\nweb-1-20261120T091500Z sent\n"
                    "web-1-20261120T093500Z sent\n");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
#define ADD(name) g_test_add("/push-log/" #name, Fixture, NULL, set_up, test_##name, tear_down)
    ADD(again);
    ADD(half_line);
    ADD(strange_lines);
    ADD(lock);
    ADD(dry);
    ADD(shrink);
    return g_test_run();
}
