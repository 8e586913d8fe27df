/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "hot-rows-priv.h"

#include "uprof/sorted.h"

#include <string.h>

enum {
    NAMES_MAX = 200 * 1000, /* of functions and processes of all domains */
    FADE_NUM = UPROF_HOT_ROWS_ROUNDS - 1,
    FADE_DEN = UPROF_HOT_ROWS_ROUNDS,
};

struct _UprofHotRows {
    UprofNames *names; /* owned */
    GHashTable *hots;  /* a set of UprofHotRow, by domain, name and kind; owned */
};

static guint
hash_hot(gconstpointer key)
{
    const UprofHotRow *hot = key;

    return (g_direct_hash(hot->row.name) * 31 + hot->domain) * 4 + hot->by;
}

static gboolean
equal_hots(gconstpointer a, gconstpointer b)
{
    const UprofHotRow *one = a, *other = b;

    return one->row.name == other->row.name && one->domain == other->domain && one->by == other->by;
}

UprofHotRows *
uprof_hot_rows_new(void)
{
    UprofHotRows *rows = g_new0(UprofHotRows, 1);

    rows->names = uprof_names_new();
    uprof_names_limit(rows->names, NAMES_MAX);
    rows->hots = g_hash_table_new_full(hash_hot, equal_hots, g_free, NULL);
    return rows;
}

void
uprof_hot_rows_free(UprofHotRows *rows)
{
    if (!rows)
        return;
    g_hash_table_unref(rows->hots);
    uprof_names_free(rows->names);
    g_free(rows);
}

UprofNames *
uprof_hot_rows_names(UprofHotRows *rows)
{
    return rows->names;
}

void
uprof_hot_rows_add(UprofHotRows *rows, unsigned domain, UprofRowsBy by, const GArray *round)
{
    for (guint i = 0; i < round->len; i++) {
        const UprofProfileRow *row = &g_array_index(round, UprofProfileRow, i);
        const UprofHotRow key = { .row.name = row->name, .domain = domain, .by = by };
        UprofHotRow *hot = g_hash_table_lookup(rows->hots, &key);
        if (!hot) {
            hot = g_memdup2(&key, sizeof(key));
            g_hash_table_add(rows->hots, hot);
        }
        hot->row.self += row->self * UPROF_HOT_ROWS_UNIT;
        hot->row.total += row->total * UPROF_HOT_ROWS_UNIT;
    }
}

void
uprof_hot_rows_fade(UprofHotRows *rows)
{
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, rows->hots);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        UprofHotRow *hot = key;
        hot->row.self = hot->row.self * FADE_NUM / FADE_DEN;
        hot->row.total = hot->row.total * FADE_NUM / FADE_DEN;
        if (hot->row.total == 0)
            g_hash_table_iter_remove(&iter);
    }
}

void
uprof_hot_rows_clear(UprofHotRows *rows)
{
    g_hash_table_remove_all(rows->hots);
}

static int
compare_self(gconstpointer a, gconstpointer b)
{
    const UprofHotRow *one = a, *other = b;

    if (one->row.self != other->row.self)
        return UPROF_COMPARE(other->row.self, one->row.self);
    if (one->row.total != other->row.total)
        return UPROF_COMPARE(other->row.total, one->row.total);
    return strcmp(uprof_name_text(one->row.name), uprof_name_text(other->row.name));
}

static int
compare_total(gconstpointer a, gconstpointer b)
{
    const UprofHotRow *one = a, *other = b;

    if (one->row.total != other->row.total)
        return UPROF_COMPARE(other->row.total, one->row.total);
    return compare_self(a, b);
}

static bool
has_pattern(const UprofHotRow *hot, const char *pattern)
{
    g_autofree char *name = g_ascii_strdown(uprof_name_text(hot->row.name), -1);

    return strstr(name, pattern) != NULL;
}

/* Returns: (transfer full): of uint64_t, by domain: the weight of its rows. @total: (out): of all
 */
static GArray *
sum_domains(const UprofHotRows *rows, UprofRowsBy by, uint64_t *total)
{
    GArray *sums = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    GHashTableIter iter;
    gpointer key;

    *total = 0;
    g_hash_table_iter_init(&iter, rows->hots);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const UprofHotRow *hot = key;
        const uint64_t weight = by != UPROF_BY_FUNCTION ? hot->row.total : hot->row.self;
        if (hot->by != by)
            continue;
        if (sums->len <= hot->domain)
            g_array_set_size(sums, hot->domain + 1);
        g_array_index(sums, uint64_t, hot->domain) += weight;
        *total += weight;
    }
    return sums;
}

static uint64_t
scale_weight(uint64_t weight, uint64_t total, uint64_t sum)
{
    return (uint64_t)((unsigned __int128)weight * total / MAX(sum, 1));
}

GArray *
uprof_hot_rows_list(const UprofHotRows *rows, const UprofHotChoice *choice, uint64_t *total)
{
    const bool by_total = choice->by_total || choice->by != UPROF_BY_FUNCTION;
    g_autoptr(GArray) sums = sum_domains(rows, choice->by, total);
    GArray *list = g_array_new(FALSE, FALSE, sizeof(UprofHotRow));
    GHashTableIter iter;
    gpointer key;

    g_hash_table_iter_init(&iter, rows->hots);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        UprofHotRow hot = *(const UprofHotRow *)key;
        if (hot.by != choice->by || !has_pattern(&hot, choice->pattern))
            continue;
        const uint64_t sum = g_array_index(sums, uint64_t, hot.domain);
        hot.row.self = scale_weight(hot.row.self, *total, sum);
        hot.row.total = scale_weight(hot.row.total, *total, sum);
        g_array_append_val(list, hot);
    }
    g_array_sort(list, by_total ? compare_total : compare_self);
    g_array_set_size(list, MIN(list->len, choice->max));
    return list;
}
