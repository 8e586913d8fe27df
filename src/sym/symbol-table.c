/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Three symbols that overlap, and the pieces that they are cut into:
 *
 *     outer   [-----------------------)
 *     inner         [------)
 *     late                    [------------)
 *             ^     ^      ^  ^            ^
 *     pieces  |outer|inner |ou|late        |
 *
 * A piece is found by its first address. The lower halves of these addresses are in an array of
 * their own, because the processor's cache holds twice as many halves as complete addresses. A
 * group is a run of pieces with the same upper half.
 */
#include "symbol-table-priv.h"

#include "uprof/sorted.h"

#include <string.h>

enum {
    LOW_BITS = 32,
    COMPARED_BYTES = 64, /* of two names: names of kilobytes would make a sort take minutes */
};

/* A piece: one symbol has the addresses from the piece's address in `low` up to @end. */
typedef struct {
    uint64_t end;
    uint32_t symbol; /* index of the entry */
} Piece;

typedef struct {
    uint32_t high;  /* upper half of the pieces' addresses */
    uint32_t first; /* index of the first piece */
} Group;

typedef struct {
    UprofSymbol symbol; /* the first member: uprof_symbol_table_is_guess() casts its address */
    bool is_guess;      /* no file knows the size; it is the longest possible */
} Entry;

struct _UprofSymbolTable {
    GArray *entries; /* of Entry, by address; owned */
    GArray *groups;  /* of Group; the last one only ends the one before it; owned */
    GArray *low;     /* of uint32_t: lower half of each piece's first address; owned */
    GArray *pieces;  /* of Piece; owned */
};

static unsigned
count_underscores(UprofSlice name)
{
    const char *text = name.data;
    unsigned n = 0;

    while (n < MIN(name.len, COMPARED_BYTES) && text[n] == '_')
        n++;
    return n;
}

/*
 * Sorts by address, with the best name of an address first. Names that begin with the same bytes
 * keep their order in the file: g_array_sort() is stable.
 */
static int
compare_symbols(gconstpointer a, gconstpointer b)
{
    const UprofSymbol *one = a, *other = b;

    if (one->start != other->start)
        return UPROF_COMPARE(one->start, other->start);
    if (one->code != other->code)
        return one->code ? -1 : 1;
    if (one->binding != other->binding)
        return UPROF_COMPARE(other->binding, one->binding);
    const unsigned n = count_underscores(one->name), m = count_underscores(other->name);
    if (n != m)
        return UPROF_COMPARE(n, m);
    if (one->name.len != other->name.len)
        return UPROF_COMPARE(one->name.len, other->name.len);
    const int by_name =
        memcmp(one->name.data, other->name.data, MIN(one->name.len, COMPARED_BYTES));
    if (by_name != 0 || one->size == other->size)
        return by_name;
    return UPROF_COMPARE(other->size, one->size);
}

const UprofCodeRange *
uprof_code_range_find(const GArray *ranges, uint64_t address)
{
    const UprofCodeRange *range = (const UprofCodeRange *)(void *)ranges->data;

    /* Fast path: most addresses lie far outside of most images. */
    if (ranges->len == 0 || address < range[0].start || address >= range[ranges->len - 1].end)
        return NULL;
    const size_t n = uprof_sorted_count_up_to(&range->start, ranges->len, sizeof(*range), address);
    return address < range[n - 1].end ? &range[n - 1] : NULL;
}

/* Returns: latest possible end of a symbol without a size */
static uint64_t
find_unsized_end(const GArray *ranges, uint64_t start, uint64_t next_start, uint64_t unsized_max)
{
    const UprofCodeRange *range = uprof_code_range_find(ranges, start);
    const uint64_t end = MIN(range ? range->end : start + 1, next_start);

    return end - start > unsized_max ? start + unsized_max : end;
}

/* Returns: of uint64_t, for each range: the end of its code; adjacent sections count as one */
static GArray *
find_code_ends(const GArray *ranges)
{
    GArray *ends = g_array_sized_new(FALSE, FALSE, sizeof(uint64_t), ranges->len);

    g_array_set_size(ends, ranges->len);
    for (guint i = ranges->len; i > 0; i--) {
        const UprofCodeRange *range = &g_array_index(ranges, UprofCodeRange, i - 1);
        g_array_index(ends, uint64_t, i - 1) = i < ranges->len && range[1].start == range->end
                                                   ? g_array_index(ends, uint64_t, i)
                                                   : range->end;
    }
    return ends;
}

static uint64_t
find_code_end(const GArray *ranges, const GArray *ends, uint64_t start)
{
    const UprofCodeRange *range = uprof_code_range_find(ranges, start);

    return range ? g_array_index(ends, uint64_t, range - (UprofCodeRange *)(void *)ranges->data)
                 : UINT64_MAX;
}

/*
 * @best: (inout): the first of the symbols at an address; gets the size of an alias if it lacks
 * one. Returns: index of the first symbol at a higher address
 */
static guint
skip_aliases(const GArray *sorted, guint i, UprofSymbol *best)
{
    for (i++; i < sorted->len; i++) {
        const UprofSymbol *alias = &g_array_index(sorted, UprofSymbol, i);
        if (alias->start != best->start)
            break;
        if (best->size == 0 && alias->code)
            best->size = alias->size;
    }
    return i;
}

static void
choose_symbols(UprofSymbolTable *table, const GArray *symbols, const GArray *ranges,
               uint64_t unsized_max)
{
    g_autoptr(GArray) sorted = g_array_sized_new(FALSE, FALSE, sizeof(UprofSymbol), symbols->len);
    g_autoptr(GArray) ends = find_code_ends(ranges);

    g_array_append_vals(sorted, symbols->data, symbols->len);
    g_array_sort(sorted, compare_symbols);
    for (guint i = 0; i < sorted->len;) {
        Entry entry = { .symbol = g_array_index(sorted, UprofSymbol, i) };
        UprofSymbol *best = &entry.symbol;
        i = skip_aliases(sorted, i, best);
        if (!best->code)
            continue;
        const uint64_t next_start =
            i < sorted->len ? g_array_index(sorted, UprofSymbol, i).start : UINT64_MAX;
        const uint64_t end = find_code_end(ranges, ends, best->start);
        entry.is_guess = best->size == 0;
        if (entry.is_guess)
            best->size =
                find_unsized_end(ranges, best->start, next_start, unsized_max) - best->start;
        best->size = MAX(MIN(best->size, end - best->start), 1);
        g_array_append_val(table->entries, entry);
    }
}

static void
append_piece(UprofSymbolTable *table, uint64_t start, uint64_t end, uint32_t symbol)
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
 * Visits the symbols by address. A stack holds the symbols that have not ended yet. Its topmost
 * symbol, which began last, owns the addresses up to the next symbol.
 */
static void
cut_pieces(UprofSymbolTable *table)
{
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint64_t at = 0;

    for (uint32_t i = 0; i <= table->entries->len; i++) {
        const uint64_t start = i < table->entries->len
                                   ? g_array_index(table->entries, Entry, i).symbol.start
                                   : UINT64_MAX;
        while (open->len > 0 && at < start) {
            const uint32_t top = g_array_index(open, uint32_t, open->len - 1);
            const UprofSymbol *symbol = &g_array_index(table->entries, Entry, top).symbol;
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

UprofSymbolTable *
uprof_symbol_table_new(const GArray *symbols, const GArray *ranges, uint64_t unsized_max)
{
    UprofSymbolTable *table = g_new0(UprofSymbolTable, 1);

    table->entries = g_array_new(FALSE, FALSE, sizeof(Entry));
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
uprof_symbol_table_free(UprofSymbolTable *table)
{
    if (!table)
        return;
    g_array_unref(table->entries);
    g_array_unref(table->groups);
    g_array_unref(table->low);
    g_array_unref(table->pieces);
    g_free(table);
}

uint64_t
uprof_symbol_table_bytes(const UprofSymbolTable *table)
{
    return (uint64_t)table->entries->len * UPROF_SYMBOL_TABLE_BYTES;
}

size_t
uprof_symbol_table_count(const UprofSymbolTable *table)
{
    return table->entries->len;
}

const UprofSymbol *
uprof_symbol_table_get(const UprofSymbolTable *table, size_t i)
{
    g_assert(i < table->entries->len);
    return &g_array_index(table->entries, Entry, i).symbol;
}

bool
uprof_symbol_table_is_guess(const UprofSymbolTable *table, const UprofSymbol *symbol)
{
    return ((const Entry *)(const void *)symbol)->is_guess;
}

/*
 * Returns: how many of the sorted @values are at or below @wanted
 *
 * Branch-free on purpose: gcc compiles ?: to a branch here, which is mispredicted half of the time.
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

/* Returns: (nullable): the last group whose upper half is at or below @high */
static const Group *
last_group_up_to(const UprofSymbolTable *table, uint32_t high)
{
    const Group *groups = (const Group *)(void *)table->groups->data;
    guint low = 0, end = table->groups->len - 1;

    while (low < end) {
        const guint middle = low + (end - low) / 2;
        if (groups[middle].high <= high)
            low = middle + 1;
        else
            end = middle;
    }
    return low > 0 ? &groups[low - 1] : NULL;
}

const UprofSymbol *
uprof_symbol_table_find(const UprofSymbolTable *table, uint64_t address)
{
    const uint32_t high = (uint32_t)(address >> LOW_BITS);
    const Group *group = last_group_up_to(table, high);

    if (!group)
        return NULL;
    const uint32_t *low = &g_array_index(table->low, uint32_t, group->first);
    uint32_t n = group[1].first - group->first;
    if (group->high == high)
        n = count_up_to(low, n, (uint32_t)address);
    /* The last piece at or below the address may be in the group before. */
    if (group->first + n == 0)
        return NULL;
    const Piece *piece = &g_array_index(table->pieces, Piece, group->first + n - 1);
    return address < piece->end ? &g_array_index(table->entries, Entry, piece->symbol).symbol
                                : NULL;
}
