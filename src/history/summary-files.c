/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "summary-files-priv.h"

#include "uprof/day-summary.h"
#include "uprof/sorted.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "store-priv.h"

#include <string.h>

enum {
    SUMMARY_BYTES_MAX = 64 * 1024 * 1024,
    BLOCK_BYTES = 4096, /* a file can take this much more disk space than its length */
};

/* ---- Which days ---- */

static int
compare_days(const void *a, const void *b)
{
    const int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return UPROF_COMPARE(one, other);
}

/* Returns: (transfer full): day (int64_t, borrowed from the items) -> UprofStoreItem */
static GHashTable *
index_summaries(const UprofStoreFolder *summaries)
{
    GHashTable *by_day = g_hash_table_new(g_int64_hash, g_int64_equal);

    for (guint i = 0; i < summaries->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(summaries, i);
        g_hash_table_insert(by_day, &item->start_s, item);
    }
    return by_day;
}

/* @summary: (nullable): the existing summary of the day of @item */
static bool
is_due(const UprofPruning *pruning, const UprofStoreItem *item, const UprofStoreItem *summary)
{
    if (!item->is_day || item->start_s >= pruning->today_s ||
        item->start_s < uprof_pruning_first_day(pruning))
        return false;
    if (!uprof_store_item_is_complete(item) && !item->has_failures)
        return false;
    return !summary || summary->changed_ns <= item->changed_ns;
}

static void
add_due_days(const UprofPruning *pruning, const UprofStoreFolder *folder, GHashTable *by_day,
             GHashTable *due)
{
    for (guint i = 0; i < folder->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(folder, i);
        if (is_due(pruning, item, g_hash_table_lookup(by_day, &item->start_s)))
            g_hash_table_add(due, &item->start_s);
    }
}

/* Returns: (transfer full): of int64_t: days whose summary is missing or out of date, in order */
static GArray *
find_due_days(const UprofPruning *pruning, const UprofCatalog *catalog,
              const UprofStoreFolder *summaries)
{
    const GPtrArray *folders = uprof_catalog_folders(catalog);
    g_autoptr(GHashTable) by_day = index_summaries(summaries);
    g_autoptr(GHashTable) due = g_hash_table_new(g_int64_hash, g_int64_equal);
    GArray *days = g_array_new(FALSE, FALSE, sizeof(int64_t));
    GHashTableIter at;
    gpointer day_s;

    for (guint i = 0; i < folders->len; i++)
        add_due_days(pruning, g_ptr_array_index(folders, i), by_day, due);
    g_hash_table_iter_init(&at, due);
    while (g_hash_table_iter_next(&at, &day_s, NULL))
        g_array_append_vals(days, day_s, 1);
    g_array_sort(days, compare_days);
    return days;
}

/* ---- Files ---- */

static bool
has_same_text(const UprofStoreFolder *summaries, const char *day, const GString *text)
{
    g_autoptr(GByteArray) bytes =
        uprof_store_read(summaries, day, UPROF_STORE_SUMMARY, SUMMARY_BYTES_MAX, NULL);

    return bytes && bytes->len == text->len && memcmp(bytes->data, text->str, text->len) == 0;
}

static void
write_summary(UprofPruning *pruning, const UprofStoreFolder *summaries, const char *day,
              const GString *text)
{
    g_autoptr(GError) error = NULL;

    if (has_same_text(summaries, day, text))
        return;
    uprof_pruning_show(pruning, "write summary/%s.txt", day);
    pruning->result->n_summaries++;
    pruning->result->bytes_kept += text->len + BLOCK_BYTES;
    if (!uprof_store_write(summaries, day, UPROF_STORE_SUMMARY,
                           (UprofSlice){ text->str, text->len }, &error))
        uprof_pruning_add_error(pruning, error);
}

void
uprof_summary_files_write(UprofPruning *pruning, const UprofCatalog *catalog)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreFolder) summaries = uprof_store_summaries(pruning->store, true, &error);

    if (!summaries) {
        uprof_pruning_add_error(pruning, error);
        return;
    }
    g_autoptr(GArray) due = find_due_days(pruning, catalog, summaries);
    for (guint i = 0; i < due->len; i++) {
        const int64_t day_s = g_array_index(due, int64_t, i);
        g_autofree char *day = uprof_time_format_date(day_s);
        GString *text = uprof_day_summary_render(catalog, day_s, true, pruning->settings->notices,
                                                 &pruning->result->code);
        if (!text)
            continue;
        write_summary(pruning, summaries, day, text);
        g_string_free(text, TRUE);
    }
}

void
uprof_summary_files_expire(UprofPruning *pruning)
{
    g_autoptr(UprofStoreFolder) summaries = uprof_store_summaries(pruning->store, false, NULL);

    for (guint i = 0; summaries && i < summaries->items->len; i++) {
        const UprofStoreItem *item = uprof_store_item(summaries, i);
        g_autoptr(GError) error = NULL;
        if (item->start_s >= uprof_pruning_first_day(pruning)) {
            pruning->result->bytes_kept += item->bytes_used;
            continue;
        }
        uprof_pruning_show(pruning, "remove summary/%s.txt", item->stem);
        if (!pruning->settings->dry_run &&
            !uprof_store_remove_one(summaries, item->stem, UPROF_STORE_SUMMARY, &error))
            uprof_pruning_add_error(pruning, error);
    }
}
