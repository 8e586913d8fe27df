/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/history/stored-profile-priv.h"
#include "../../../src/history/merge-days-priv.h"

#include "store-folder.h"
#include "uprof/time-text.h"

static unsigned n_merged; /* in one call of merge() */

static void
count_slices(int64_t day_s, unsigned n_slices)
{
    g_assert_cmpint(day_s, ==, FRIDAY_S);
    n_merged += n_slices;
}

/* Returns: slices that were merged */
static unsigned
merge(StoreFolder *folder, int64_t today_s, bool dry_run, UprofErrorCode expected)
{
    const UprofMergeSettings settings = { today_s, dry_run, &folder->notices, count_slices };
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreFolder) web = uprof_store_folder_open(folder->store, "web-1", &error);

    g_assert_no_error(error);
    n_merged = 0;
    g_assert_cmpint(uprof_merge_days(web, &settings), ==, expected);
    return n_merged;
}

/* Returns: the samples of the closed day; 0 if there is no closed day */
static uint64_t
count_samples(StoreFolder *folder, guint n_slices)
{
    g_autoptr(UprofStoreFolder) web = uprof_store_folder_open(folder->store, "web-1", NULL);

    for (guint i = 0; i < web->items->len; i++) {
        const UprofStoreItem *item = uprof_store_item(web, i);
        g_autoptr(GError) error = NULL;
        if (!item->is_day)
            continue;
        g_autoptr(UprofStored) stored = uprof_stored_read(web, item, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(stored->run->slices->len, ==, n_slices);
        return stored->run->samples;
    }
    return 0;
}

static void
test_close(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, "web-1;a;b 2\n");
    /* the day is not over */
    g_assert_cmpuint(merge(&folder, FRIDAY_S, false, UPROF_ERROR_NONE), ==, 0);
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, true, UPROF_ERROR_NONE), ==, 2);
    g_assert_cmpuint(count_samples(&folder, 0), ==, 0);
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, false, UPROF_ERROR_NONE), ==, 2);
    g_assert_cmpuint(count_samples(&folder, 2), ==, 3);
    /* no slice counts twice; a late slice counts once */
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, false, UPROF_ERROR_NONE), ==, 0);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 30, "web-1;c 4\n");
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, false, UPROF_ERROR_NONE), ==, 1);
    g_assert_cmpuint(count_samples(&folder, 3), ==, 7);
    g_assert_cmpstr(folder.warnings->str, ==, "");
    store_folder_clear(&folder);
}

/* A damaged slice is left out; the others are merged. */
static void
test_damaged_slice(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, "web-1;a 2\n");
    store_folder_put(&folder, "data/web-1/web-1-20261120T000000Z.folded.gz", "not packed");
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, false, UPROF_ERROR_FAILED), ==, 1);
    g_assert_cmpuint(count_samples(&folder, 1), ==, 2);
    g_assert_true(
        g_pattern_match_simple("*; left out of the day, and not deleted\n", folder.warnings->str));
    g_assert_true(store_folder_has(&folder, "data/web-1/web-1-20261120T000000Z.folded.gz"));
    store_folder_clear(&folder);
}

/* If the sidecar of a day does not say which slices it has counted, no slice is added. */
static void
test_damaged_day(void)
{
    StoreFolder folder;

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, false, UPROF_ERROR_NONE), ==, 1);
    store_folder_put(&folder, "data/web-1/web-1-20261120.meta.json", "{");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, "web-1;a 2\n");
    g_assert_cmpuint(merge(&folder, FRIDAY_S + UPROF_DAY_S, false, UPROF_ERROR_FAILED), ==, 0);
    g_assert_true(g_pattern_match_simple(
        "*profiles of 2026-11-20 are not merged until this is repaired\n", folder.warnings->str));
    store_folder_clear(&folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/merge-days/close", test_close);
    g_test_add_func("/merge-days/damaged-slice", test_damaged_slice);
    g_test_add_func("/merge-days/damaged-day", test_damaged_day);
    return g_test_run();
}
