/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "svg-tables-priv.h"

#include "digits-priv.h"
#include "json-priv.h"
#include "uprof/clock.h"
#include "uprof/fnv.h"
#include "uprof/kind.h"
#include "uprof/text.h"

#include <string.h>

enum {
    COMMON_MAX = 31,         /* letters: one digit */
    LIST_BYTES = 200 * 1000, /* of the names of hottest functions, or of modules */
};

uint32_t
uprof_svg_hash_name(const UprofName *name)
{
    const char *text = uprof_name_text(name);
    const uint32_t hash = uprof_fnv32_add(UPROF_FNV32_START, text, strlen(text));

    return hash ^ hash >> 16;
}

static void
append_row(GString *out, const UprofPictureFrame *frame, uint32_t up, bool compares)
{
    const uint64_t weights[] = {
        frame->rest[UPROF_NEW],
        frame->hidden[UPROF_NEW],
        frame->rest[UPROF_OLD],
        frame->hidden[UPROF_OLD],
    };
    const unsigned n_weights = compares ? 4 : 2;
    bool has_all = false;

    for (unsigned i = 1; i < n_weights; i++)
        has_all = has_all || weights[i] > 0;
    uprof_digits_append(out, frame->name);
    uprof_digits_append(out, (uint64_t)up << 1 | has_all);
    for (unsigned i = 0; i < (has_all ? n_weights : 1); i++)
        uprof_digits_append(out, weights[i]);
}

static void
append_frames(GString *out, const UprofPicture *picture)
{
    uint32_t depth = 0;

    g_string_append(out, "<u:frames>");
    for (guint i = 0; i < picture->frames->len; i++) {
        const UprofPictureFrame *frame = &g_array_index(picture->frames, UprofPictureFrame, i);
        const UprofTreeNode *node = uprof_tree_node(picture->tree, frame->node);
        append_row(out, frame, i > 0 ? depth + 1 - node->depth : 0, picture->tree->compares);
        depth = node->depth;
    }
    g_string_append(out, "</u:frames>\n");
}

/* Counts ASCII alone: of other characters, a script counts other units than bytes. */
static unsigned
count_common(const char *one, const char *other)
{
    unsigned n = 0;

    while (n < COMMON_MAX && one[n] && one[n] == other[n] && g_ascii_isprint(one[n]))
        n++;
    return n;
}

/* Names contain no line ends. */
static void
append_names(GString *out, const UprofPicture *picture)
{
    const UprofName *top = uprof_tree_node(picture->tree, 0)->name;
    const char *last = "";

    g_string_append(out, "<u:names>");
    for (guint i = 0; i < picture->names->len; i++) {
        const UprofName *name = g_ptr_array_index(picture->names, i);
        const UprofKind kind = name == top ? UPROF_KIND_DOMAIN : uprof_kind_of(name);
        const char *text = uprof_name_text(name);
        const unsigned n_common = count_common(last, text);
        g_string_append_printf(out, "%c%02x", uprof_kind_letter(kind),
                               uprof_svg_hash_name(name) & 0xff);
        uprof_digits_append(out, n_common);
        uprof_text_append_xml(out, text + n_common);
        g_string_append_c(out, '\n');
        last = text;
    }
    g_string_append(out, "</u:names>\n");
}

/* Returns: index of the name in @list, plus 1; 0 if there is no name, or no room for it */
static uint32_t
list_name(GHashTable *indices, GString *list, const UprofName *name)
{
    gpointer index = name ? g_hash_table_lookup(indices, name) : NULL;

    if (name && !index && list->len + strlen(uprof_name_text(name)) <= LIST_BYTES) {
        index = GUINT_TO_POINTER(g_hash_table_size(indices) + 1);
        g_hash_table_insert(indices, (gpointer)name, index);
        uprof_text_append_xml(list, uprof_name_text(name));
        g_string_append_c(list, '\n');
    }
    return GPOINTER_TO_UINT(index);
}

static void
append_modules(GString *out, const UprofPicture *picture)
{
    g_autoptr(GHashTable) indices = g_hash_table_new(NULL, NULL);
    g_autoptr(GString) list = g_string_new(NULL);
    g_autoptr(GString) numbers = g_string_new(NULL);

    for (guint i = 0; i < picture->names->len; i++) {
        const UprofName *module = uprof_name_module(g_ptr_array_index(picture->names, i));
        uprof_digits_append(numbers, list_name(indices, list, module));
    }
    if (list->len > 0)
        g_string_append_printf(out, "<u:modules>%s</u:modules>\n<u:within>%s</u:within>\n",
                               list->str, numbers->str);
}

static void
append_functions(GString *out, const UprofPicture *picture)
{
    g_string_append(out, "<u:functions>");
    for (guint i = 0; i < picture->functions->len; i++) {
        const UprofPictureFunction *function =
            &g_array_index(picture->functions, UprofPictureFunction, i);
        for (unsigned side = 0; side < (picture->tree->compares ? UPROF_N_SIDES : 1); side++) {
            uprof_digits_append(out, function->self[side]);
            uprof_digits_append(out, function->total[side]);
        }
    }
    g_string_append(out, "</u:functions>\n");
}

static void
append_run(GString *out, const char *element, const UprofRun *run)
{
    g_autoptr(GString) json = g_string_new(NULL);

    uprof_json_append_run(json, run, false);
    g_string_append_printf(out, "<u:%s>", element);
    uprof_text_append_xml(out, json->str);
    g_string_append_printf(out, "</u:%s>\n", element);
}

/* Returns: samples of halted vCPUs, if the weights of the graph are the other samples */
static uint64_t
find_uncounted_idles(const UprofSvgTables *tables)
{
    const UprofTree *tree = tables->picture->tree;
    const UprofRun *run = tables->runs[UPROF_NEW];
    const bool counts_running = uprof_tree_node(tree, 0)->total[UPROF_NEW] == run->running;

    return !tree->compares && !run->is_waits && counts_running ? run->idles : 0;
}

/*
 * The first line has the length of a cell in milliseconds, the cells of a column, the cells that
 * share a list of stacks, and the samples without a time. The second line has all cells, column by
 * column and from the bottom to the top: twice the samples of running vCPUs, plus 1 if the samples
 * of halted vCPUs follow.
 */
static void
append_timeline(GString *out, const UprofTimeline *timeline)
{
    const uint64_t head[] = { timeline->cell_ns / UPROF_NS_PER_MS, timeline->n_rows,
                              timeline->n_shared, timeline->n_untimed };

    g_string_append(out, "<u:time>");
    for (size_t i = 0; i < G_N_ELEMENTS(head); i++)
        uprof_digits_append(out, head[i]);
    g_string_append_c(out, '\n');
    for (guint i = 0; i < timeline->cells->len; i++) {
        const UprofTimeCell *cell = &g_array_index(timeline->cells, UprofTimeCell, i);
        const bool has_idle = cell->samples > cell->running;
        uprof_digits_append(out, cell->running << 1 | has_idle);
        if (has_idle)
            uprof_digits_append(out, cell->samples - cell->running);
    }
    g_string_append(out, "\n</u:time>\n<u:stacks>");
    g_string_append_len(out, timeline->lists->str, (gssize)timeline->lists->len);
    g_string_append(out, "</u:stacks>\n");
}

/*
 * The days and the hottest functions are lines. The slots have four numbers for each cell: the line
 * of the hottest function, from 1 on; its samples; the failed rounds; and 1 if the slot and the
 * slot before have one sum.
 */
static void
append_calendar(GString *out, const UprofCalendar *calendar)
{
    g_autoptr(GHashTable) indices = g_hash_table_new(NULL, NULL);
    g_autoptr(GString) list = g_string_new(NULL);

    g_string_append(out, "<u:days>");
    for (guint i = 0; i < calendar->days->len; i++)
        g_string_append_printf(out, "%s\n", (const char *)g_ptr_array_index(calendar->days, i));
    g_string_append(out, "</u:days>\n<u:slots>");
    for (guint i = 0; i < calendar->slots->len; i++) {
        const UprofSlot *slot = &g_array_index(calendar->slots, UprofSlot, i);
        uprof_digits_append(out, list_name(indices, list, slot->hottest));
        uprof_digits_append(out, slot->hottest_self);
        uprof_digits_append(out, slot->n_failed);
        uprof_digits_append(out, slot->is_joined);
    }
    g_string_append_printf(out, "\n</u:slots>\n<u:hottest>%s</u:hottest>\n", list->str);
}

void
uprof_svg_tables_append(GString *out, const UprofSvgTables *tables)
{
    const UprofPicture *picture = tables->picture;

    g_string_append_printf(
        out,
        "<metadata xmlns:u=\"https://virt-uprof.org/xmlns/flamegraph/2.0\">\n"
        "<u:graph type=\"%s\" all=\"%u\" sent=\"%u\" idle=\"%" G_GUINT64_FORMAT "\"%s/>\n",
        picture->tree->compares ? "diff" : "flame", picture->n_frames, picture->frames->len,
        find_uncounted_idles(tables), tables->runs[UPROF_NEW]->is_waits ? " unit=\"us\"" : "");
    append_run(out, "run", tables->runs[UPROF_NEW]);
    if (tables->runs[UPROF_OLD])
        append_run(out, "old", tables->runs[UPROF_OLD]);
    append_names(out, picture);
    append_modules(out, picture);
    append_functions(out, picture);
    append_frames(out, picture);
    if (tables->timeline)
        append_timeline(out, tables->timeline);
    if (tables->timeline && tables->timeline->calendar)
        append_calendar(out, tables->timeline->calendar);
    g_string_append(out, "</metadata>\n");
}
