/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "table-priv.h"

#include <string.h>

enum { LOW_BITS = 32 };

/* Up to its end, from where it stands in `low`, an address is of one symbol. */
typedef struct {
    uint64_t end;
    uint32_t symbol;
} Piece;

/* Pieces whose addresses have the same upper half. */
typedef struct {
    uint32_t high;
    uint32_t first;
} Group;

struct _UprofTable {
    GArray *symbols; /* of UprofSymbol, by address */
    GArray *guessed; /* of bool, for each: its size is how far it can reach at most */
    GArray *groups;  /* of Group; the last one only ends the one before it */
    GArray *low;     /* of uint32_t: where pieces begin */
    GArray *pieces;  /* of Piece */
};

static unsigned
count_underscores(UprofSlice name)
{
    const char *text = name.data;
    unsigned n = 0;

    while (n < name.len && text[n] == '_')
        n++;
    return n;
}

/* By address; of one address the best name first. */
static int
compare_symbols(gconstpointer a, gconstpointer b)
{
    const UprofSymbol *one = a, *other = b;

    if (one->start != other->start)
        return one->start < other->start ? -1 : 1;
    if (one->code != other->code)
        return one->code ? -1 : 1;
    if (one->binding != other->binding)
        return one->binding > other->binding ? -1 : 1;
    const unsigned n = count_underscores(one->name), m = count_underscores(other->name);
    if (n != m)
        return n < m ? -1 : 1;
    if (one->name.len != other->name.len)
        return one->name.len < other->name.len ? -1 : 1;
    const int by_name = memcmp(one->name.data, other->name.data, one->name.len);
    if (by_name != 0 || one->size == other->size)
        return by_name;
    return one->size > other->size ? -1 : 1;
}

const UprofImageRange *
uprof_range_find(const GArray *ranges, uint64_t address)
{
    const UprofImageRange *range = (const UprofImageRange *)(void *)ranges->data;
    guint low = 0, high = ranges->len;

    /* of most images it lies far outside */
    if (high == 0 || address < range[0].start || address >= range[high - 1].end)
        return NULL;
    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (address >= range[middle].start && address < range[middle].end)
            return &range[middle];
        if (address < range[middle].start)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* How far a symbol at @start may reach that says nothing of it. */
static uint64_t
find_unsized_end(const GArray *ranges, uint64_t start, uint64_t next_start, uint64_t unsized_max)
{
    const UprofImageRange *range = uprof_range_find(ranges, start);
    const uint64_t end = MIN(range ? range->end : start + 1, next_start);

    return end - start > unsized_max ? start + unsized_max : end;
}

/*
 * Returns: of uint64_t, for each range: where its code ends; sections that touch each
 * other are one
 */
static GArray *
find_code_ends(const GArray *ranges)
{
    GArray *ends = g_array_sized_new(FALSE, FALSE, sizeof(uint64_t), ranges->len);

    g_array_set_size(ends, ranges->len);
    for (guint i = ranges->len; i > 0; i--) {
        const UprofImageRange *range = &g_array_index(ranges, UprofImageRange, i - 1);
        g_array_index(ends, uint64_t, i - 1) = i < ranges->len && range[1].start == range->end
                                                   ? g_array_index(ends, uint64_t, i)
                                                   : range->end;
    }
    return ends;
}

static uint64_t
find_code_end(const GArray *ranges, const GArray *ends, uint64_t start)
{
    const UprofImageRange *range = uprof_range_find(ranges, start);

    return range ? g_array_index(ends, uint64_t, range - (UprofImageRange *)(void *)ranges->data)
                 : UINT64_MAX;
}

static void
choose_symbols(UprofTable *table, const GArray *symbols, const GArray *ranges, uint64_t unsized_max)
{
    g_autoptr(GArray) sorted = g_array_sized_new(FALSE, FALSE, sizeof(UprofSymbol), symbols->len);
    g_autoptr(GArray) ends = find_code_ends(ranges);

    g_array_append_vals(sorted, symbols->data, symbols->len);
    g_array_sort(sorted, compare_symbols);
    for (guint i = 0; i < sorted->len;) {
        UprofSymbol best = g_array_index(sorted, UprofSymbol, i);
        guint next = i + 1;
        /* an alias may know the size that the better name lacks */
        for (; next < sorted->len; next++) {
            const UprofSymbol *alias = &g_array_index(sorted, UprofSymbol, next);
            if (alias->start != best.start)
                break;
            if (best.size == 0 && alias->code)
                best.size = alias->size;
        }
        const uint64_t next_start =
            next < sorted->len ? g_array_index(sorted, UprofSymbol, next).start : UINT64_MAX;
        if (best.code) {
            const uint64_t end = find_code_end(ranges, ends, best.start);
            const bool is_guess = best.size == 0;
            if (is_guess)
                best.size =
                    find_unsized_end(ranges, best.start, next_start, unsized_max) - best.start;
            best.size = MAX(MIN(best.size, end - best.start), 1);
            g_array_append_val(table->symbols, best);
            g_array_append_val(table->guessed, is_guess);
        }
        i = next;
    }
}

static void
append_piece(UprofTable *table, uint64_t start, uint64_t end, uint32_t symbol)
{
    const Group group = { (uint32_t)(start >> LOW_BITS), table->pieces->len };
    const GArray *groups = table->groups;
    const Piece piece = { end, symbol };
    const uint32_t low = (uint32_t)start;

    if (start >= end)
        return;
    if (groups->len == 0 || g_array_index(groups, Group, groups->len - 1).high != group.high)
        g_array_append_val(table->groups, group);
    g_array_append_val(table->low, low);
    g_array_append_val(table->pieces, piece);
}

/*
 * Goes through the symbols by address, with those that are not at their end on a
 * stack: the topmost, which began last, has what lies before the next one.
 */
static void
cut_pieces(UprofTable *table)
{
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint64_t at = 0;

    for (uint32_t i = 0; i <= table->symbols->len; i++) {
        const uint64_t start = i < table->symbols->len
                                   ? g_array_index(table->symbols, UprofSymbol, i).start
                                   : UINT64_MAX;
        while (open->len > 0 && at < start) {
            const uint32_t top = g_array_index(open, uint32_t, open->len - 1);
            const UprofSymbol *symbol = &g_array_index(table->symbols, UprofSymbol, top);
            const uint64_t end = symbol->start + symbol->size;
            append_piece(table, at, MIN(end, start), top);
            at = MAX(at, MIN(end, start));
            if (end <= start)
                g_array_set_size(open, open->len - 1);
        }
        at = start;
        g_array_append_val(open, i);
    }
}

UprofTable *
uprof_table_new(const GArray *symbols, const GArray *ranges, uint64_t unsized_max)
{
    UprofTable *table = g_new0(UprofTable, 1);

    table->symbols = g_array_new(FALSE, FALSE, sizeof(UprofSymbol));
    table->guessed = g_array_new(FALSE, FALSE, sizeof(bool));
    choose_symbols(table, symbols, ranges, unsized_max);
    table->groups = g_array_new(FALSE, FALSE, sizeof(Group));
    table->low = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    table->pieces = g_array_new(FALSE, FALSE, sizeof(Piece));
    cut_pieces(table);
    const Group end = { 0, table->pieces->len };
    g_array_append_val(table->groups, end);
    return table;
}

void
uprof_table_free(UprofTable *table)
{
    if (!table)
        return;
    g_array_unref(table->symbols);
    g_array_unref(table->guessed);
    g_array_unref(table->groups);
    g_array_unref(table->low);
    g_array_unref(table->pieces);
    g_free(table);
}

size_t
uprof_table_count(const UprofTable *table)
{
    return table->symbols->len;
}

const UprofSymbol *
uprof_table_get(const UprofTable *table, size_t i)
{
    g_assert(i < table->symbols->len);
    return &g_array_index(table->symbols, UprofSymbol, i);
}

bool
uprof_table_is_guess(const UprofTable *table, const UprofSymbol *symbol)
{
    return g_array_index(table->guessed, bool,
                         symbol - (const UprofSymbol *)(void *)table->symbols->data);
}

/*
 * Returns: how many of the sorted @values are up to @wanted. No branch depends on
 * them: of a question mark gcc makes one, which is wrong half of the time.
 */
static uint32_t
count_up_to(const uint32_t *values, uint32_t n, uint32_t wanted)
{
    const uint32_t *at = values;

    if (n == 0)
        return 0;
    while (n > 1) {
        const uint32_t half = n / 2;
        at += half & -(uint32_t)(at[half - 1] <= wanted);
        n -= half;
    }
    return (uint32_t)(at - values) + (*at <= wanted);
}

const UprofSymbol *
uprof_table_find(const UprofTable *table, uint64_t address)
{
    const Group *groups = (const Group *)(void *)table->groups->data;
    const uint32_t high = (uint32_t)(address >> LOW_BITS);
    guint first = 0, last = table->groups->len - 1;

    while (first < last) {
        const guint middle = first + (last - first) / 2;
        if (groups[middle].high <= high)
            first = middle + 1;
        else
            last = middle;
    }
    if (first == 0)
        return NULL;
    const Group *group = &groups[first - 1];
    const uint32_t *low = &g_array_index(table->low, uint32_t, group->first);
    uint32_t n = group[1].first - group->first;
    if (group->high == high)
        n = count_up_to(low, n, (uint32_t)address);
    /* the last piece before it, which may be of the group before */
    if (group->first + n == 0)
        return NULL;
    const Piece *piece = &g_array_index(table->pieces, Piece, group->first + n - 1);
    return address < piece->end ? &g_array_index(table->symbols, UprofSymbol, piece->symbol) : NULL;
}
