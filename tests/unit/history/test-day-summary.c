/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/day-summary.h"

#include "store-folder.h"
#include "uprof/time-text.h"

#include <string.h>

static char *
render_day(StoreFolder *folder, int64_t day_s, bool is_over)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    g_autoptr(UprofCatalog) catalog = uprof_catalog_new(folder->store, &folder->notices, &code);
    GString *text = uprof_day_summary_render(catalog, day_s, is_over, &folder->notices, &code);

    g_assert_cmpint(code, ==, UPROF_ERROR_NONE);
    return text ? g_string_free(text, FALSE) : NULL;
}

static void
assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        g_error("no '%s' in:\n%s", part, text);
}

static void
test_nothing(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    g_assert_null(render_day(&folder, FRIDAY_S, true));
    store_folder_clear(&folder);
}

static void
test_changes(void)
{
    const int64_t saturday_s = FRIDAY_S + UPROF_DAY_S;
    StoreFolder folder;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S,
                           "web-1;main;old 500\nweb-1;main 500\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, saturday_s,
                           "web-1;main;hot 500\nweb-1;main 500\n");
    g_autofree char *text = render_day(&folder, saturday_s, false);
    assert_has(text, "2026-11-21 UTC, so far: 1 domain.");
    assert_has(text, "web-1 (" WEB_UUID ")");
    assert_has(text, "1 profile of 10 s in all: 1000 samples");
    assert_has(text, "    50.0    50.0         new            -  hot   <- new among the top");
    assert_has(text, "    50.0   100.0           .            -  main\n");
    assert_has(text, "no longer among the top: old (50.0 to 0.0 %)");
    store_folder_clear(&folder);
}

static void
test_failures(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    for (unsigned i = 0; i < 3; i++)
        g_assert_true(uprof_store_note_failure(folder.store, "db", DB_UUID, FRIDAY_S + i * 60,
                                               i < 2 ? "busy" : "it is off", NULL));
    g_autofree char *text = render_day(&folder, FRIDAY_S, true);
    assert_has(text, "2026-11-20 UTC: 1 domain.");
    assert_has(text, "db (" DB_UUID ")\n  without a profile: 3 rounds: busy (2); it is off (1)\n");
    store_folder_clear(&folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/day-summary/nothing", test_nothing);
    g_test_add_func("/day-summary/changes", test_changes);
    g_test_add_func("/day-summary/failures", test_failures);
    return g_test_run();
}
