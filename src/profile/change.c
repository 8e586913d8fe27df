/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/change.h"

#include "uprof/sorted.h"

#include <math.h>
#include <string.h>

enum {
    SAMPLES_MIN = 30, /* of both sides together; fewer prove nothing */
    SIGMAS = 3,
};

enum { N_CLASSES = 7, PPM = 1000 * 1000, PPM_PER_TENTH = 1000 };

const struct _UprofChangeLegend uprof_change_legends[UPROF_N_CHANGE_LEGENDS] = {
    { "b6", "much less" }, { "b2", "less" },      { "g0", "no change beyond chance" },
    { "r2", "more" },      { "r6", "much more" },
};

/* The smallest changes of classes 2, 3 and so on, in millionths of a share */
static const int64_t class_limits[N_CLASSES - 1] = { 5000, 10000, 20000, 40000, 80000, 160000 };

/* Doubles are exact for counts up to 2^53, and none of these numbers is printed. */
static bool
is_beyond_chance(uint64_t a, uint64_t all_a, uint64_t b, uint64_t all_b)
{
    const double n_a = (double)all_a, n_b = (double)all_b;

    if (all_a == 0 || all_b == 0 || a + b < SAMPLES_MIN)
        return false;
    const double rate = ((double)a + (double)b) / (n_a + n_b);
    const double sigma = sqrt(rate * (1 - rate) * (1 / n_a + 1 / n_b));
    return fabs((double)b / n_b - (double)a / n_a) > SIGMAS * sigma;
}

static int64_t
find_share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (int64_t)((unsigned __int128)part * PPM / whole) : 0;
}

UprofChange
uprof_change_of(uint64_t a, uint64_t all_a, uint64_t b, uint64_t all_b)
{
    return (UprofChange){
        .ppm = find_share(b, all_b) - find_share(a, all_a),
        .is_significant = is_beyond_chance(a, all_a, b, all_b),
        .is_new = a == 0 && b > 0,
        .is_gone = a > 0 && b == 0,
    };
}

char *
uprof_change_format(const UprofChange *change)
{
    const uint64_t tenths = ((uint64_t)ABS(change->ppm) + PPM_PER_TENTH / 2) / PPM_PER_TENTH;

    return g_strdup_printf("%s%u.%u points", change->ppm < 0 ? "-" : "+", (unsigned)(tenths / 10),
                           (unsigned)(tenths % 10));
}

const char *
uprof_change_class(const UprofChange *change)
{
    static const char *const grown[] = { "r1", "r2", "r3", "r4", "r5", "r6", "r7" };
    static const char *const shrunk[] = { "b1", "b2", "b3", "b4", "b5", "b6", "b7" };
    unsigned class = 0;

    if (!change->is_significant)
        return "g0";
    while (class < N_CLASSES - 1 && ABS(change->ppm) >= class_limits[class])
        class ++;
    return change->ppm > 0 ? grown[class] : shrunk[class];
}

static int
compare_old(gconstpointer a, gconstpointer b)
{
    const UprofTreeNode *one = *(const UprofTreeNode *const *)a;
    const UprofTreeNode *other = *(const UprofTreeNode *const *)b;

    if (one->total[UPROF_OLD] != other->total[UPROF_OLD])
        return UPROF_COMPARE(other->total[UPROF_OLD], one->total[UPROF_OLD]);
    return UPROF_COMPARE(one, other);
}

GPtrArray *
uprof_change_gone(const UprofTree *both, unsigned max)
{
    GPtrArray *gone = g_ptr_array_new();

    for (uint32_t i = 1; i < both->nodes->len;) {
        UprofTreeNode *node = uprof_tree_node(both, i);
        const UprofChange change =
            uprof_change_of(node->total[UPROF_OLD], uprof_tree_node(both, 0)->total[UPROF_OLD],
                            node->total[UPROF_NEW], uprof_tree_node(both, 0)->total[UPROF_NEW]);
        const bool is_gone = change.is_gone && change.is_significant;
        if (is_gone)
            g_ptr_array_add(gone, node);
        i = is_gone ? node->end : i + 1;
    }
    g_ptr_array_sort(gone, compare_old);
    if (gone->len > max)
        g_ptr_array_set_size(gone, (gint)max);
    return gone;
}

typedef struct {
    UprofChangeRow row;
    unsigned n_open; /* frames of the function on the current path; only the outermost counts */
} Counted;

static Counted *
find_counted(GHashTable *counted, const UprofName *name)
{
    Counted *found = g_hash_table_lookup(counted, name);

    if (!found) {
        found = g_new0(Counted, 1);
        found->row.name = name;
        g_hash_table_insert(counted, (gpointer)name, found);
    }
    return found;
}

static void
count_functions(const UprofTree *both, GHashTable *counted)
{
    g_autofree uint32_t *open = g_new(uint32_t, UPROF_PROFILE_DEPTH_MAX + 2);
    unsigned n_open = 0;

    for (uint32_t i = 1; i < both->nodes->len; i++) {
        const UprofTreeNode *node = uprof_tree_node(both, i);
        while (n_open > 0 && i >= uprof_tree_node(both, open[n_open - 1])->end)
            find_counted(counted, uprof_tree_node(both, open[--n_open])->name)->n_open--;
        Counted *function = find_counted(counted, node->name);
        for (unsigned side = 0; side < UPROF_N_SIDES; side++) {
            function->row.self[side] += node->self[side];
            function->row.total[side] += function->n_open == 0 ? node->total[side] : 0;
        }
        function->n_open++;
        open[n_open++] = i;
    }
}

static int
compare_rows(gconstpointer a, gconstpointer b)
{
    const UprofChangeRow *one = a, *other = b;

    if (ABS(one->inclusive.ppm) != ABS(other->inclusive.ppm))
        return UPROF_COMPARE(ABS(other->inclusive.ppm), ABS(one->inclusive.ppm));
    if (ABS(one->own.ppm) != ABS(other->own.ppm))
        return UPROF_COMPARE(ABS(other->own.ppm), ABS(one->own.ppm));
    return strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

GArray *
uprof_change_rows(const UprofTree *both)
{
    g_autoptr(GHashTable) counted = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(UprofChangeRow));
    const uint64_t *all = uprof_tree_node(both, 0)->total;
    GHashTableIter iter;
    gpointer value;

    count_functions(both, counted);
    g_hash_table_iter_init(&iter, counted);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        UprofChangeRow row = ((Counted *)value)->row;
        row.own = uprof_change_of(row.self[UPROF_OLD], all[UPROF_OLD], row.self[UPROF_NEW],
                                  all[UPROF_NEW]);
        row.inclusive = uprof_change_of(row.total[UPROF_OLD], all[UPROF_OLD], row.total[UPROF_NEW],
                                        all[UPROF_NEW]);
        g_array_append_val(rows, row);
    }
    g_array_sort(rows, compare_rows);
    return rows;
}
