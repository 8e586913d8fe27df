/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "go-table-priv.h"

#include "uprof/symbol.h"

#include <string.h>

enum {
    HEAD_BYTES = 72,
    PAIR_BYTES = 8,
    FUNCTIONS_MAX = 1 << 24,
    TEXT_PIECE = 64,  /* bytes of a text that are read at once */
    WORK_OF_BYTE = 4, /* a hostile table may name all functions by the same long name */
    MAGIC_1_18 = 0xf0,
    MAGIC_1_20 = 0xf1,
    FRAME_BYTES_MAX = 1 << 30,
    FRAMES_MAX = 4 * 1000 * 1000, /* sizes, at the begin of a function */
};

/* Offsets in a function's record, and its flags (Go, src/internal/abi/symtab.go) */
enum { NAME_AT = 4, SIZES_AT = 16, FLAGS_AT_1_18 = 37, FLAGS_AT_1_20 = 41 };
enum { TOP_FRAME = 1, WRITES_SP = 2 };

typedef struct {
    const UprofGoBytes *bytes;
    UprofGoHead head;
    unsigned flags_at; /* offset of the flags in a record */
    uint64_t work;     /* bytes of names and sizes that may still be read */
    const UprofGoFound *found;
} Table;

/* ---- Bytes ---- */

bool
uprof_go_bytes_get(const UprofGoBytes *bytes, uint64_t at, uint64_t len, UprofSlice *slice)
{
    if (!uprof_slice_sub(bytes->all, at, len, slice))
        return false;
    if (!bytes->is_here || len == 0)
        return true;
    const uint64_t from = bytes->before + at;
    for (uint64_t page = from / UPROF_GO_PAGE_BYTES; page <= (from + len - 1) / UPROF_GO_PAGE_BYTES;
         page++)
        if (!bytes->is_here[page])
            return false;
    return true;
}

/* Piece by piece, because memory behind a text may be missing. */
bool
uprof_go_bytes_text(const UprofGoBytes *bytes, uint64_t at, uint64_t end, uint64_t *work,
                    UprofSlice *text)
{
    uint64_t len = 0;

    while (at < end && len < end - at && len <= UPROF_GO_TEXT_BYTES_MAX && *work >= TEXT_PIECE) {
        const uint64_t more = MIN((uint64_t)TEXT_PIECE, end - at - len);
        UprofSlice piece;
        *work -= TEXT_PIECE;
        if (!uprof_go_bytes_get(bytes, at + len, more, &piece) &&
            !uprof_go_bytes_get(bytes, at + len, 1, &piece))
            return false;
        const char *nul = memchr(piece.data, '\0', piece.len);
        len += nul ? (uint64_t)(nul - (const char *)piece.data) : piece.len;
        if (nul)
            return len > 0 && len <= UPROF_GO_TEXT_BYTES_MAX &&
                   uprof_go_bytes_get(bytes, at, len, text);
    }
    return false;
}

static bool
read_varint(UprofGoList *list, uint32_t *value)
{
    UprofSlice byte;

    *value = 0;
    for (unsigned shift = 0; shift < 32; shift += 7) {
        if (*list->work == 0 || !uprof_go_bytes_get(list->bytes, list->at, 1, &byte))
            return false;
        --*list->work;
        list->at++;
        const uint8_t bits = *(const uint8_t *)byte.data;
        *value |= (uint32_t)(bits & 0x7f) << shift;
        if (!(bits & 0x80))
            return true;
    }
    return false;
}

bool
uprof_go_list_next(UprofGoList *list)
{
    uint32_t change;

    if (list->is_malformed || !read_varint(list, &change)) {
        list->is_malformed = true;
        return false;
    }
    if (change == 0 && list->has_value)
        return false;
    list->is_malformed = !read_varint(list, &list->units) || list->units == 0;
    list->value += change & 1 ? ~(int64_t)(change >> 1) : (int64_t)(change >> 1);
    list->has_value = true;
    return !list->is_malformed;
}

/* ---- The header ---- */

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

bool
uprof_go_head_read(const UprofGoBytes *table, UprofGoHead *head)
{
    const uint64_t len = table->all.len;
    UprofSlice slice;

    if (!uprof_go_bytes_get(table, 0, HEAD_BYTES, &slice))
        return false;
    const uint8_t *bytes = slice.data;
    if ((bytes[0] != MAGIC_1_18 && bytes[0] != MAGIC_1_20) || bytes[1] != 0xff ||
        bytes[2] != 0xff || bytes[3] != 0xff || bytes[4] != 0 || bytes[5] != 0 || bytes[6] == 0 ||
        bytes[7] != sizeof(uint64_t) || !is_rising(bytes, len))
        return false;
    *head = (UprofGoHead){ .n = uprof_read_le64(bytes + 8),
                           .text = uprof_read_le64(bytes + 24),
                           .names = uprof_read_le64(bytes + 32),
                           .units = uprof_read_le64(bytes + 40),
                           .files = uprof_read_le64(bytes + 48),
                           .tables = uprof_read_le64(bytes + 56),
                           .functions = uprof_read_le64(bytes + 64),
                           .insn_bytes = bytes[6],
                           .is_1_18 = bytes[0] == MAGIC_1_18 };
    return head->n > 0 && head->n < FUNCTIONS_MAX && head->n * PAIR_BYTES < len - head->functions;
}

static bool
read_function(const UprofGoBytes *table, const UprofGoHead *head, uint64_t i,
              UprofGoFunction *function)
{
    UprofSlice slice;

    if (!uprof_go_bytes_get(table, head->functions + i * PAIR_BYTES, PAIR_BYTES + sizeof(uint32_t),
                            &slice))
        return false;
    function->start = uprof_read_le32(slice.data);
    function->record = uprof_read_le32((const uint8_t *)slice.data + 4);
    function->end = uprof_read_le32((const uint8_t *)slice.data + 8);
    return function->end > function->start;
}

bool
uprof_go_head_find(const UprofGoBytes *table, const UprofGoHead *head, uint64_t offset,
                   UprofGoFunction *function)
{
    uint64_t low = 0, high = head->n;

    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;
        if (!read_function(table, head, mid, function))
            return false;
        if (offset < function->start)
            high = mid;
        else if (offset >= function->end)
            low = mid + 1;
        else
            return true;
    }
    return false;
}

/* Returns: 0 if the address of the functions is not known */
static uint64_t
find_text(const UprofGoBytes *table, const UprofGoHead *head, uint64_t text, uint64_t entry)
{
    UprofGoFunction function;

    if (head->text != 0)
        text = head->text;
    else if (text == 0 || entry < text ||
             !uprof_go_head_find(table, head, entry - text, &function) ||
             function.start != entry - text)
        return 0;
    return text <= INT64_MAX ? text : 0;
}

/* ---- Sizes of frames ---- */

static void
add_size(const Table *table, uint64_t pc, int64_t bytes, UprofFrameKind kind)
{
    const UprofFrameSize size = { pc, (uint32_t)bytes, kind };

    g_array_append_val(table->found->frames, size);
}

/* Returns: false if the list is malformed, or a part of it is missing */
static bool
read_sizes(Table *table, uint64_t offset, uint64_t start, uint64_t end, UprofFrameKind kind)
{
    UprofGoList list = { table->bytes, table->head.tables + offset, &table->work, .value = -1 };
    uint64_t pc = start;

    while (pc < end && uprof_go_list_next(&list)) {
        if (list.value < 0 || list.value > FRAME_BYTES_MAX)
            return false;
        add_size(table, pc, list.value, kind);
        pc += (uint64_t)list.units * table->head.insn_bytes;
    }
    /* the rest of the function is padding */
    add_size(table, MIN(pc, end), 0, UPROF_FRAME_NONE);
    return !list.is_malformed;
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
add_function(Table *table, uint64_t text, const UprofGoFunction *function)
{
    const UprofGoHead *head = &table->head;
    const UprofGoFound *found = table->found;
    UprofSymbol symbol = { .start = text + function->start,
                           .size = function->end - function->start,
                           .code = true };
    UprofSlice record;

    if (!uprof_go_bytes_get(table->bytes, head->functions + function->record, table->flags_at + 1,
                            &record))
        return;
    const bool has_name = uprof_go_bytes_text(
        table->bytes, head->names + uprof_read_le32((const uint8_t *)record.data + NAME_AT),
        head->units, &table->work, &symbol.name);
    if (has_name && found->symbols && found->symbols->len < found->symbols_max)
        g_array_append_val(found->symbols, symbol);
    add_frames(table, symbol.start, symbol.start + symbol.size, record.data,
               has_name ? symbol.name : (UprofSlice){ "", 0 });
}

uint64_t
uprof_go_table_read(const UprofGoBytes *bytes, uint64_t text, uint64_t entry,
                    const UprofGoFound *found)
{
    Table table = { .bytes = bytes, .work = WORK_OF_BYTE * bytes->all.len, .found = found };
    UprofGoFunction function;

    if (!uprof_go_head_read(bytes, &table.head))
        return 0;
    text = find_text(bytes, &table.head, text, entry);
    table.flags_at = table.head.is_1_18 ? FLAGS_AT_1_18 : FLAGS_AT_1_20;
    for (uint64_t i = 0; text != 0 && i < table.head.n; i++)
        if (read_function(bytes, &table.head, i, &function))
            add_function(&table, text, &function);
    return text;
}
