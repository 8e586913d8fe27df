/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol-table-priv.h - the symbols of an image, sorted once and found fast
 *
 * Symbols may be nested or overlap. The table cuts the address space into pieces that do not
 * overlap, each of one symbol, so that one search finds the symbol of an address.
 */
#pragma once

#include "uprof/symbol.h"

/* Memory for one symbol, in the table and in the list from which the table is made. */
enum { UPROF_SYMBOL_TABLE_BYTES = 160 };

/** UprofCodeRange: a range of code, by link address */
typedef struct {
    uint64_t start;
    uint64_t end;     /* first address behind the range */
    UprofSlice bytes; /* (nullable data): the code from @start on, perhaps not all; borrowed */
} UprofCodeRange;

/**
 * uprof_code_range_find:
 * @ranges: of UprofCodeRange, sorted, without overlaps
 *
 * Returns: (nullable): the range that contains @address
 */
const UprofCodeRange *uprof_code_range_find(const GArray *ranges, uint64_t address);

typedef struct _UprofSymbolTable UprofSymbolTable;

/**
 * uprof_symbol_table_new:
 * @symbols: of UprofSymbol, as parsed; their names must outlive the result
 * @ranges: of UprofCodeRange, sorted, without overlaps
 * @unsized_max: limit of the length of a symbol without a size, in bytes
 *
 * Keeps the best of several names for an address: global before weak before local, then the
 * fewest leading underscores, then the shortest, then byte order. A symbol without a size has
 * the size of an alias, else it reaches to the next symbol or to the end of its range. No
 * symbol reaches beyond the end of its code. If several symbols cover an address, the one that
 * begins last names it. The order of @symbols does not matter.
 *
 * Returns: (transfer full): code symbols only
 */
UprofSymbolTable *
uprof_symbol_table_new(const GArray *symbols, const GArray *ranges, uint64_t unsized_max);
void uprof_symbol_table_free(UprofSymbolTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSymbolTable, uprof_symbol_table_free)

/** uprof_symbol_table_bytes: Returns: upper bound of the table's memory */
uint64_t uprof_symbol_table_bytes(const UprofSymbolTable *table);

/** uprof_symbol_table_count: Returns: how many symbols it has */
size_t uprof_symbol_table_count(const UprofSymbolTable *table);

/** uprof_symbol_table_get: Returns: symbol @i, by address; its size is never 0 */
const UprofSymbol *uprof_symbol_table_get(const UprofSymbolTable *table, size_t i);

/** uprof_symbol_table_is_guess: is the size of @symbol a guess, because no file has it? */
bool uprof_symbol_table_is_guess(const UprofSymbolTable *table, const UprofSymbol *symbol);

/** uprof_symbol_table_find: Returns: (nullable): the symbol that covers @address */
const UprofSymbol *uprof_symbol_table_find(const UprofSymbolTable *table, uint64_t address);
