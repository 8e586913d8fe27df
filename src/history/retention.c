/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "retention-priv.h"

#include "uprof/sorted.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "item-facts-priv.h"
#include "summary-files-priv.h"

#include <string.h>

/* The order in which profiles are deleted to keep the size limit of the store. */
typedef enum {
    RANK_USUAL, /* merged slices, and days that are not the newest of their domain */
    RANK_LAST,  /* the newest day of each domain, and slices that are not merged */
} Rank;

/* A profile that may be deleted to keep the size limit of the store. */
typedef struct {
    const UprofStoreFolder *folder; /* borrowed */
    const UprofStoreItem *item;     /* borrowed */
    Rank rank;
    int64_t age_key_s; /* of equal ranks, the candidate with the smallest key is deleted first */
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
    const GArray *facts;            /* borrowed: of UprofItemFacts, as the items of @folder */
    int64_t day_s;                  /* 00:00 UTC, since 1970 */
    guint first, end;               /* in the items of @folder */
    bool keeps_slices;              /* a slice of this day stays */
} DayOf;

/* ---- The newest day of each domain ---- */

/* A profile that may be the newest of its domain. All pointers are borrowed. */
typedef struct {
    UprofStoreItem *item;
    int64_t day_s;
    const char *uuid;
} Dated;

/* Adds each profile to @dated. If its domain is not known now, keeps it: adds it to @newest. */
static void
date_folder(const UprofStoreFolder *folder, const GArray *facts, GArray *dated, GHashTable *newest)
{
    for (guint i = 0; i < folder->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(folder, i);
        const UprofItemFacts *known = &g_array_index(facts, UprofItemFacts, i);
        const Dated one = { item, uprof_time_day_start(item->start_s), known->uuid };
        if (known->is_read)
            g_array_append_val(dated, one);
        else if (known->is_unknown)
            g_hash_table_add(newest, item);
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
            g_hash_table_insert(days, (gpointer)one->uuid, &one->day_s);
    }
    return days;
}

/*
 * Returns: (transfer full): set of UprofStoreItem: the newest closed days. If a domain was renamed,
 *   its newest day can have several profiles, in several folders.
 */
static GHashTable *
find_newest(const GPtrArray *folders, const GPtrArray *facts)
{
    g_autoptr(GArray) dated = g_array_new(FALSE, FALSE, sizeof(Dated));
    GHashTable *newest = g_hash_table_new(NULL, NULL);

    for (guint i = 0; i < folders->len; i++)
        date_folder(g_ptr_array_index(folders, i), g_ptr_array_index(facts, i), dated, newest);
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
keep_item(Retention *retention, const DayOf *day, const UprofStoreItem *item, Rank rank)
{
    const Candidate candidate = { day->folder, item, rank,
                                  item->is_day ? day->day_s + UPROF_DAY_S : item->start_s };

    retention->pruning->result->bytes_kept += item->bytes_used;
    /* a slice that is not complete is being written, or left over from a killed run */
    if (item->is_day || uprof_store_item_is_complete(item))
        g_array_append_val(retention->candidates, candidate);
}

static void
expire_slice(Retention *retention, DayOf *day, const UprofStoreItem *item,
             const UprofItemFacts *facts)
{
    UprofPruning *pruning = retention->pruning;
    const bool is_old = day->day_s < uprof_pruning_limit(pruning, pruning->settings->slice_days);

    if (is_old && uprof_store_item_is_complete(item) && (facts->is_merged || facts->is_damaged)) {
        remove_item(retention, day->folder, item);
        return;
    }
    day->keeps_slices = true;
    keep_item(retention, day, item, facts->is_merged ? RANK_USUAL : RANK_LAST);
}

static void
expire_closed_day(Retention *retention, const DayOf *day, const UprofStoreItem *item)
{
    const bool is_old = day->day_s < uprof_pruning_first_day(retention->pruning);
    const bool is_newest = g_hash_table_contains(retention->newest, item);

    if (is_old && !day->keeps_slices && !is_newest)
        remove_item(retention, day->folder, item);
    else
        keep_item(retention, day, item, is_newest ? RANK_LAST : RANK_USUAL);
}

static void
expire_day(Retention *retention, DayOf *day)
{
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day)
            expire_slice(retention, day, item, &g_array_index(day->facts, UprofItemFacts, i));
    }
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (item->is_day)
            expire_closed_day(retention, day, item);
    }
}

static void
expire_folder(Retention *retention, const UprofStoreFolder *folder, const GArray *facts)
{
    guint i = 0;

    while (i < folder->items->len) {
        const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, i)->start_s);
        DayOf day = { .folder = folder, .facts = facts, .day_s = day_s, .first = i };
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

    if (one->rank != other->rank)
        return UPROF_COMPARE(one->rank, other->rank);
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

static void
warn_of_last(const UprofPruning *pruning, unsigned n)
{
    uprof_notice(
        pruning->settings->notices, UPROF_NOTICE_WARNING,
        "'%s' was larger than maxMegabytes; profiles that are usually kept were deleted: %u "
        "(the newest day of a domain, or not merged yet); raise maxMegabytes, or collect "
        "less",
        uprof_store_path(pruning->store), n);
}

/* Deletes the oldest candidates until the store is below its limit. */
static void
make_room(Retention *retention)
{
    GArray *candidates = retention->candidates;
    unsigned n_last = 0;

    g_array_sort(candidates, compare_candidates);
    for (guint i = 0; i < candidates->len && uprof_retention_is_exceeded(retention->pruning); i++) {
        const Candidate *one = &g_array_index(candidates, Candidate, i);
        retention->pruning->result->bytes_kept -= one->item->bytes_used;
        n_last += one->rank == RANK_LAST;
        remove_item(retention, one->folder, one->item);
    }
    if (n_last > 0)
        warn_of_last(retention->pruning, n_last);
}

/* ---- Retention ---- */

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
    g_autoptr(GPtrArray) facts = uprof_item_facts_find(pruning, folders);
    g_autoptr(GHashTable) newest = find_newest(folders, facts);
    g_autoptr(GHashTable) changed = g_hash_table_new(NULL, NULL);
    Retention retention = { pruning, newest, changed, candidates };

    pruning->result->bytes_kept = 0;
    for (guint i = 0; i < folders->len; i++)
        expire_folder(&retention, g_ptr_array_index(folders, i), g_ptr_array_index(facts, i));
    uprof_summary_files_expire(pruning);
    make_room(&retention);
    if (!pruning->settings->dry_run)
        remove_empty_folders(&retention, folders);
}
