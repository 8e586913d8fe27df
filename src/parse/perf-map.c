/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "perf-map-priv.h"

#include "uprof/sorted.h"

#include <string.h>

enum {
    LINE_BYTES_MAX = UPROF_PERF_MAP_NAME_BYTES_MAX + 48, /* two numbers, and spaces */
    FUNCTION_BYTES = 128, /* of memory, for a function without its name */
};

/* A generated function. */
typedef struct {
    uint64_t start, end; /* guest-virtual addresses */
    size_t name_len;
    char name[];
} Function;

struct _UprofPerfMap {
    GTree *functions; /* of Function, by start; they do not overlap; owned */
    GString *line;    /* the line that is not complete yet */
    bool skips;       /* the bytes up to the next line are ignored */
    size_t bytes;     /* of memory */
};

static gint
compare_starts(gconstpointer a, gconstpointer b, gpointer data)
{
    const Function *one = a, *other = b;

    return UPROF_COMPARE(one->start, other->start);
}

UprofPerfMap *
uprof_perf_map_new(void)
{
    UprofPerfMap *map = g_new0(UprofPerfMap, 1);

    map->functions = g_tree_new_full(compare_starts, NULL, g_free, NULL);
    map->line = g_string_new(NULL);
    return map;
}

void
uprof_perf_map_free(UprofPerfMap *map)
{
    if (!map)
        return;
    g_tree_unref(map->functions);
    g_string_free(map->line, TRUE);
    g_free(map);
}

static size_t
count_bytes(const Function *function)
{
    return FUNCTION_BYTES + function->name_len;
}

/* Returns: (nullable): the last function that starts at @address or below */
static Function *
find_below(const UprofPerfMap *map, uint64_t address)
{
    const Function key = { .start = address };
    GTreeNode *above = g_tree_upper_bound(map->functions, &key);
    GTreeNode *node = above ? g_tree_node_previous(above) : g_tree_node_last(map->functions);

    return node ? g_tree_node_key(node) : NULL;
}

/* Removes the functions that overlap a new one. */
static void
remove_replaced(UprofPerfMap *map, uint64_t start, uint64_t end)
{
    Function *old;

    while ((old = find_below(map, end - 1)) && old->end > start) {
        map->bytes -= count_bytes(old);
        g_tree_remove(map->functions, old);
    }
}

void
uprof_perf_map_insert(UprofPerfMap *map, uint64_t start, uint64_t size, UprofSlice name)
{
    const size_t name_len = MIN(name.len, (size_t)UPROF_PERF_MAP_NAME_BYTES_MAX);
    uint64_t end;

    if (__builtin_add_overflow(start, size, &end) || size == 0 || name_len == 0 ||
        g_tree_nnodes(map->functions) >= UPROF_PERF_MAP_FUNCTIONS_MAX)
        return;
    remove_replaced(map, start, end);
    Function *function = g_malloc(sizeof(*function) + name_len);
    *function = (Function){ .start = start, .end = end, .name_len = name_len };
    memcpy(function->name, name.data, name_len);
    map->bytes += count_bytes(function);
    g_tree_insert(map->functions, function, NULL);
}

/* @at: (inout): moves behind the number and the spaces after it */
static bool
parse_number(const char **at, uint64_t *number)
{
    char *end;

    if (!g_ascii_isxdigit(**at))
        return false;
    *number = g_ascii_strtoull(*at, &end, 16);
    if (*end != ' ')
        return false;
    *at = end + strspn(end, " ");
    return true;
}

static void
parse_line(UprofPerfMap *map)
{
    const char *at = map->line->str;
    uint64_t start, size;

    if (parse_number(&at, &start) && parse_number(&at, &size))
        uprof_perf_map_insert(map, start, size,
                              (UprofSlice){ at, map->line->len - (size_t)(at - map->line->str) });
}

void
uprof_perf_map_add(UprofPerfMap *map, UprofSlice text, bool is_continued)
{
    const char *at = text.data, *end = at + text.len;

    if (!is_continued) {
        map->skips = true;
        g_string_truncate(map->line, 0);
    }
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const size_t len = (size_t)((line_end ? line_end : end) - at);
        if (!map->skips)
            g_string_append_len(map->line, at, (gssize)MIN(len, LINE_BYTES_MAX - map->line->len));
        if (!line_end)
            return;
        if (!map->skips)
            parse_line(map);
        map->skips = false;
        g_string_truncate(map->line, 0);
        at = line_end + 1;
    }
}

bool
uprof_perf_map_find(const UprofPerfMap *map, uint64_t address, UprofSymbol *symbol)
{
    const Function *function = find_below(map, address);

    if (!function || address >= function->end)
        return false;
    *symbol = (UprofSymbol){
        .start = function->start,
        .size = function->end - function->start,
        .name = { function->name, function->name_len },
        .code = true,
    };
    return true;
}

size_t
uprof_perf_map_count(const UprofPerfMap *map)
{
    return (size_t)g_tree_nnodes(map->functions);
}

size_t
uprof_perf_map_bytes(const UprofPerfMap *map)
{
    return map->bytes;
}
