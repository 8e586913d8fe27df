/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/history-rows.h"

#include "uprof/sorted.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "failures-priv.h"

#include <string.h>

/* The rows of one day that are being made. */
typedef struct {
    const UprofHistoryQuery *query; /* borrowed */
    const char *uuid;               /* (nullable): borrowed: of the only domain */
    int64_t day_s;                  /* 00:00 UTC, since 1970 */
    GPtrArray *rows;                /* of UprofHistoryRow */
} Day;

static void
free_row(gpointer data)
{
    UprofHistoryRow *row = data;

    g_free(row->name);
    g_free(row->uuid);
    g_free(row->hottest);
    g_free(row->failure);
    g_free(row);
}

static GPtrArray *
new_rows(void)
{
    return g_ptr_array_new_with_free_func(free_row);
}

static UprofHistoryRow *
new_row(const char *name, const char *uuid, int64_t start_s, bool is_day)
{
    UprofHistoryRow *row = g_new0(UprofHistoryRow, 1);

    row->name = uprof_text_quote(name);
    row->uuid = g_strdup(uuid);
    row->start_s = start_s;
    row->is_day = is_day;
    return row;
}

static UprofHistoryRow *
find_row(const Day *day, const char *uuid, const char *name)
{
    for (guint i = 0; i < day->rows->len; i++) {
        UprofHistoryRow *row = g_ptr_array_index(day->rows, i);
        if (g_strcmp0(row->uuid, uuid) == 0 && (uuid || strcmp(row->name, name) == 0))
            return row;
    }
    return NULL;
}

static UprofHistoryRow *
add_row(Day *day, const char *uuid, const char *name)
{
    UprofHistoryRow *row = new_row(name, uuid, day->day_s, true);

    g_ptr_array_add(day->rows, row);
    return row;
}

/* Notes the function with the most weight of its own. */
static void
note_hottest(UprofHistoryRow *row, UprofProfile *profile)
{
    uint64_t halted;

    uprof_profile_settle(profile, NULL);
    g_autoptr(GArray) rows = uprof_profile_rows(profile, &halted);
    row->weight = uprof_profile_total(profile) - halted;
    if (rows->len == 0)
        return;
    const UprofProfileRow *first = &g_array_index(rows, UprofProfileRow, 0);
    row->hottest = g_strdup(uprof_name_text(first->name));
    row->hottest_self = first->self;
}

static void
note_run(UprofHistoryRow *row, const UprofRun *run)
{
    row->samples = run->samples;
    row->running = run->running;
    row->duration_ns = run->duration_ns;
}

/* ---- Days ---- */

static uint64_t
measure_day(const UprofStoreFolder *folder, int64_t day_s)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < folder->items->len; i++) {
        const UprofStoreItem *item = uprof_store_item(folder, i);
        if (item->start_s >= day_s && item->start_s < day_s + UPROF_DAY_S)
            bytes += item->bytes_used;
    }
    return bytes;
}

/* Notes what the selected profiles of a domain have together. */
static void
note_domain(UprofHistoryRow *row, const GPtrArray *selection, const UprofLoadSettings *settings,
            UprofErrorCode *code)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, settings);
    const UprofStoreFolder *last = NULL;

    *code =
        uprof_error_merge(*code, uprof_selection_load(selection, row->uuid, load, &row->n_rounds));
    note_run(row, load->run);
    note_hottest(row, load->profile);
    for (guint i = 0; i < selection->len; i++) {
        const UprofSelected *selected = g_ptr_array_index(selection, i);
        if (strcmp(selected->run->uuid, row->uuid) != 0 || selected->folder == last)
            continue;
        last = selected->folder;
        row->bytes += measure_day(last, row->start_s);
    }
}

static void
add_failure(const UprofStoreFolder *folder, const char *uuid, int64_t at_s, const char *reason,
            void *data)
{
    Day *day = data;

    if (day->uuid && g_strcmp0(uuid, day->uuid) != 0)
        return;
    UprofHistoryRow *row = find_row(day, uuid, folder->name);
    (row ? row : add_row(day, uuid, folder->name))->n_failed++;
}

static void
add_failures(Day *day)
{
    const GPtrArray *folders = uprof_catalog_folders(day->query->catalog);

    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const UprofStoreItem *item = uprof_store_item(folder, j);
            if (item->has_failures && item->start_s == day->day_s)
                uprof_failures_read(folder, item, add_failure, day);
        }
    }
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofHistoryRow *one = *(UprofHistoryRow *const *)a;
    const UprofHistoryRow *other = *(UprofHistoryRow *const *)b;
    const int names = strcmp(one->name, other->name);

    return names != 0 ? names : g_strcmp0(one->uuid, other->uuid);
}

static void
add_day(const UprofHistoryQuery *query, const char *uuid, int64_t day_s, GPtrArray *all,
        UprofErrorCode *code)
{
    const UprofLoadSettings settings = { .notices = query->notices };
    UprofOmissions omissions = { 0 };
    Day day = { query, uuid, day_s, new_rows() };
    g_autoptr(GPtrArray) selection =
        uprof_catalog_select(query->catalog, day_s, day_s + UPROF_DAY_S, uuid, &omissions);

    if (omissions.n_damaged > 0)
        *code = uprof_error_merge(*code, UPROF_ERROR_FAILED);
    for (guint i = 0; i < selection->len; i++) {
        const char *found = ((const UprofSelected *)g_ptr_array_index(selection, i))->run->uuid;
        const char *name = uprof_selection_name(selection, found);
        if (!find_row(&day, found, name))
            note_domain(add_row(&day, found, name), selection, &settings, code);
    }
    add_failures(&day);
    g_ptr_array_sort(day.rows, compare_rows);
    g_ptr_array_extend_and_steal(all, day.rows);
}

static int
compare_times(gconstpointer a, gconstpointer b)
{
    return UPROF_COMPARE(*(const int64_t *)a, *(const int64_t *)b);
}

/* Returns: (transfer full): of int64_t: the days of the query with a file, sorted, each once or
 * more */
static GArray *
find_days(const UprofHistoryQuery *query)
{
    const GPtrArray *folders = uprof_catalog_folders(query->catalog);
    GArray *days = g_array_new(FALSE, FALSE, sizeof(int64_t));

    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, j)->start_s);
            if (day_s >= uprof_time_day_start(query->since_s) && day_s < query->until_s)
                g_array_append_val(days, day_s);
        }
    }
    g_array_sort(days, compare_times);
    return days;
}

/* @uuid: (out) (transfer full) (nullable). Returns: false after a warning: there is no such domain
 */
static bool
find_domain(const UprofHistoryQuery *query, char **uuid, UprofErrorCode *code)
{
    g_autoptr(GError) error = NULL;

    *uuid = query->domain ? uprof_catalog_find_domain(query->catalog, query->domain, &error) : NULL;
    if (error)
        *code = uprof_error_merge(*code, uprof_notice_error(query->notices, error));
    return !error;
}

GPtrArray *
uprof_history_days(const UprofHistoryQuery *query, UprofErrorCode *code)
{
    GPtrArray *rows = new_rows();
    g_autoptr(GArray) days = find_days(query);
    g_autofree char *uuid = NULL;

    if (!find_domain(query, &uuid, code))
        return rows;
    for (guint i = 0; i < days->len; i++)
        if (i == 0 || g_array_index(days, int64_t, i) != g_array_index(days, int64_t, i - 1))
            add_day(query, uuid, g_array_index(days, int64_t, i), rows, code);
    return rows;
}

/* ---- Rounds ---- */

static void
add_stack(const UprofSlice *slices, unsigned n, bool is_cut, uint64_t count, void *data)
{
    UprofProfile *profile = data;
    UprofNames *names = uprof_profile_names(profile);
    const UprofName *frames[UPROF_FOLDED_FRAMES_MAX];

    for (unsigned i = 1; i < n; i++)
        frames[i - 1] = uprof_names_read_back(names, slices[i]);
    if (n > 1)
        uprof_profile_add(profile, frames, n - 1, count);
}

static void
add_round(const UprofHistoryQuery *query, const char *uuid, const UprofStoreFolder *folder,
          const UprofStoreItem *item, GPtrArray *rows, UprofErrorCode *code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStored) stored = uprof_stored_read(folder, item, &error);
    g_autoptr(UprofNames) names = uprof_names_new();

    if (!stored) {
        *code = uprof_error_merge(*code, uprof_notice_error(query->notices, error));
        return;
    }
    if (uuid && strcmp(stored->run->uuid, uuid) != 0)
        return;
    const char *name = stored->run->domain ? stored->run->domain : folder->name;
    const UprofName *root = uprof_names_intern(names, (UprofSlice){ name, strlen(name) });
    g_autoptr(UprofProfile) profile = uprof_profile_new(names, root, true);
    UprofHistoryRow *row = new_row(name, stored->run->uuid, item->start_s, false);
    uprof_stored_walk(stored, add_stack, profile);
    row->n_rounds = 1;
    row->bytes = item->bytes_used;
    note_run(row, stored->run);
    note_hottest(row, profile);
    g_ptr_array_add(rows, row);
}

/* The rounds of a query that are being listed. */
typedef struct {
    const UprofHistoryQuery *query; /* borrowed */
    const char *uuid;               /* (nullable): borrowed: of the only domain */
    GPtrArray *rows;                /* of UprofHistoryRow */
} Rounds;

static void
add_failed_round(const UprofStoreFolder *folder, const char *uuid, int64_t at_s, const char *reason,
                 void *data)
{
    const Rounds *rounds = data;

    if ((rounds->uuid && g_strcmp0(uuid, rounds->uuid) != 0) || at_s < rounds->query->since_s ||
        at_s >= rounds->query->until_s)
        return;
    UprofHistoryRow *row = new_row(folder->name, uuid, at_s, false);
    row->n_failed = 1;
    row->failure = g_strdup(reason);
    g_ptr_array_add(rounds->rows, row);
}

/* Failures are stored without the name of the domain, so that their rows have that of the folder.
 */
static void
name_failed_rounds(GPtrArray *rows)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal); /* UUID -> name */

    for (guint i = 0; i < rows->len; i++) {
        const UprofHistoryRow *row = g_ptr_array_index(rows, i);
        if (!row->failure && row->uuid)
            g_hash_table_insert(names, row->uuid, row->name);
    }
    for (guint i = 0; i < rows->len; i++) {
        UprofHistoryRow *row = g_ptr_array_index(rows, i);
        const char *name = row->failure && row->uuid ? g_hash_table_lookup(names, row->uuid) : NULL;
        if (!name)
            continue;
        g_free(row->name);
        row->name = g_strdup(name);
    }
}

static int
compare_starts(gconstpointer a, gconstpointer b)
{
    const UprofHistoryRow *one = *(UprofHistoryRow *const *)a;
    const UprofHistoryRow *other = *(UprofHistoryRow *const *)b;

    return one->start_s != other->start_s ? UPROF_COMPARE(one->start_s, other->start_s)
                                          : compare_rows(a, b);
}

GPtrArray *
uprof_history_rounds(const UprofHistoryQuery *query, UprofErrorCode *code)
{
    const GPtrArray *folders = uprof_catalog_folders(query->catalog);
    GPtrArray *rows = new_rows();
    g_autofree char *uuid = NULL;

    if (!find_domain(query, &uuid, code))
        return rows;
    Rounds failed = { query, uuid, rows };
    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const UprofStoreItem *item = uprof_store_item(folder, j);
            if (!item->is_day && uprof_store_item_is_complete(item) &&
                item->start_s >= query->since_s && item->start_s < query->until_s)
                add_round(query, uuid, folder, item, rows, code);
            if (item->has_failures && item->start_s < query->until_s &&
                item->start_s + UPROF_DAY_S > query->since_s)
                uprof_failures_read(folder, item, add_failed_round, &failed);
        }
    }
    name_failed_rounds(rows);
    g_ptr_array_sort(rows, compare_starts);
    return rows;
}
