/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "go-table-priv.h"

#include "uprof/symbol.h"

#include <string.h>

enum {
    HEAD_BYTES = 72,
    PAIR_BYTES = 8,
    FUNCTIONS_MAX = 1 << 24,
    NAME_BYTES_MAX = 1024,
    NAME_PIECE = 64,  /* bytes of a name that are read at once */
    WORK_OF_BYTE = 4, /* a hostile table may name all functions by the same long name */
    MAGIC_1_18 = 0xf0,
    MAGIC_1_20 = 0xf1,
};

typedef struct {
    const UprofGoReader *reader;
    uint64_t n;
    uint64_t text; /* that the header says; 0: it says nothing */
    uint64_t names, names_end, functions;
    uint64_t work; /* bytes of names that may still be read */
} Table;

/* A function in the list; relative addresses. */
typedef struct {
    uint32_t start, record, end;
} Function;

static uint64_t
get_word(const uint8_t *bytes, size_t at)
{
    uint64_t word;

    memcpy(&word, bytes + at, sizeof(word));
    return GUINT64_FROM_LE(word);
}

static uint32_t
get_half(const uint8_t *bytes, size_t at)
{
    uint32_t half;

    memcpy(&half, bytes + at, sizeof(half));
    return GUINT32_FROM_LE(half);
}

static bool
is_rising(const uint8_t *head, uint64_t len)
{
    uint64_t before = 0;

    for (size_t at = 32; at < HEAD_BYTES; at += 8) {
        const uint64_t offset = get_word(head, at);
        if (offset <= before || offset > len)
            return false;
        before = offset;
    }
    return true;
}

static bool
read_head(const UprofGoReader *reader, Table *table)
{
    UprofSlice slice;

    if (!reader->get(reader->data, 0, HEAD_BYTES, &slice))
        return false;
    const uint8_t *head = slice.data;
    if ((head[0] != MAGIC_1_18 && head[0] != MAGIC_1_20) || head[1] != 0xff || head[2] != 0xff ||
        head[3] != 0xff || head[4] != 0 || head[5] != 0 || head[7] != sizeof(uint64_t) ||
        !is_rising(head, reader->len))
        return false;
    *table = (Table){ .reader = reader,
                      .n = get_word(head, 8),
                      .text = get_word(head, 24),
                      .names = get_word(head, 32),
                      .names_end = get_word(head, 40),
                      .functions = get_word(head, 64),
                      .work = WORK_OF_BYTE * reader->len };
    return table->n > 0 && table->n < FUNCTIONS_MAX &&
           table->n * PAIR_BYTES < reader->len - table->functions;
}

static bool
read_function(const Table *table, uint64_t i, Function *function)
{
    UprofSlice slice;

    if (!table->reader->get(table->reader->data, table->functions + i * PAIR_BYTES,
                            PAIR_BYTES + sizeof(uint32_t), &slice))
        return false;
    function->start = get_half(slice.data, 0);
    function->record = get_half(slice.data, 4);
    function->end = get_half(slice.data, 8);
    return function->end > function->start;
}

/* Piece by piece, because memory behind a name may be missing. */
static bool
read_name(Table *table, uint64_t at, UprofSlice *name)
{
    const UprofGoReader *reader = table->reader;
    uint64_t len = 0;

    while (at + len < table->names_end && len <= NAME_BYTES_MAX && table->work >= NAME_PIECE) {
        const uint64_t more = MIN((uint64_t)NAME_PIECE, table->names_end - at - len);
        UprofSlice piece;
        table->work -= NAME_PIECE;
        if (!reader->get(reader->data, at + len, more, &piece))
            return false;
        const char *end = memchr(piece.data, '\0', piece.len);
        len += end ? (uint64_t)(end - (const char *)piece.data) : more;
        if (end)
            return len > 0 && reader->get(reader->data, at, len, name);
    }
    return false;
}

static void
add_function(Table *table, uint64_t text, const Function *function, GArray *symbols)
{
    UprofSymbol symbol = { .start = text + function->start,
                           .size = function->end - function->start,
                           .code = true };
    UprofSlice record;

    if (table->reader->get(table->reader->data, table->functions + function->record,
                           2 * sizeof(uint32_t), &record) &&
        read_name(table, table->names + get_half(record.data, 4), &symbol.name))
        g_array_append_val(symbols, symbol);
}

/* Returns: does a function begin at @offset? */
static bool
has_start(const Table *table, uint64_t offset)
{
    uint64_t low = 0, high = table->n;
    Function function;

    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (!read_function(table, mid, &function))
            return false;
        if (function.start == offset)
            return true;
        if (function.start < offset)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

bool
uprof_go_table_read(const UprofGoReader *reader, uint64_t text, uint64_t entry, GArray *symbols,
                    guint max)
{
    Table table;
    Function function;

    if (!read_head(reader, &table))
        return false;
    if (table.text != 0)
        text = table.text;
    else if (text == 0 || entry < text || !has_start(&table, entry - text))
        return false;
    if (text > INT64_MAX)
        return false;
    for (uint64_t i = 0; i < table.n && symbols->len < max; i++)
        if (read_function(&table, i, &function))
            add_function(&table, text, &function, symbols);
    return true;
}
