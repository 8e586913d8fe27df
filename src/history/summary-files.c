/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "summary-files-priv.h"

#include "uprof/day-summary.h"
#include "uprof/sorted.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "store-process-priv.h"

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
has_same_text(const UprofStoreFolder *summaries, const char *day, UprofSlice text)
{
    g_autoptr(GByteArray) bytes =
        uprof_store_read(summaries, day, UPROF_STORE_SUMMARY, SUMMARY_BYTES_MAX, NULL);

    return bytes && bytes->len == text.len && memcmp(bytes->data, text.data, text.len) == 0;
}

static void
write_summary(UprofPruning *pruning, const UprofStoreFolder *summaries, const char *day,
              UprofSlice text)
{
    g_autoptr(GError) error = NULL;

    if (has_same_text(summaries, day, text))
        return;
    uprof_pruning_show(pruning, "write summary/%s.txt", day);
    pruning->result->n_summaries++;
    pruning->result->bytes_kept += text.len + BLOCK_BYTES;
    if (!uprof_store_write(summaries, day, UPROF_STORE_SUMMARY, text, &error))
        uprof_pruning_add_error(pruning, error);
}

/* ---- In a process ---- */

/* The input of the process of each day. All pointers are borrowed. */
typedef struct {
    UprofCatalog *catalog;
    const GArray *days; /* of int64_t */
} Rendering;

/* The beginning of the reply; the text follows. */
typedef struct {
    UprofErrorCode code;
    uint32_t has_text; /* 0 or 1: the store has a profile or a failure of that day */
} RenderedHead;

/* @job: index of the day. @reply: RenderedHead and the text */
static void
render_summary(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    const Rendering *rendering = data;
    RenderedHead head = { 0 };

    uprof_catalog_set_notices(rendering->catalog, notices);
    GString *text =
        uprof_day_summary_render(rendering->catalog, g_array_index(rendering->days, int64_t, job),
                                 true, notices, &head.code);
    head.has_text = text ? 1 : 0;
    g_byte_array_append(reply, (const guint8 *)&head, sizeof(head));
    if (!text)
        return;
    g_byte_array_append(reply, (const guint8 *)text->str, (guint)text->len);
    g_string_free(text, TRUE);
}

/* ---- In the program ---- */

/* Does the text consist of lines that are safe to print, without colors? */
static bool
is_plain_text(UprofSlice text)
{
    g_autoptr(GString) clean = g_string_new(NULL);

    uprof_text_append_lines(clean, text);
    return clean->len == text.len && memcmp(clean->str, text.data, text.len) == 0 &&
           !memchr(text.data, '\x1b', text.len);
}

static void
add_failure(UprofPruning *pruning, const char *day, const GError *error)
{
    g_autoptr(GError) failure = g_error_new(
        UPROF_ERROR, UPROF_ERROR_FAILED, "no summary of %s: %s", day,
        error ? error->message : "the process that reads the files has sent a malformed reply");

    uprof_pruning_add_error(pruning, failure);
}

static void
summarize_day(UprofPruning *pruning, UprofStoreProcess *process, guint job,
              const UprofStoreFolder *summaries, const char *day)
{
    const UprofStoreReaction reaction = { .notices = pruning->settings->notices };
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) reply = uprof_store_process_run(process, job, &reaction, &error);
    RenderedHead head;

    if (!reply || reply->len < sizeof(head)) {
        add_failure(pruning, day, error);
        return;
    }
    memcpy(&head, reply->data, sizeof(head));
    const UprofSlice text = { reply->data + sizeof(head), reply->len - sizeof(head) };
    if (!is_plain_text(text)) {
        add_failure(pruning, day, NULL);
        return;
    }
    uprof_pruning_take_code(pruning, head.code);
    if (head.has_text)
        write_summary(pruning, summaries, day, text);
}

static void
summarize_days(UprofPruning *pruning, UprofCatalog *catalog, const UprofStoreFolder *summaries,
               const GArray *days)
{
    Rendering rendering = { catalog, days };
    const UprofStoreWork work = {
        .folders = uprof_catalog_folders(catalog),
        .work = render_summary,
        .data = &rendering,
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreProcess) process = uprof_store_process_start(&work, &error);

    if (!process)
        uprof_pruning_add_error(pruning, error);
    for (guint i = 0; process && i < days->len; i++) {
        g_autofree char *day = uprof_time_format_date(g_array_index(days, int64_t, i));
        summarize_day(pruning, process, i, summaries, day);
    }
}

void
uprof_summary_files_write(UprofPruning *pruning, UprofCatalog *catalog)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreFolder) summaries = uprof_store_summaries(pruning->store, true, &error);

    if (!summaries) {
        uprof_pruning_add_error(pruning, error);
        return;
    }
    g_autoptr(GArray) due = find_due_days(pruning, catalog, summaries);
    if (due->len > 0)
        summarize_days(pruning, catalog, summaries, due);
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
