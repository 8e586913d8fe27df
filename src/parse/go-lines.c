/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "go-lines-priv.h"

#include <string.h>

enum {
    WORD = 8,
    WORK_MAX = 256 * 1024, /* bytes of lists and names that are read for one address */
};

/* Offsets in struct moduledata. The trees of Go 1.27 are further behind. */
enum {
    MODULE_NAMES = 8,
    MODULE_FUNCTIONS = 128,
    MODULE_N = 136, /* functions, and the end of the last one */
    MODULE_TEXT = 176,
    MODULE_TREES_1_18 = 304,
    MODULE_TREES_1_20 = 320,
    MODULE_TREES_1_27 = 344,
    MODULE_TABLE_END_1_27 = 352,
    MODULE_BYTES = 360,
    TABLE_GAP_MAX = 4096, /* bytes between the table and its end, as the module says */
};

/* Offsets in a function's record */
enum {
    FILES = 20,
    LINES = 24,
    N_LISTS = 28,
    UNIT = 32,
    START_LINE = 36, /* since 1.20 */
    RECORD_BYTES_1_18 = 40,
    RECORD_BYTES_1_20 = 44,
    TREE_LIST = 2,  /* which of the further lists has the numbers of inlined functions */
    TREE_TABLE = 3, /* which of the further tables is the tree */
};

enum { ENTRY_BYTES_1_18 = 20, ENTRY_BYTES_1_20 = 16 };

struct _UprofGoLines {
    UprofGoBytes table, trees; /* their flags are owned */
    UprofGoHead head;
    uint64_t text;
};

/* The lists of a function. An offset of 0: there is no such list. */
typedef struct {
    const UprofGoLines *lines;
    UprofGoFunction place;
    uint32_t files, positions, inlined;
    uint32_t unit;
    uint32_t start_line; /* 0 if it is not known */
    uint64_t tree;       /* offset in the trees */
    bool has_tree;
    bool is_incomplete; /* the further lists are missing */
    uint64_t work;      /* bytes that may still be read */
} Function;

/* ---- The record of the program ---- */

static uint64_t
get_word(const uint8_t *module, unsigned at)
{
    return uprof_read_le64(module + at);
}

static bool
is_module(const uint8_t *module, const UprofGoHead *head, uint64_t address)
{
    return get_word(module, MODULE_NAMES) == address + head->names &&
           get_word(module, MODULE_FUNCTIONS) == address + head->functions &&
           get_word(module, MODULE_N) == head->n + 1;
}

static uint64_t
find_trees(const uint8_t *module, const UprofGoBytes *table, const UprofGoHead *head,
           uint64_t address)
{
    const uint64_t trees = get_word(module, MODULE_TREES_1_27);
    const uint64_t end = get_word(module, MODULE_TABLE_END_1_27);

    if (head->is_1_18)
        return get_word(module, MODULE_TREES_1_18);
    if (trees > address && trees <= end && end - address >= head->functions &&
        end - address <= table->all.len + TABLE_GAP_MAX)
        return trees;
    return get_word(module, MODULE_TREES_1_20);
}

bool
uprof_go_module_find(const UprofGoBytes *data, const UprofGoBytes *table, uint64_t table_address,
                     UprofGoModule *module)
{
    UprofGoHead head;
    UprofSlice bytes;

    if (!uprof_go_head_read(table, &head))
        return false;
    for (uint64_t at = 0; at + MODULE_BYTES <= data->all.len; at += WORD) {
        const uint8_t *here = (const uint8_t *)data->all.data + at;
        if (uprof_read_le64(here) != table_address || !is_module(here, &head, table_address) ||
            !uprof_go_bytes_get(data, at, MODULE_BYTES, &bytes))
            continue;
        *module = (UprofGoModule){ get_word(here, MODULE_TEXT),
                                   find_trees(here, table, &head, table_address) };
        return true;
    }
    return false;
}

/* ---- Functions ---- */

static bool
read_u32(const UprofGoBytes *bytes, uint64_t at, uint32_t *value)
{
    UprofSlice slice;

    if (!uprof_go_bytes_get(bytes, at, sizeof(*value), &slice))
        return false;
    *value = uprof_read_le32(slice.data);
    return true;
}

/* @at: offset in the function. Returns: false if the list has no value there */
static bool
find_value(Function *function, uint32_t offset, uint64_t at, int64_t *value)
{
    const UprofGoLines *lines = function->lines;
    UprofGoList list = { &lines->table, lines->head.tables + offset, &function->work, .value = -1 };
    uint64_t end = 0;

    if (offset == 0)
        return false;
    while (uprof_go_list_next(&list)) {
        end += (uint64_t)list.units * lines->head.insn_bytes;
        if (at < end) {
            *value = list.value;
            return true;
        }
    }
    return false;
}

enum { IN_NONE = -1, NOT_KNOWN = -2 };

/* Returns: number of the inlined function that has the code at @at; or one of the above */
static int64_t
find_inlined(Function *function, uint64_t at)
{
    int64_t number;

    if (function->is_incomplete)
        return NOT_KNOWN;
    if (function->inlined == 0)
        return IN_NONE;
    return find_value(function, function->inlined, at, &number) ? MAX(number, IN_NONE) : NOT_KNOWN;
}

/* The further lists and tables of a function, of which some may be absent. */
static void
read_more(Function *function, uint64_t record, const uint8_t *bytes, uint64_t len)
{
    const UprofGoBytes *table = &function->lines->table;
    const uint32_t n_lists = uprof_read_le32(bytes + N_LISTS);
    const uint64_t tables = record + len + (uint64_t)n_lists * sizeof(uint32_t);
    uint32_t tree;

    if (n_lists <= TREE_LIST || bytes[len - 1] <= TREE_TABLE)
        return;
    function->is_incomplete =
        !read_u32(table, record + len + TREE_LIST * sizeof(uint32_t), &function->inlined) ||
        !read_u32(table, tables + TREE_TABLE * sizeof(uint32_t), &tree);
    if (function->is_incomplete)
        return;
    function->has_tree = tree != UINT32_MAX;
    function->tree = tree;
}

/* The record of Go 1.18 does not have the line. */
static void
find_start_line(Function *function)
{
    int64_t line;

    if (find_value(function, function->positions, 0, &line) && line > 0 && line <= INT32_MAX &&
        find_inlined(function, 0) == IN_NONE)
        function->start_line = (uint32_t)line;
}

static bool
read_function(const UprofGoLines *lines, uint64_t offset, Function *function)
{
    const uint64_t len = lines->head.is_1_18 ? RECORD_BYTES_1_18 : RECORD_BYTES_1_20;
    UprofSlice slice;

    *function = (Function){ .lines = lines, .work = WORK_MAX };
    if (!uprof_go_head_find(&lines->table, &lines->head, offset, &function->place))
        return false;
    const uint64_t record = lines->head.functions + function->place.record;
    if (!uprof_go_bytes_get(&lines->table, record, len, &slice))
        return false;
    const uint8_t *bytes = slice.data;
    function->files = uprof_read_le32(bytes + FILES);
    function->positions = uprof_read_le32(bytes + LINES);
    function->unit = uprof_read_le32(bytes + UNIT);
    if (!lines->head.is_1_18)
        function->start_line = uprof_read_le32(bytes + START_LINE);
    read_more(function, record, bytes, len);
    if (lines->head.is_1_18)
        find_start_line(function);
    return true;
}

static bool
read_text(Function *function, uint64_t at, uint64_t end, UprofSlice *text)
{
    return uprof_go_bytes_text(&function->lines->table, at, end, &function->work, text);
}

/* File and line at an offset in the function; of the innermost inlined function there. */
static void
find_position(Function *function, uint64_t at, UprofGoLine *frame)
{
    const UprofGoHead *head = &function->lines->head;
    UprofSlice path;
    int64_t file, line;
    uint32_t name;

    if (!find_value(function, function->files, at, &file) || file < 0 ||
        !find_value(function, function->positions, at, &line) || line <= 0 || line > INT32_MAX ||
        !read_u32(&function->lines->table,
                  head->units + ((uint64_t)function->unit + (uint64_t)file) * sizeof(name),
                  &name) ||
        name == UINT32_MAX || !read_text(function, head->files + name, head->tables, &path))
        return;
    /* "<autogenerated>" is no file */
    if (((const char *)path.data)[0] == '<')
        return;
    frame->file = path;
    frame->line = (uint32_t)line;
}

/* Names follow each other, so another number is not the offset of a name. */
static bool
read_name(Function *function, uint32_t offset, UprofSlice *name)
{
    const UprofGoHead *head = &function->lines->head;
    UprofSlice before;

    return (offset == 0 ||
            (uprof_go_bytes_get(&function->lines->table, head->names + offset - 1, 1, &before) &&
             *(const char *)before.data == '\0')) &&
           read_text(function, head->names + offset, head->units, name);
}

/* @call: (out): offset in the function of the call that was inlined */
static bool
read_inlined(Function *function, uint64_t number, UprofGoLine *frame, uint32_t *call)
{
    const UprofGoLines *lines = function->lines;
    const bool is_1_18 = lines->head.is_1_18;
    const uint64_t len = is_1_18 ? ENTRY_BYTES_1_18 : ENTRY_BYTES_1_20;
    UprofSlice slice;

    if (!function->has_tree ||
        !uprof_go_bytes_get(&lines->trees, function->tree + number * len, len, &slice))
        return false;
    const uint8_t *entry = slice.data;
    *call = uprof_read_le32(entry + (is_1_18 ? 16 : 8));
    frame->function_line = is_1_18 ? 0 : uprof_read_le32(entry + 12);
    return *call < function->place.end - function->place.start &&
           read_name(function, uprof_read_le32(entry + (is_1_18 ? 12 : 4)), &frame->name);
}

/* ---- Public ---- */

/* Without the inlined functions, file and line would be those of a function that is not known. */
static unsigned
find_bare_frame(UprofGoLine *frames)
{
    frames[0] = (UprofGoLine){ .name = { "", 0 }, .file = { "", 0 } };
    return 1;
}

unsigned
uprof_go_lines_find(const UprofGoLines *lines, uint64_t address, UprofGoLine *frames)
{
    Function function;
    unsigned n = 0;

    if (address < lines->text || !read_function(lines, address - lines->text, &function))
        return 0;
    uint64_t at = address - lines->text - function.place.start;
    int64_t number = find_inlined(&function, at);
    for (; number >= 0; number = find_inlined(&function, at), n++) {
        uint32_t call;
        frames[n] = (UprofGoLine){ .name = { "", 0 }, .file = { "", 0 } };
        if (n + 1 == UPROF_GO_LINES_FRAMES_MAX ||
            !read_inlined(&function, (uint64_t)number, &frames[n], &call))
            return find_bare_frame(frames);
        find_position(&function, at, &frames[n]);
        at = call;
    }
    if (number == NOT_KNOWN)
        return find_bare_frame(frames);
    frames[n] =
        (UprofGoLine){ .name = { "", 0 }, .file = { "", 0 }, .function_line = function.start_line };
    find_position(&function, at, &frames[n]);
    return n + 1;
}

static void
copy_bytes(UprofGoBytes *copy, const UprofGoBytes *bytes)
{
    const uint64_t n =
        (bytes->before + bytes->all.len + UPROF_GO_PAGE_BYTES - 1) / UPROF_GO_PAGE_BYTES;

    *copy = *bytes;
    copy->is_here = bytes->is_here ? g_memdup2(bytes->is_here, n * sizeof(bool)) : NULL;
}

UprofGoLines *
uprof_go_lines_new(const UprofGoBytes *table, uint64_t text, const UprofGoBytes *trees)
{
    UprofGoHead head;

    if (!uprof_go_head_read(table, &head))
        return NULL;
    UprofGoLines *lines = g_new0(UprofGoLines, 1);
    lines->head = head;
    lines->text = text;
    copy_bytes(&lines->table, table);
    if (trees)
        copy_bytes(&lines->trees, trees);
    return lines;
}

void
uprof_go_lines_free(UprofGoLines *lines)
{
    if (!lines)
        return;
    g_free((gpointer)lines->table.is_here);
    g_free((gpointer)lines->trees.is_here);
    g_free(lines);
}
