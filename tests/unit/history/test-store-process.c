/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Some processes of this test act as if a hostile stored profile controlled them: they make
 * forbidden requests.
 */
#include "../../../src/history/store-process-priv.h"
#include "../../../src/base/sanitized-priv.h"

#include "store-folder.h"
#include "uprof/time-text.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SLICE "web-1-20261120T000000Z"
#define DAY "web-1-20261120"
#define TODAY_S INT64_C(1795305600) /* 2026-11-22 */
#define DB_DAY "db-20261120"

static const UprofSlice bytes = { "new", 3 };

/* The folders of the fixture, for the functions that run in processes. */
static const UprofStoreFolder *web, *db;

/* ---- Work ---- */

static bool
write_day(void)
{
    return uprof_store_write(web, DAY, UPROF_STORE_PENDING, bytes, NULL) &&
           uprof_store_write(web, DAY, UPROF_STORE_PROFILE, bytes, NULL) &&
           uprof_store_has(web, DAY, UPROF_STORE_PENDING) &&
           uprof_store_rename(web, DAY, UPROF_STORE_PENDING, UPROF_STORE_SIDECAR, NULL) &&
           !uprof_store_has(web, DAY, UPROF_STORE_PENDING);
}

static bool
write_and_undo(void)
{
    return uprof_store_write(web, DAY, UPROF_STORE_PENDING, bytes, NULL) &&
           uprof_store_remove_one(web, DAY, UPROF_STORE_PENDING, NULL);
}

static bool
read_both(void)
{
    g_autoptr(GByteArray) one = uprof_store_read(web, SLICE, UPROF_STORE_SIDECAR, 1000000, NULL);
    g_autoptr(GByteArray) other =
        uprof_store_read(db, "db-20261120T000000Z", UPROF_STORE_SIDECAR, 1000000, NULL);

    return one && other;
}

static bool
read_missing(void)
{
    g_autoptr(GError) error = NULL;

    return !uprof_store_read(web, DAY, UPROF_STORE_PROFILE, 10, &error) &&
           g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NO_FILE);
}

/* If the program cannot write a file, it answers with an error, and the process goes on. */
static bool
write_where_a_folder_is(void)
{
    g_autoptr(GError) error = NULL;

    return !uprof_store_write(web, "web-1-20261111", UPROF_STORE_PENDING, bytes, &error) &&
           strstr(error->message, "web-1-20261111.pending");
}

static bool
write_slice(void)
{
    return uprof_store_write(web, SLICE, UPROF_STORE_PROFILE, bytes, NULL);
}

static bool
write_sidecar(void)
{
    return uprof_store_write(web, DAY, UPROF_STORE_SIDECAR, bytes, NULL);
}

static bool
write_other_folder(void)
{
    return uprof_store_write(db, DB_DAY, UPROF_STORE_PROFILE, bytes, NULL);
}

static bool
write_outside(void)
{
    return uprof_store_write(web, "../db/" DB_DAY, UPROF_STORE_PROFILE, bytes, NULL);
}

static bool
write_today(void)
{
    return uprof_store_write(web, "web-1-20261122", UPROF_STORE_PENDING, bytes, NULL);
}

static bool
write_other_ending(void)
{
    return uprof_store_write(web, DAY, ".svg", bytes, NULL);
}

static bool
remove_sidecar(void)
{
    return uprof_store_remove_one(web, SLICE, UPROF_STORE_SIDECAR, NULL);
}

static bool
remove_day(void)
{
    return uprof_store_remove_one(web, DAY, UPROF_STORE_PROFILE, NULL);
}

static bool
rename_profile(void)
{
    return uprof_store_rename(web, DAY, UPROF_STORE_PROFILE, UPROF_STORE_SIDECAR, NULL);
}

static bool
rename_elsewhere(void)
{
    return uprof_store_rename(web, DAY, UPROF_STORE_PENDING, "/../x", NULL);
}

static bool
read_outside(void)
{
    return uprof_store_open_file(web, "../../../../etc/passwd", "") >= 0;
}

static bool
die(void)
{
    /* the message about the death names this file */
    g_byte_array_unref(uprof_store_read(web, SLICE, UPROF_STORE_SIDECAR, 1000000, NULL));
    prctl(PR_SET_DUMPABLE, 0);
    abort();
}

static bool
leave(void)
{
    _exit(7);
}

/* Checks that the process has no rights; tests/unit/base/test-spawner.c checks all of them. */
static bool
is_confined(void)
{
    return IS_SANITIZED || (access("/etc/passwd", R_OK) != 0 && fork() < 0);
}

/* clang-format off */
static const struct {
    const char *name;
    bool (*work)(void);
    const char *error; /* NULL: the work succeeds; else the error that the program reports */
} cases[] = {
    { "write-day",          write_day,               NULL },
    { "write-and-undo",     write_and_undo,          NULL },
    { "read-both",          read_both,               NULL },
    { "read-missing",       read_missing,            NULL },
    { "write-fails",        write_where_a_folder_is, NULL },
    { "write-slice",        write_slice,             "*it broke the rules of its requests" },
    { "write-sidecar",      write_sidecar,           "*it broke the rules of its requests" },
    { "write-other-folder", write_other_folder,      "*it broke the rules of its requests" },
    { "write-outside",      write_outside,           "*it broke the rules of its requests" },
    { "write-today",        write_today,             "*it broke the rules of its requests" },
    { "write-other-ending", write_other_ending,      "*it broke the rules of its requests" },
    { "remove-sidecar",     remove_sidecar,          "*it broke the rules of its requests" },
    { "remove-day",         remove_day,              "*it broke the rules of its requests" },
    { "rename-profile",     rename_profile,          "*it broke the rules of its requests" },
    { "rename-elsewhere",   rename_elsewhere,        "*it broke the rules of its requests" },
    { "read-outside",       read_outside,            "*it broke the rules of its requests" },
    { "die",                die,                     "*has failed: it died of signal 6 (Aborted); the last file that it "
                                                     "read is '*" SLICE ".meta.json'" },
    { "leave",              leave,                   "*has ended with status 7" },
    { "is-confined",        is_confined,             NULL },
};
/* clang-format on */

static void
do_case(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    const bool ok = cases[job].work();

    g_byte_array_append(reply, (const guint8 *)&ok, sizeof(ok));
}

/* ---- Fixture ---- */

typedef struct {
    StoreFolder store;
    GPtrArray *folders;
} Fixture;

static void
close_folder(gpointer folder)
{
    uprof_store_folder_close(folder);
}

static void
init_fixture(Fixture *fixture)
{
    store_folder_init(&fixture->store);
    store_folder_put_slice(&fixture->store, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&fixture->store, "db", DB_UUID, FRIDAY_S, "db;a 1\n");
    fixture->folders = g_ptr_array_new_with_free_func(close_folder);
    g_ptr_array_add(fixture->folders, uprof_store_folder_open(fixture->store.store, "db", NULL));
    g_ptr_array_add(fixture->folders, uprof_store_folder_open(fixture->store.store, "web-1", NULL));
    db = g_ptr_array_index(fixture->folders, 0);
    web = g_ptr_array_index(fixture->folders, 1);
}

static void
clear_fixture(Fixture *fixture)
{
    g_ptr_array_unref(fixture->folders);
    store_folder_clear(&fixture->store);
}

static GByteArray *
run_job(const Fixture *fixture, const UprofStoreWork *work, guint job,
        const UprofStoreReaction *reaction, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(UprofStoreProcess) process = uprof_store_process_start(work, &failure);

    g_assert_no_error(failure);
    return uprof_store_process_run(process, job, reaction, error);
}

static void
test_case(gconstpointer data)
{
    const guint i = GPOINTER_TO_UINT(data);
    g_autoptr(GError) error = NULL;
    Fixture fixture;

    init_fixture(&fixture);
    g_autofree char *obstacle =
        g_build_filename(fixture.store.top, "data/web-1/web-1-20261111.pending", NULL);
    g_assert_cmpint(g_mkdir_with_parents(obstacle, 0700), ==, 0);
    const UprofStoreWork work = { .folders = fixture.folders, .work = do_case };
    const UprofStoreReaction reaction = { .written = web, .today_s = TODAY_S };
    g_autoptr(GByteArray) reply = run_job(&fixture, &work, i, &reaction, &error);
    if (cases[i].error) {
        g_assert_null(reply);
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
        if (!g_pattern_match_simple(cases[i].error, error->message))
            g_error("%s", error->message);
    } else {
        g_assert_no_error(error);
        g_assert_cmpuint(reply->len, ==, 1);
        g_assert_true(reply->data[0]);
    }
    g_assert_true(store_folder_has(&fixture.store, "data/web-1/" SLICE UPROF_STORE_SIDECAR));
    g_assert_false(store_folder_has(&fixture.store, "data/db/" DB_DAY UPROF_STORE_PROFILE));
    g_assert_cmpint(store_folder_has(&fixture.store, "data/web-1/" DAY UPROF_STORE_PROFILE), ==,
                    cases[i].work == write_day);
    clear_fixture(&fixture);
}

/* ---- Messages of a process ---- */

static void
talk(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    g_autofree guint8 *large = g_malloc0(300 * 1000);

    uprof_notice(notices, UPROF_NOTICE_WARNING, "first\x1b[2J");
    uprof_store_process_show_day(FRIDAY_S, 17);
    uprof_notice(notices, UPROF_NOTICE_WARNING, "second");
    g_byte_array_append(reply, large, 300 * 1000);
}

static void
show_day(const UprofStoreFolder *folder, int64_t day_s, unsigned n_slices, void *data)
{
    StoreFolder *store = data;

    g_assert_cmpstr(folder->name, ==, "web-1");
    g_assert_cmpint(day_s, ==, FRIDAY_S);
    g_string_append_printf(store->warnings, "%u slices\n", n_slices);
}

/* The program shows the messages of a process in order, and without control characters. */
static void
test_talk(void)
{
    Fixture fixture;

    init_fixture(&fixture);
    const UprofStoreWork work = { .folders = fixture.folders, .work = talk };
    const UprofStoreReaction reaction = {
        .notices = &fixture.store.notices,
        .show_day = show_day,
        .shown = web,
        .data = &fixture.store,
    };
    g_autoptr(GByteArray) reply = run_job(&fixture, &work, 0, &reaction, NULL);
    g_assert_cmpuint(reply->len, ==, 300 * 1000);
    g_assert_cmpstr(fixture.store.warnings->str, ==, "first?[2J\n17 slices\nsecond\n");
    clear_fixture(&fixture);
}

/* Days that no process can have closed. */
static const int64_t odd_days[] = {
    INT64_MIN,    INT64_MIN / UPROF_DAY_S *UPROF_DAY_S, -UPROF_DAY_S,
    FRIDAY_S + 1, INT64_MAX / UPROF_DAY_S *UPROF_DAY_S,
};

static void
show_odd_day(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    uprof_store_process_show_day(odd_days[job], 1);
}

static void
test_odd_days(void)
{
    Fixture fixture;

    init_fixture(&fixture);
    const UprofStoreWork work = { .folders = fixture.folders, .work = show_odd_day };
    const UprofStoreReaction reaction = {
        .show_day = show_day,
        .shown = web,
        .data = &fixture.store,
    };
    for (guint i = 0; i < G_N_ELEMENTS(odd_days); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GByteArray) reply = run_job(&fixture, &work, i, &reaction, &error);
        g_assert_null(reply);
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    }
    g_assert_cmpstr(fixture.store.warnings->str, ==, "");
    clear_fixture(&fixture);
}

/* If the reaction names no folder to write to, a request to write is refused. */
static void
test_read_only(void)
{
    g_autoptr(GError) error = NULL;
    Fixture fixture;

    init_fixture(&fixture);
    const UprofStoreWork work = { .folders = fixture.folders, .work = do_case };
    const UprofStoreReaction reaction = { 0 };
    g_autoptr(GByteArray) reply = run_job(&fixture, &work, 0, &reaction, &error);
    g_assert_null(reply);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_false(store_folder_has(&fixture.store, "data/web-1/" DAY UPROF_STORE_PENDING));
    clear_fixture(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/store-process/", cases[i].name, NULL);
        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_case);
    }
    g_test_add_func("/store-process/talk", test_talk);
    g_test_add_func("/store-process/odd-days", test_odd_days);
    g_test_add_func("/store-process/read-only", test_read_only);
    return g_test_run();
}
