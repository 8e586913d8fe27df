/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * table-priv.h - the symbols of an image, sorted once and found fast
 *
 * Symbols may be nested in others, or overlap them. The table cuts the address
 * space into pieces that do not, each of one symbol, so that finding one is one
 * search without a second look: over the lower halves of the addresses, which
 * fit into the cache twice as often.
 */
#pragma once

#include "uprof/symbol.h"

/** UprofImageRange: code, by link address; @bytes: (nullable data): borrowed, from its start on */
typedef struct {
    uint64_t start;
    uint64_t end;
    UprofSlice bytes;
} UprofImageRange;

/**
 * uprof_range_find:
 * @ranges: of UprofImageRange, sorted, without overlaps
 *
 * Returns: (nullable): the one with @address in it
 */
const UprofImageRange *uprof_range_find(const GArray *ranges, uint64_t address);

typedef struct _UprofTable UprofTable;

/**
 * uprof_table_new:
 * @symbols: of UprofSymbol, as parsed; their names must outlive what is returned
 * @ranges: of UprofImageRange, sorted, without overlaps
 * @unsized_max: how far a symbol without a size may reach at most
 *
 * Keeps the best of several names for an address: global before weak before
 * local, then fewest leading underscores, then shortest, then byte order. A
 * symbol without a size has that of an alias, else it reaches up to the next
 * one or the end of its range; none reaches beyond the end of the code it is in.
 * Where several cover an address, the one that begins last names it. Nothing
 * depends on the order of @symbols.
 *
 * Returns: (transfer full): code symbols only
 */
UprofTable *uprof_table_new(const GArray *symbols, const GArray *ranges, uint64_t unsized_max);
void uprof_table_free(UprofTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofTable, uprof_table_free)

/** uprof_table_count: Returns: how many symbols it has */
size_t uprof_table_count(const UprofTable *table);

/** uprof_table_get: Returns: symbol @i, by address; its size is never 0 */
const UprofSymbol *uprof_table_get(const UprofTable *table, size_t i);

/** uprof_table_is_guess: Returns: whether no file says how long @symbol, of @table, is */
bool uprof_table_is_guess(const UprofTable *table, const UprofSymbol *symbol);

/** uprof_table_find: Returns: (nullable): the symbol that covers @address */
const UprofSymbol *uprof_table_find(const UprofTable *table, uint64_t address);
