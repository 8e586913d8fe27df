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
    SIZES_PIECE = 32, /* bytes of frame sizes that are read at once */
    FRAME_BYTES_MAX = 1 << 30,
    FRAMES_MAX = 4 * 1000 * 1000, /* sizes, at the begin of a function */
};

/* Offsets in a function's record, and its flags (Go, src/internal/abi/symtab.go) */
enum { NAME_AT = 4, SIZES_AT = 16, FLAGS_AT_1_18 = 37, FLAGS_AT_1_20 = 41 };
enum { TOP_FRAME = 1, WRITES_SP = 2 };

typedef struct {
    const UprofGoReader *reader;
    uint64_t n;
    uint64_t text; /* that the header says; 0: it says nothing */
    uint64_t names, names_end, tables, functions;
    unsigned unit;     /* bytes of the shortest instruction */
    unsigned flags_at; /* offset of the flags in a record */
    uint64_t work;     /* bytes of names and sizes that may still be read */
    const UprofGoFound *found;
} Table;

/* A function in the list; relative addresses. */
typedef struct {
    uint32_t start, record, end;
} Function;

static bool
is_rising(const uint8_t *head, uint64_t len)
{
    uint64_t before = 0;

    for (size_t at = 32; at < HEAD_BYTES; at += 8) {
        const uint64_t offset = uprof_read_le64(head + at);
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
        head[3] != 0xff || head[4] != 0 || head[5] != 0 || head[6] == 0 ||
        head[7] != sizeof(uint64_t) || !is_rising(head, reader->len))
        return false;
    *table = (Table){ .reader = reader,
                      .n = uprof_read_le64(head + 8),
                      .text = uprof_read_le64(head + 24),
                      .names = uprof_read_le64(head + 32),
                      .names_end = uprof_read_le64(head + 40),
                      .tables = uprof_read_le64(head + 56),
                      .functions = uprof_read_le64(head + 64),
                      .unit = head[6],
                      .flags_at = head[0] == MAGIC_1_18 ? FLAGS_AT_1_18 : FLAGS_AT_1_20,
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
    function->start = uprof_read_le32(slice.data);
    function->record = uprof_read_le32((const uint8_t *)slice.data + 4);
    function->end = uprof_read_le32((const uint8_t *)slice.data + 8);
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

/* ---- Sizes of frames ---- */

/* The bytes of a list of sizes, which are read piece by piece. */
typedef struct {
    Table *table;
    uint64_t at; /* offset in the table */
    UprofSlice piece;
    size_t used; /* of @piece */
} Sizes;

static bool
read_byte(Sizes *sizes, uint8_t *byte)
{
    const UprofGoReader *reader = sizes->table->reader;

    if (sizes->used == sizes->piece.len) {
        const uint64_t left = sizes->at < reader->len ? reader->len - sizes->at : 0;
        const uint64_t len = MIN(left, (uint64_t)SIZES_PIECE);
        if (len == 0 || sizes->table->work < SIZES_PIECE)
            return false;
        sizes->table->work -= SIZES_PIECE;
        /* A piece may end in a page that is missing, behind the end of the list. */
        if (!reader->get(reader->data, sizes->at, len, &sizes->piece) &&
            !reader->get(reader->data, sizes->at, 1, &sizes->piece))
            return false;
        sizes->at += sizes->piece.len;
        sizes->used = 0;
    }
    *byte = ((const uint8_t *)sizes->piece.data)[sizes->used++];
    return true;
}

static bool
read_varint(Sizes *sizes, uint32_t *value)
{
    uint8_t byte;

    *value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        if (!read_byte(sizes, &byte))
            return false;
        *value |= (uint32_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

static void
add_size(const Table *table, uint64_t pc, int64_t bytes, UprofFrameKind kind)
{
    const UprofFrameSize size = { pc, (uint32_t)bytes, kind };

    g_array_append_val(table->found->frames, size);
}

/* Returns: false if the list is malformed, or a part of it is missing */
static bool
read_sizes(Table *table, uint64_t list, uint64_t start, uint64_t end, UprofFrameKind kind)
{
    Sizes sizes = { .table = table, .at = table->tables + list };
    uint32_t change, units;
    uint64_t pc = start;
    int64_t bytes = -1;

    while (pc < end) {
        if (!read_varint(&sizes, &change))
            return false;
        /* the rest of the function is padding */
        if (change == 0 && pc > start)
            break;
        if (!read_varint(&sizes, &units) || units == 0)
            return false;
        bytes += change & 1 ? ~(int64_t)(change >> 1) : (int64_t)(change >> 1);
        if (bytes < 0 || bytes > FRAME_BYTES_MAX)
            return false;
        add_size(table, pc, bytes, kind);
        pc += (uint64_t)units * table->unit;
    }
    add_size(table, MIN(pc, end), 0, UPROF_FRAME_NONE);
    return true;
}

/*
 * A function at the top of a stack has no caller, but the handler of signals was called by the
 * kernel. A function that changes the stack pointer goes on on the stack of the thread, whose
 * frames begin there; mcall never returns, and cgocallback is called on the stack where its frame
 * is.
 */
static UprofFrameKind
find_kind(unsigned flags, UprofSlice name)
{
    static const struct {
        const char *name;
        UprofFrameKind kind;
    } others[] = {
        { "runtime.sigtramp", UPROF_FRAME_SIGNAL },
        { "runtime.mcall", UPROF_FRAME_ROOT },
        { "runtime.cgocallback", UPROF_FRAME_CALLED },
    };

    if (!(flags & (TOP_FRAME | WRITES_SP)))
        return UPROF_FRAME_CALLED;
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        const size_t len = strlen(others[i].name);
        if (name.len >= len && memcmp(name.data, others[i].name, len) == 0 &&
            (name.len == len || ((const char *)name.data)[len] == '.'))
            return others[i].kind;
    }
    return flags & TOP_FRAME ? UPROF_FRAME_ROOT : UPROF_FRAME_SWITCHED;
}

/* @record: of the function, up to its flags. @name: of the function, or empty */
static void
add_frames(Table *table, uint64_t start, uint64_t end, const uint8_t *record, UprofSlice name)
{
    GArray *frames = table->found->frames;
    const UprofFrameKind kind = find_kind(record[table->flags_at], name);
    const uint32_t list = uprof_read_le32(record + SIZES_AT);
    const guint n = frames->len;

    /* a hostile table may have its functions in any order */
    if (n >= FRAMES_MAX || (n > 0 && start < g_array_index(frames, UprofFrameSize, n - 1).pc))
        return;
    if (kind == UPROF_FRAME_ROOT || kind == UPROF_FRAME_SWITCHED) {
        add_size(table, start, 0, kind);
        add_size(table, end, 0, UPROF_FRAME_NONE);
    } else if (list == 0 || !read_sizes(table, list, start, end, kind)) {
        g_array_set_size(frames, n);
    }
}

/* ---- Functions ---- */

static void
add_function(Table *table, uint64_t text, const Function *function)
{
    const UprofGoFound *found = table->found;
    UprofSymbol symbol = { .start = text + function->start,
                           .size = function->end - function->start,
                           .code = true };
    UprofSlice record;

    if (!table->reader->get(table->reader->data, table->functions + function->record,
                            table->flags_at + 1, &record))
        return;
    const bool has_name =
        read_name(table, table->names + uprof_read_le32((const uint8_t *)record.data + NAME_AT),
                  &symbol.name);
    if (has_name && found->symbols && found->symbols->len < found->symbols_max)
        g_array_append_val(found->symbols, symbol);
    add_frames(table, symbol.start, symbol.start + symbol.size, record.data,
               has_name ? symbol.name : (UprofSlice){ "", 0 });
}

/* A function begins at @offset. */
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
uprof_go_table_read(const UprofGoReader *reader, uint64_t text, uint64_t entry,
                    const UprofGoFound *found)
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
    table.found = found;
    for (uint64_t i = 0; i < table.n; i++)
        if (read_function(&table, i, &function))
            add_function(&table, text, &function);
    return true;
}
