/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Also tests retention.c and summary-files.c, because they are steps of a prune. */
#include "uprof/prune-store.h"

#include "store-folder.h"
#include "uprof/time-text.h"

#define SLICE "data/web-1/web-1-20261120T000000Z.folded.gz"
#define FRIDAY "data/web-1/web-1-20261120.folded.gz"
#define SATURDAY "data/web-1/web-1-20261121.folded.gz"
#define DB_FRIDAY "data/db/db-20261120.folded.gz"
#define SUMMARY "summary/2026-11-20.txt"

static UprofPruneResult
prune_on_day(StoreFolder *folder, int day, bool dry_run, uint64_t max_megabytes)
{
    const UprofPruneSettings settings = {
        .slice_days = 2,
        .merged_days = 10,
        .max_megabytes = max_megabytes,
        .dry_run = dry_run,
        .notices = &folder->notices,
    };
    UprofPruneResult result;

    uprof_prune_store(folder->store, &settings, FRIDAY_S + day * (int64_t)UPROF_DAY_S, &result);
    return result;
}

static void
init_two_days(StoreFolder *folder)
{
    store_folder_init(folder);
    store_folder_put_slice(folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(folder, "web-1", WEB_UUID, FRIDAY_S + UPROF_DAY_S, "web-1;a 2\n");
}

/*
 * Each step comes when a day has reached a certain age: merge and write the summary, delete slices,
 * delete the day and its summary.
 */
static void
test_ages(void)
{
    StoreFolder folder;

    init_two_days(&folder);
    UprofPruneResult result = prune_on_day(&folder, 1, false, 0);
    g_assert_cmpuint(result.n_days, ==, 1);
    g_assert_cmpuint(result.n_slices, ==, 1);
    g_assert_cmpuint(result.n_summaries, ==, 1);
    g_assert_cmpuint(result.n_removed, ==, 0);
    g_assert_true(store_folder_has(&folder, SLICE));
    g_assert_true(store_folder_has(&folder, FRIDAY));
    g_assert_true(store_folder_has(&folder, SUMMARY));

    result = prune_on_day(&folder, 3, false, 0);
    g_assert_cmpuint(result.n_removed, ==, 1);
    g_assert_false(store_folder_has(&folder, SLICE));
    g_assert_true(store_folder_has(&folder, FRIDAY));

    prune_on_day(&folder, 11, false, 0);
    g_assert_false(store_folder_has(&folder, FRIDAY));
    g_assert_false(store_folder_has(&folder, SUMMARY));

    /* the newest day of a domain stays, whatever its age */
    prune_on_day(&folder, 500, false, 0);
    g_assert_true(store_folder_has(&folder, SATURDAY));
    g_assert_cmpint(result.code, ==, UPROF_ERROR_NONE);
    g_assert_cmpstr(folder.warnings->str, ==, "");
    store_folder_clear(&folder);
}

static void
test_dry_run(void)
{
    StoreFolder folder;

    init_two_days(&folder);
    const UprofPruneResult result = prune_on_day(&folder, 11, true, 0);
    g_assert_cmpuint(result.n_slices, ==, 2);
    g_assert_cmpuint(result.n_removed, ==, 2);
    g_assert_true(store_folder_has(&folder, SLICE));
    g_assert_false(store_folder_has(&folder, FRIDAY));
    g_assert_false(store_folder_has(&folder, SUMMARY));
    store_folder_clear(&folder);
}

/* Returns: (transfer full): folded stacks that need more than 1 MB on disk */
static char *
make_large_stacks(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(1);
    GString *text = g_string_new(NULL);

    for (unsigned i = 0; i < 90000; i++)
        g_string_append_printf(text, "web-1;f%08x%08x%08x 1\n", g_rand_int(random),
                               g_rand_int(random), g_rand_int(random));
    return g_string_free(text, FALSE);
}

/*
 * If the store is too large, old profiles are deleted first, but the newest profile of each domain
 * only after all others. These can be deleted, too: a host whose domains always get new UUIDs must
 * not fill the disk.
 */
static void
test_limit(void)
{
    StoreFolder folder;
    g_autofree char *stacks = make_large_stacks();

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "db", DB_UUID, FRIDAY_S, stacks);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + UPROF_DAY_S, stacks);
    UprofPruneResult result = prune_on_day(&folder, 2, false, 3);
    g_assert_false(store_folder_has(&folder, SLICE));
    g_assert_false(store_folder_has(&folder, FRIDAY));
    g_assert_true(store_folder_has(&folder, DB_FRIDAY));
    g_assert_true(store_folder_has(&folder, SATURDAY));
    g_assert_cmpstr(folder.warnings->str, ==, "");

    result = prune_on_day(&folder, 2, false, 2);
    g_assert_false(store_folder_has(&folder, DB_FRIDAY));
    g_assert_true(store_folder_has(&folder, SATURDAY));
    g_assert_cmpuint(result.bytes_kept, <=, 2 << 20);
    g_assert_true(g_pattern_match_simple(
        "*larger than maxMegabytes; profiles that are usually kept were deleted: 1 *",
        folder.warnings->str));

    result = prune_on_day(&folder, 2, false, 1);
    g_assert_false(store_folder_has(&folder, SATURDAY));
    g_assert_cmpuint(result.bytes_kept, <=, 1 << 20);
    g_assert_cmpint(result.code, ==, UPROF_ERROR_NONE);
    store_folder_clear(&folder);
}

/* An unmerged slice is deleted last. A profile without a sidecar may be incomplete, and stays. */
static void
test_limit_today(void)
{
    StoreFolder folder;
    g_autofree char *stacks = make_large_stacks();

    store_folder_init(&folder);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S, "web-1;a 1\n");
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, stacks);
    store_folder_put(&folder, "data/web-1/web-1-20261120T000200Z.folded.gz", "begun");
    const UprofPruneResult result = prune_on_day(&folder, 0, false, 1);
    g_assert_false(store_folder_has(&folder, SLICE));
    g_assert_cmpuint(result.bytes_kept, <=, 1 << 20);
    g_assert_true(store_folder_has(&folder, "data/web-1/web-1-20261120T000200Z.folded.gz"));
    store_folder_clear(&folder);
}

/* A summary is written again if, and only if, its day has changed. */
static void
test_summary_is_due(void)
{
    StoreFolder folder;

    init_two_days(&folder);
    g_assert_cmpuint(prune_on_day(&folder, 1, false, 0).n_summaries, ==, 1);
    g_assert_cmpuint(prune_on_day(&folder, 1, false, 0).n_summaries, ==, 0);
    store_folder_put_slice(&folder, "web-1", WEB_UUID, FRIDAY_S + 60, "web-1;b 7\n");
    g_assert_cmpuint(prune_on_day(&folder, 1, false, 0).n_summaries, ==, 1);
    store_folder_clear(&folder);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/prune-store/ages", test_ages);
    g_test_add_func("/prune-store/dry-run", test_dry_run);
    g_test_add_func("/prune-store/limit", test_limit);
    g_test_add_func("/prune-store/limit-today", test_limit_today);
    g_test_add_func("/prune-store/summary-is-due", test_summary_is_due);
    return g_test_run();
}
