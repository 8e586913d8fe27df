/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "retention-priv.h"

#include "uprof/sorted.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "store-priv.h"
#include "stored-profile-priv.h"
#include "summary-files-priv.h"

#include <string.h>

/* A profile that may be deleted to stay below the limit of the store. */
typedef struct {
    const UprofStoreFolder *folder; /* borrowed */
    const UprofStoreItem *item;     /* borrowed */
    int64_t age_key_s;              /* the candidate with the smallest key is deleted first */
} Candidate;

typedef struct {
    UprofPruning *pruning; /* borrowed */
    GHashTable *newest;    /* of UprofStoreItem: the newest closed day of each domain */
    GHashTable *changed;   /* of UprofStoreFolder: folders that profiles were deleted from */
    GArray *candidates;    /* of Candidate */
} Retention;

/* The items of one folder and one day. */
typedef struct {
    const UprofStoreFolder *folder; /* borrowed */
    int64_t day_s;                  /* 00:00 UTC, since 1970 */
    guint first, end;               /* in the items of @folder */
    GPtrArray *closed;              /* of UprofRun: the closed profiles that are not damaged */
    bool keeps_slices;              /* a slice of this day stays */
} DayOf;

static void
free_run(gpointer run)
{
    uprof_run_free(run);
}

/* ---- The newest day of each domain ---- */

/* A profile that may be the newest of its domain. */
typedef struct {
    UprofStoreItem *item; /* borrowed */
    int64_t day_s;
    char *uuid; /* owned */
} Dated;

static void
clear_dated(gpointer data)
{
    g_free(((Dated *)data)->uuid);
}

/* Adds @item to @dated; or to @newest, so that it stays, if its domain cannot be read now. */
static void
date_item(GArray *dated, GHashTable *newest, const UprofStoreFolder *folder, UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, &error);

    if (run) {
        const Dated one = { item, uprof_time_day_start(item->start_s), g_strdup(run->uuid) };
        g_array_append_val(dated, one);
    } else if (!g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA)) {
        g_hash_table_add(newest, item); /* nobody knows whether the profile is the newest */
    }
}

static void
date_folder(const UprofPruning *pruning, const UprofStoreFolder *folder, GArray *dated,
            GHashTable *newest)
{
    for (guint i = 0; i < folder->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(folder, i);
        /* a dry run has merged nothing, so a slice stands for the day that would be the newest */
        const bool would_merge = pruning->settings->dry_run && item->start_s < pruning->today_s;
        if (uprof_store_item_is_complete(item) && (item->is_day || would_merge))
            date_item(dated, newest, folder, item);
    }
}

/* Returns: (transfer full): UUID (borrowed from @dated) -> int64_t *, the newest day */
static GHashTable *
find_newest_days(const GArray *dated)
{
    GHashTable *days = g_hash_table_new(g_str_hash, g_str_equal);

    for (guint i = 0; i < dated->len; i++) {
        Dated *one = &g_array_index(dated, Dated, i);
        const int64_t *newest_s = g_hash_table_lookup(days, one->uuid);
        if (!newest_s || one->day_s > *newest_s)
            g_hash_table_insert(days, one->uuid, &one->day_s);
    }
    return days;
}

/*
 * Returns: (transfer full): set of UprofStoreItem: the newest closed days. If a domain was renamed,
 *   its newest day can have several profiles, in several folders.
 */
static GHashTable *
find_newest(const UprofPruning *pruning, const GPtrArray *folders)
{
    g_autoptr(GArray) dated = g_array_new(FALSE, FALSE, sizeof(Dated));
    GHashTable *newest = g_hash_table_new(NULL, NULL);

    g_array_set_clear_func(dated, clear_dated);
    for (guint i = 0; i < folders->len; i++)
        date_folder(pruning, g_ptr_array_index(folders, i), dated, newest);
    g_autoptr(GHashTable) days = find_newest_days(dated);
    for (guint i = 0; i < dated->len; i++) {
        const Dated *one = &g_array_index(dated, Dated, i);
        if (one->day_s == *(const int64_t *)g_hash_table_lookup(days, one->uuid))
            g_hash_table_add(newest, one->item);
    }
    return newest;
}

/* ---- Deleting by age ---- */

static void
remove_item(Retention *retention, const UprofStoreFolder *folder, const UprofStoreItem *item)
{
    UprofPruning *pruning = retention->pruning;
    g_autoptr(GError) error = NULL;

    uprof_pruning_show(pruning, "remove data/%s/%s", folder->name, item->stem);
    if (!pruning->settings->dry_run && !uprof_store_remove(folder, item->stem, &error)) {
        pruning->result->bytes_kept += item->bytes_used;
        uprof_pruning_add_error(pruning, error);
        return;
    }
    g_hash_table_add(retention->changed, (gpointer)folder);
    pruning->result->n_removed++;
}

static void
keep_item(Retention *retention, const DayOf *day, const UprofStoreItem *item, bool is_candidate)
{
    const Candidate candidate = { day->folder, item,
                                  item->is_day ? day->day_s + UPROF_DAY_S : item->start_s };

    retention->pruning->result->bytes_kept += item->bytes_used;
    if (is_candidate)
        g_array_append_val(retention->candidates, candidate);
}

/* A closed day has counted the slice, or in a dry run would count it. */
static bool
is_merged(const UprofPruning *pruning, const DayOf *day, const UprofStoreItem *slice)
{
    for (guint i = 0; i < day->closed->len; i++)
        if (uprof_stored_has_slice(g_ptr_array_index(day->closed, i), slice->start_s))
            return true;
    return pruning->settings->dry_run && day->day_s < pruning->today_s;
}

static bool
is_damaged(const UprofStoreFolder *folder, const UprofStoreItem *slice)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStored) stored = uprof_stored_read(folder, slice, &error);

    return !stored && g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

static void
read_closed_days(DayOf *day)
{
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day || !uprof_store_item_is_complete(item))
            continue;
        g_autoptr(UprofStored) stored = uprof_stored_read(day->folder, item, NULL);
        if (stored)
            g_ptr_array_add(day->closed, g_steal_pointer(&stored->run));
    }
}

static void
expire_slice(Retention *retention, DayOf *day, const UprofStoreItem *item)
{
    UprofPruning *pruning = retention->pruning;
    const bool is_old = day->day_s < uprof_pruning_limit(pruning, pruning->settings->slice_days);
    const bool merged = is_merged(pruning, day, item);

    if (is_old && uprof_store_item_is_complete(item) && (merged || is_damaged(day->folder, item))) {
        remove_item(retention, day->folder, item);
        return;
    }
    day->keeps_slices = true;
    keep_item(retention, day, item, merged);
}

static void
expire_closed_day(Retention *retention, const DayOf *day, const UprofStoreItem *item)
{
    const bool is_old = day->day_s < uprof_pruning_first_day(retention->pruning);
    const bool is_newest = g_hash_table_contains(retention->newest, item);

    if (is_old && !day->keeps_slices && !is_newest)
        remove_item(retention, day->folder, item);
    else
        keep_item(retention, day, item, !is_newest);
}

static void
expire_day(Retention *retention, DayOf *day)
{
    day->closed = g_ptr_array_new_with_free_func(free_run);
    read_closed_days(day);
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day)
            expire_slice(retention, day, item);
    }
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (item->is_day)
            expire_closed_day(retention, day, item);
    }
    g_ptr_array_unref(day->closed);
}

static void
expire_folder(Retention *retention, const UprofStoreFolder *folder)
{
    guint i = 0;

    while (i < folder->items->len) {
        const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, i)->start_s);
        DayOf day = { .folder = folder, .day_s = day_s, .first = i };
        while (i < folder->items->len && uprof_store_item(folder, i)->start_s < day_s + UPROF_DAY_S)
            i++;
        day.end = i;
        expire_day(retention, &day);
    }
}

/* ---- Deleting by size ---- */

static int
compare_candidates(const void *a, const void *b)
{
    const Candidate *one = a, *other = b;

    if (one->age_key_s != other->age_key_s)
        return UPROF_COMPARE(one->age_key_s, other->age_key_s);
    const int names = strcmp(one->folder->name, other->folder->name);
    return names != 0 ? names : strcmp(one->item->stem, other->item->stem);
}

bool
uprof_retention_is_exceeded(const UprofPruning *pruning)
{
    const uint64_t max_megabytes = pruning->settings->max_megabytes;

    return max_megabytes > 0 && pruning->result->bytes_kept > max_megabytes << 20;
}

/* Deletes the oldest candidates until the store is below its limit. */
static void
make_room(Retention *retention)
{
    GArray *candidates = retention->candidates;

    g_array_sort(candidates, compare_candidates);
    for (guint i = 0; i < candidates->len && uprof_retention_is_exceeded(retention->pruning); i++) {
        const Candidate *one = &g_array_index(candidates, Candidate, i);
        retention->pruning->result->bytes_kept -= one->item->bytes_used;
        remove_item(retention, one->folder, one->item);
    }
}

/* ---- All of it ---- */

/* Removes folders that became empty. Other empty folders may be new, and stay. */
static void
remove_empty_folders(Retention *retention, const GPtrArray *folders)
{
    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        if (g_hash_table_contains(retention->changed, folder))
            uprof_store_remove_if_empty(retention->pruning->store, folder);
    }
}

void
uprof_retention_apply(UprofPruning *pruning, const UprofCatalog *catalog)
{
    const GPtrArray *folders = uprof_catalog_folders(catalog);
    g_autoptr(GArray) candidates = g_array_new(FALSE, FALSE, sizeof(Candidate));
    g_autoptr(GHashTable) newest = find_newest(pruning, folders);
    g_autoptr(GHashTable) changed = g_hash_table_new(NULL, NULL);
    Retention retention = { pruning, newest, changed, candidates };

    pruning->result->bytes_kept = 0;
    for (guint i = 0; i < folders->len; i++)
        expire_folder(&retention, g_ptr_array_index(folders, i));
    uprof_summary_files_expire(pruning);
    make_room(&retention);
    if (!pruning->settings->dry_run)
        remove_empty_folders(&retention, folders);
}
