/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Flame graphs as one SVG file. The file is a complete picture without its script: in an
 * image, on paper, or with scripts off. In a browser, the script draws the table of frames
 * instead, and can zoom, search and invert the graph.
 *
 * Foreign text stands only in text nodes: labels, <title>, and the tables in <metadata>.
 * Style sheet and script are the same bytes in every file.
 */
#include "uprof/output.h"

#include "facts-priv.h"
#include "heat-map-priv.h"
#include "svg-files-priv.h"
#include "svg-tables-priv.h"
#include "uprof/change.h"
#include "uprof/clock.h"
#include "uprof/kind.h"
#include "uprof/text.h"

#include <string.h>

/* Lengths in tenths of a pixel. */
enum {
    WIDTH = 12000,
    MARGIN = 120,
    ROW = 180,
    GAP = 10,      /* between frames */
    TINY = 50,     /* narrower frames have neither label nor tooltip */
    CHAR = 67,     /* width of a letter of 11 px in a monospaced font, rounded up */
    CHARS_MIN = 5, /* shorter labels are omitted */
    LABEL_INSET = 40,
    BASELINE = 127,  /* of a label, from the top of its frame */
    FACT_LABEL = 56, /* width of a letter in the label of a fact */
    FACT_VALUE = 75, /* width of a letter in the value of a fact */
    FACT_GAP = 260,
    FACT_ROW = 380,
    LEGEND_CHAR = 62,
    GONE_MAX = 12, /* stacks in the list of gone stacks */
    HEAT_CELL = 40,
    HEAT_COLUMN_MAX = 240,
    DOT = 40,        /* in a slot with failed rounds */
    DAY_LABEL = 700, /* width of the label of a day, with a gap */
    DAY_ROW = 130,
};

/* The picture that is being drawn */
typedef struct {
    GString *out;
    const char *title; /* clean text */
    const UprofTree *tree;
    UprofPicture *picture;
    const UprofTimeline *timeline; /* (nullable) */
    const UprofRun *runs[UPROF_N_SIDES];
    uint64_t top; /* of the graph */
    uint64_t bottom;
} Drawing;

static void
append_tenths(GString *out, uint64_t tenths)
{
    g_string_append_printf(out, "%" G_GUINT64_FORMAT, tenths / 10);
    if (tenths % 10 > 0)
        g_string_append_printf(out, ".%u", (unsigned)(tenths % 10));
}

static void
append_attribute(GString *out, const char *name, uint64_t tenths)
{
    g_string_append_printf(out, " %s=\"", name);
    append_tenths(out, tenths);
    g_string_append_c(out, '"');
}

static void
append_text(GString *out, const char *class, uint64_t x, uint64_t y, const char *text)
{
    g_string_append_printf(out, "<text class=\"%s\"", class);
    append_attribute(out, "x", x);
    append_attribute(out, "y", y);
    g_string_append_c(out, '>');
    uprof_text_append_xml(out, text);
    g_string_append(out, "</text>");
}

static UprofKind
kind_of(const UprofTreeNode *node)
{
    return node->depth == 0 ? UPROF_KIND_DOMAIN : uprof_kind_of(node->name);
}

/* Returns: letters of space that @c takes */
static unsigned
count_columns(gunichar c)
{
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

/* Cuts between characters. Returns: (transfer full) (nullable): NULL if too little fits */
static char *
fit_label(const char *text, uint64_t width)
{
    const uint64_t room = width > 2 * LABEL_INSET ? (width - 2 * LABEL_INSET) / CHAR : 0;
    const char *cut = text;
    uint64_t columns = 0;

    if (room < CHARS_MIN)
        return NULL;
    for (const char *at = text; *at; at = g_utf8_next_char(at)) {
        columns += count_columns(g_utf8_get_char(at));
        if (columns > room)
            return g_strdup_printf("%.*s..", (int)(cut - text), text);
        if (columns + 2 <= room)
            cut = g_utf8_next_char(at);
    }
    return g_strdup(text);
}

static uint64_t
find_whole(const Drawing *drawing, UprofSide side)
{
    return uprof_tree_node(drawing->tree, 0)->total[side];
}

static UprofChange
find_change(const Drawing *drawing, const UprofTreeNode *node)
{
    return uprof_change_of(node->total[UPROF_OLD], find_whole(drawing, UPROF_OLD),
                           node->total[UPROF_NEW], find_whole(drawing, UPROF_NEW));
}

static char *
format_weight(const Drawing *drawing, uint64_t weight)
{
    const uint64_t ms = weight / (UPROF_NS_PER_MS / UPROF_NS_PER_US);

    return drawing->runs[UPROF_NEW]->is_waits
               ? g_strdup_printf("%" G_GUINT64_FORMAT ".%03u s", ms / 1000, (unsigned)(ms % 1000))
               : g_strdup_printf("%" G_GUINT64_FORMAT " samples", weight);
}

/* Name, weight and share; in a comparison, both sides and the difference. */
static char *
describe_node(const Drawing *drawing, const UprofTreeNode *node)
{
    const char *name = uprof_name_text(node->name);
    const uint64_t weight = node->total[UPROF_NEW];
    g_autofree char *share = uprof_facts_percent(weight, find_whole(drawing, UPROF_NEW));

    g_autofree char *shown = format_weight(drawing, weight);

    const UprofName *module = uprof_name_module(node->name);

    if (!drawing->tree->compares)
        return g_strdup_printf("%s (%s, %s%s%s)", name, shown, share, module ? ", in " : "",
                               module ? uprof_name_text(module) : "");
    const UprofChange change = find_change(drawing, node);
    g_autofree char *was =
        uprof_facts_percent(node->total[UPROF_OLD], find_whole(drawing, UPROF_OLD));
    g_autofree char *points = uprof_change_format(&change);
    return g_strdup_printf("%s (%s, %s: %" G_GUINT64_FORMAT " samples, before %s: "
                           "%" G_GUINT64_FORMAT ")",
                           name, points, share, weight, was, node->total[UPROF_OLD]);
}

static void
append_class(GString *out, const Drawing *drawing, const UprofTreeNode *node)
{
    if (drawing->tree->compares) {
        const UprofChange change = find_change(drawing, node);
        g_string_append(out, uprof_change_class(&change));
        return;
    }
    g_string_append_printf(out, "%c%u", uprof_kind_letter(kind_of(node)),
                           uprof_svg_hash_name(node->name) % 8);
}

/* Returns: (transfer full): the name; in a comparison, marked if a new stack begins here */
static char *
make_label(const Drawing *drawing, const UprofTreeNode *node)
{
    const bool is_new = drawing->tree->compares && node->total[UPROF_OLD] == 0 &&
                        uprof_tree_node(drawing->tree, node->parent)->total[UPROF_OLD] > 0;

    return g_strconcat(uprof_name_text(node->name), is_new ? " (new)" : NULL, NULL);
}

/* Position and size of a frame */
typedef struct {
    uint64_t x, y, width;
} Box;

static Box
find_box(const Drawing *drawing, const UprofPictureFrame *frame)
{
    const UprofTreeNode *node = uprof_tree_node(drawing->tree, frame->node);
    const uint64_t whole = find_whole(drawing, UPROF_NEW);
    const uint64_t inner = WIDTH - 2 * MARGIN;
    const uint64_t left = uprof_picture_scale(frame->left, whole, inner);
    const uint64_t right = uprof_picture_scale(frame->left + node->total[UPROF_NEW], whole, inner);

    return (Box){
        .x = MARGIN + left,
        .y = drawing->bottom - (node->depth + 1) * ROW,
        .width = right - left > 3 * GAP ? right - left - GAP / 2 : MAX(right - left, 1),
    };
}

static void
append_frame(const Drawing *drawing, const UprofTreeNode *node, const Box *box)
{
    g_autofree char *title = describe_node(drawing, node);
    g_autofree char *text = make_label(drawing, node);
    g_autofree char *label = fit_label(text, box->width);

    g_string_append(drawing->out, "<g><title>");
    uprof_text_append_xml(drawing->out, title);
    g_string_append(drawing->out, "</title><rect class=\"");
    append_class(drawing->out, drawing, node);
    g_string_append_c(drawing->out, '"');
    append_attribute(drawing->out, "x", box->x);
    append_attribute(drawing->out, "y", box->y);
    append_attribute(drawing->out, "width", box->width);
    append_attribute(drawing->out, "height", ROW - GAP);
    g_string_append(drawing->out, "/>");
    if (label)
        append_text(drawing->out, "l", box->x + LABEL_INSET, box->y + BASELINE, label);
    g_string_append(drawing->out, "</g>\n");
}

/* Adds the frame to the shape of all tiny frames of its color. */
static void
add_tiny(GTree *shapes, const Drawing *drawing, const UprofTreeNode *node, const Box *box)
{
    g_autoptr(GString) class = g_string_new(NULL);

    append_class(class, drawing, node);
    GString *shape = g_tree_lookup(shapes, class->str);
    if (!shape) {
        shape = g_string_new(NULL);
        g_tree_insert(shapes, g_strdup(class->str), shape);
    }
    g_string_append_c(shape, 'M');
    append_tenths(shape, box->x);
    g_string_append_c(shape, ' ');
    append_tenths(shape, box->y);
    g_string_append_c(shape, 'h');
    append_tenths(shape, box->width);
    g_string_append_c(shape, 'v');
    append_tenths(shape, ROW - GAP);
    g_string_append(shape, "h-");
    append_tenths(shape, box->width);
    g_string_append_c(shape, 'z');
}

static gboolean
append_shape(gpointer class, gpointer shape, gpointer out)
{
    g_string_append_printf(out, "<path class=\"%s\" d=\"%s\"/>\n", (const char *)class,
                           ((const GString *)shape)->str);
    return FALSE;
}

static int
compare_classes(gconstpointer one, gconstpointer other, gpointer data)
{
    return strcmp(one, other);
}

static void
free_shape(gpointer shape)
{
    g_string_free(shape, TRUE);
}

/* Tiny frames have no elements of their own: each element costs a browser as much as 500 letters.
 */
static void
append_frames(const Drawing *drawing)
{
    const GArray *frames = drawing->picture->frames;
    g_autoptr(GTree) shapes = g_tree_new_full(compare_classes, NULL, g_free, free_shape);

    g_string_append(drawing->out, "<g id=\"f\">\n");
    for (guint i = 0; i < frames->len; i++) {
        const UprofPictureFrame *frame = &g_array_index(frames, UprofPictureFrame, i);
        const UprofTreeNode *node = uprof_tree_node(drawing->tree, frame->node);
        const Box box = find_box(drawing, frame);
        if (!frame->is_drawn)
            continue;
        if (box.width < TINY)
            add_tiny(shapes, drawing, node, &box);
        else
            append_frame(drawing, node, &box);
    }
    g_tree_foreach(shapes, append_shape, drawing->out);
    g_string_append(drawing->out, "</g>\n");
}

/* A fact is a small label above its value. Returns: the width */
static uint64_t
append_fact(const Drawing *drawing, const UprofFact *fact, uint64_t x, uint64_t y)
{
    const uint64_t value = (uint64_t)g_utf8_strlen(fact->value, -1) * FACT_VALUE;

    g_string_append(drawing->out, "<g class=\"fact\">");
    append_text(drawing->out, "n", x, y, fact->label);
    append_text(drawing->out, "v", x, y + 150, fact->value);
    g_string_append(drawing->out, "</g>\n");
    return MAX(value, strlen(fact->label) * FACT_LABEL);
}

static uint64_t
measure_fact(const UprofFact *fact)
{
    return MAX((uint64_t)g_utf8_strlen(fact->value, -1) * FACT_VALUE,
               strlen(fact->label) * FACT_LABEL);
}

static void
clear_fact(gpointer data)
{
    g_free(((UprofFact *)data)->value);
}

static GArray *
find_facts(const Drawing *drawing)
{
    if (!drawing->tree->compares)
        return uprof_facts_new(drawing->runs[UPROF_NEW]);
    GArray *facts = g_array_new(FALSE, FALSE, sizeof(UprofFact));
    const UprofFact sides[] = {
        { "old", uprof_facts_of_side(drawing->runs[UPROF_OLD]) },
        { "new", uprof_facts_of_side(drawing->runs[UPROF_NEW]) },
        { "compared by", g_strdup("share of running samples") },
    };
    g_array_set_clear_func(facts, clear_fact);
    g_array_append_vals(facts, sides, G_N_ELEMENTS(sides));
    return facts;
}

/* Returns: the bottom of the facts */
static uint64_t
append_facts(const Drawing *drawing, uint64_t y)
{
    g_autoptr(GArray) facts = find_facts(drawing);
    uint64_t x = MARGIN;

    for (guint i = 0; i < facts->len; i++) {
        const UprofFact *fact = &g_array_index(facts, UprofFact, i);
        if (x > MARGIN && x + measure_fact(fact) > WIDTH - MARGIN) {
            x = MARGIN;
            y += FACT_ROW;
        }
        x += append_fact(drawing, fact, x, y) + FACT_GAP;
    }
    return y + FACT_ROW;
}

static uint64_t
append_legend_entry(const Drawing *drawing, const char *class, const char *label, uint64_t x,
                    uint64_t y)
{
    g_string_append_printf(drawing->out, "<g class=\"legend\"><rect class=\"%s\" rx=\"2\"", class);
    append_attribute(drawing->out, "x", x);
    append_attribute(drawing->out, "y", y - 90);
    g_string_append(drawing->out, " width=\"11\" height=\"11\"/>");
    append_text(drawing->out, "n", x + 160, y, label);
    g_string_append(drawing->out, "</g>\n");
    return 160 + strlen(label) * LEGEND_CHAR + 180;
}

static void
append_legend(const Drawing *drawing, uint64_t y)
{
    bool seen[UPROF_N_KINDS] = { false };
    uint64_t x = MARGIN;

    if (drawing->tree->compares) {
        for (unsigned i = 0; i < UPROF_N_CHANGE_LEGENDS; i++)
            x += append_legend_entry(drawing, uprof_change_legends[i].class,
                                     uprof_change_legends[i].label, x, y);
        return;
    }
    for (guint i = 0; i < drawing->picture->names->len; i++) {
        const UprofName *name = g_ptr_array_index(drawing->picture->names, i);
        if (name != uprof_tree_node(drawing->tree, 0)->name)
            seen[uprof_kind_of(name)] = true;
    }
    for (unsigned kind = 0; kind < UPROF_N_KINDS; kind++) {
        const char class[] = { uprof_kind_letter((UprofKind)kind), '4', '\0' };
        if (seen[kind] && kind != UPROF_KIND_DOMAIN)
            x += append_legend_entry(drawing, class, uprof_kind_label((UprofKind)kind), x, y);
    }
}

/* Notes in the picture how much it does not show. */
static void
append_hidden(const Drawing *drawing, uint64_t y)
{
    const UprofPicture *picture = drawing->picture;
    const uint32_t n = picture->n_frames - picture->n_drawn;
    const uint64_t whole = find_whole(drawing, UPROF_NEW);
    g_autofree char *share = uprof_facts_percent(picture->undrawn, whole);
    const bool is_waits = drawing->runs[UPROF_NEW]->is_waits;
    g_autofree char *text =
        whole == 0 ? g_strdup_printf("%s: the profile has no stacks",
                                     is_waits ? "no task was seen to wait" : "no vCPU ran")
        : n == 0   ? g_strdup("all frames shown")
                 : g_strdup_printf("%u of %u frames (%s of %s end there) are too narrow to show", n,
                                   picture->n_frames, share, is_waits ? "waits" : "samples");

    g_string_append(drawing->out, "<text id=\"hidden\" class=\"n\" text-anchor=\"end\"");
    append_attribute(drawing->out, "x", WIDTH - MARGIN);
    append_attribute(drawing->out, "y", y);
    g_string_append_printf(drawing->out, ">%s</text>\n", text);
}

static char *
describe_timeline(const UprofTimeline *timeline)
{
    const uint64_t step_s = timeline->cell_ns * timeline->n_rows / UPROF_NS_PER_S;
    g_autoptr(GString) text = g_string_new("share of running samples by time (gray: idle): ");

    if (timeline->calendar)
        g_string_append(text,
                        "each column is a day in local time, from 00:00 at the bottom; a day in "
                        "one color: only its sum is stored; dot: failed rounds");
    else
        g_string_append_printf(
            text, "each column has %" G_GUINT64_FORMAT " s, from the bottom to the top", step_s);
    if (timeline->n_untimed > 0)
        g_string_append_printf(text, "; %" G_GUINT64_FORMAT " samples have no time",
                               timeline->n_untimed);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* A dot in each slot with a round that failed */
static void
append_failures(GString *out, const UprofCalendar *calendar, const UprofHeatMap *map)
{
    g_string_append(out, "<path class=\"failed\" d=\"");
    for (guint i = 0; i < calendar->slots->len; i++) {
        const uint64_t column = i / map->n_rows, row = map->n_rows - 1 - i % map->n_rows;
        if (g_array_index(calendar->slots, UprofSlot, i).n_failed == 0)
            continue;
        g_string_append_c(out, 'M');
        append_tenths(out, map->x + column * map->cell_width + DOT / 2);
        g_string_append_c(out, ' ');
        append_tenths(out, map->y + row * map->cell_height + DOT / 2);
        g_string_append(out, "h4v4h-4z");
    }
    g_string_append(out, "\"/>\n");
}

/* Labels days, as many as fit. */
static void
append_days(GString *out, const UprofCalendar *calendar, const UprofHeatMap *map)
{
    const guint step = (guint)(DAY_LABEL / map->cell_width + 1);
    const uint64_t y = map->y + map->n_rows * map->cell_height + DAY_ROW;

    for (guint i = 0; i < calendar->days->len; i += step)
        if (map->x + i * map->cell_width + DAY_LABEL <= WIDTH)
            append_text(out, "n", map->x + i * map->cell_width, y,
                        g_ptr_array_index(calendar->days, i));
}

static UprofHeatMap
make_heat_map(const UprofTimeline *timeline, uint8_t *levels, uint64_t y)
{
    for (guint i = 0; i < timeline->cells->len; i++) {
        const UprofTimeCell *cell = &g_array_index(timeline->cells, UprofTimeCell, i);
        levels[i] = uprof_heat_level(cell->running, cell->samples);
    }
    return (UprofHeatMap){
        .levels = levels,
        .n_columns = timeline->n_columns,
        .n_rows = timeline->n_rows,
        .x = MARGIN,
        .y = y,
        .cell_width = MIN((WIDTH - 2 * MARGIN) / timeline->n_columns,
                          timeline->calendar ? 2 * HEAT_COLUMN_MAX : HEAT_COLUMN_MAX),
        .cell_height = timeline->calendar ? 2 * HEAT_CELL : HEAT_CELL,
    };
}

/* Returns: the bottom of the heat map; @y if the profile has no times */
static uint64_t
append_heat(const Drawing *drawing, uint64_t y)
{
    const UprofTimeline *timeline = drawing->timeline;

    if (!timeline)
        return y;
    g_autofree char *text = describe_timeline(timeline);
    g_autofree uint8_t *levels = g_new(uint8_t, timeline->cells->len);
    const UprofHeatMap map = make_heat_map(timeline, levels, y + 290);
    append_text(drawing->out, "n", MARGIN, y + 220, text);
    g_string_append(drawing->out, "<g id=\"time\">\n");
    uprof_heat_map_append(drawing->out, &map);
    if (timeline->calendar) {
        append_failures(drawing->out, timeline->calendar, &map);
        append_days(drawing->out, timeline->calendar, &map);
    }
    g_string_append(drawing->out, "</g>\n");
    return map.y + map.n_rows * map.cell_height + (timeline->calendar ? DAY_ROW : 0);
}

static void
append_back(const Drawing *drawing, uint64_t height)
{
    g_string_append(drawing->out, "<rect class=\"back\"");
    append_attribute(drawing->out, "width", WIDTH);
    append_attribute(drawing->out, "height", height);
    g_string_append(drawing->out, "/>\n");
}

static void
append_head(Drawing *drawing)
{
    g_autofree char *title = fit_label(drawing->title, WIDTH * 2 / 5);

    append_text(drawing->out, "t", MARGIN, 290, title);
    g_string_append(drawing->out, "<text class=\"n\" text-anchor=\"end\"");
    append_attribute(drawing->out, "x", WIDTH - MARGIN);
    g_string_append_printf(drawing->out, " y=\"29\">%s</text>\n",
                           drawing->tree->compares ? "differential flame graph, virt-uprof"
                           : drawing->runs[UPROF_NEW]->is_waits
                               ? "flame graph of waiting tasks, virt-uprof"
                               : "flame graph, virt-uprof");
    const uint64_t y = append_facts(drawing, 550);
    append_legend(drawing, y);
    append_hidden(drawing, y);
    drawing->top = append_heat(drawing, y) + 160;
    drawing->bottom = drawing->top + (drawing->picture->depth + 1) * ROW;
}

/* Lists stacks that only the old profile has: the graph has the layout of the new profile. */
static uint64_t
append_gone(const Drawing *drawing)
{
    g_autoptr(GPtrArray) gone = uprof_change_gone(drawing->tree, GONE_MAX);
    uint64_t y = drawing->bottom + 260;

    if (gone->len == 0)
        return drawing->bottom;
    append_text(drawing->out, "v", MARGIN, y, "gone: frames of the old profile only");
    for (guint i = 0; i < gone->len; i++) {
        const UprofTreeNode *node = g_ptr_array_index(gone, i);
        g_autofree char *was =
            uprof_facts_percent(node->total[UPROF_OLD], find_whole(drawing, UPROF_OLD));
        g_autofree char *line = g_strdup_printf("%7s  %s", was, uprof_name_text(node->name));
        g_autofree char *fitted = fit_label(line, WIDTH - 2 * MARGIN);
        y += ROW;
        g_string_append(drawing->out, "<g class=\"gone\">");
        append_text(drawing->out, "v", MARGIN, y, fitted);
        g_string_append(drawing->out, "</g>\n");
    }
    return y + 60;
}

static void
append_document(Drawing *drawing, GString *body, uint64_t height)
{
    GString *out = drawing->out;

    g_string_append(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                         "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    append_attribute(out, "width", WIDTH);
    append_attribute(out, "height", height);
    g_string_append(out, " viewBox=\"0 0 ");
    append_tenths(out, WIDTH);
    g_string_append_c(out, ' ');
    append_tenths(out, height);
    g_string_append(out, "\">\n<title>");
    uprof_text_append_xml(out, drawing->title);
    g_string_append(out, "</title>\n");
    uprof_svg_tables_append(
        out, &(UprofSvgTables){ drawing->picture, drawing->timeline, drawing->runs });
    g_string_append_printf(
        out, "<style>\n%s</style>\n<script><![CDATA[\n%s]]></script>\n<g id=\"static\">\n",
        uprof_svg_css, uprof_svg_js);
    append_back(drawing, height);
    g_string_append_len(out, body->str, (gssize)body->len);
    g_string_append(out, "</g>\n</svg>\n");
}

static void
write_picture(Drawing drawing, UprofSink *sink)
{
    g_autoptr(GString) body = g_string_new(NULL);
    uint64_t bottom;

    drawing.out = body;
    append_head(&drawing);
    append_frames(&drawing);
    bottom = drawing.tree->compares ? append_gone(&drawing) : drawing.bottom;
    drawing.out = sink->text;
    append_document(&drawing, body, bottom + MARGIN);
}

static void
svg_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    g_autoptr(UprofTree) tree = uprof_tree_new(profile);
    g_autoptr(UprofPicture) picture = uprof_picture_new(tree, WIDTH - 2 * MARGIN);
    g_autoptr(UprofTimeline) timeline = uprof_timeline_new(profile, run, picture);

    write_picture((Drawing){ .title = uprof_name_text(uprof_tree_node(tree, 0)->name),
                             .tree = tree,
                             .picture = picture,
                             .timeline = timeline,
                             .runs = { [UPROF_NEW] = run } },
                  sink);
}

GString *
uprof_svg_history(const UprofCalendar *calendar)
{
    g_autoptr(UprofTree) tree = uprof_tree_new(calendar->profile);
    g_autoptr(UprofPicture) picture = uprof_picture_new(tree, WIDTH - 2 * MARGIN);
    g_autoptr(UprofTimeline) timeline = uprof_timeline_new_of_days(calendar, picture);
    UprofSink sink = { .text = g_string_new(NULL) };

    write_picture((Drawing){ .title = uprof_name_text(uprof_tree_node(tree, 0)->name),
                             .tree = tree,
                             .picture = picture,
                             .timeline = timeline,
                             .runs = { [UPROF_NEW] = calendar->run } },
                  &sink);
    return sink.text;
}

/* The two domains, or, if they are the same, the two names of the profiles */
static char *
make_title(const UprofTree *both, const char *const *domains, const char *const *profiles)
{
    g_autofree char *old = NULL, *new = NULL;

    if (domains[UPROF_OLD] && domains[UPROF_NEW] &&
        strcmp(domains[UPROF_OLD], domains[UPROF_NEW]) != 0) {
        old = uprof_text_quote(domains[UPROF_OLD]);
        new = uprof_text_quote(domains[UPROF_NEW]);
        return g_strdup_printf("%s -> %s", old, new);
    }
    const char *domain = uprof_name_text(uprof_tree_node(both, 0)->name);
    if (!profiles[UPROF_OLD] || !profiles[UPROF_NEW])
        return g_strdup(domain);
    g_autofree char *old_base = g_path_get_basename(profiles[UPROF_OLD]);
    g_autofree char *new_base = g_path_get_basename(profiles[UPROF_NEW]);
    old = uprof_text_quote(old_base);
    new = uprof_text_quote(new_base);
    return g_strdup_printf("%s: %s -> %s", domain, old, new);
}

GString *
uprof_svg_compare(const UprofTree *both, const UprofRun *old, const UprofRun *new,
                  const char *old_name, const char *new_name)
{
    const char *const domains[] = { [UPROF_NEW] = new->domain, [UPROF_OLD] = old->domain };
    const char *const profiles[] = { [UPROF_NEW] = new_name, [UPROF_OLD] = old_name };
    g_autofree char *title = make_title(both, domains, profiles);
    g_autoptr(UprofPicture) picture = uprof_picture_new(both, WIDTH - 2 * MARGIN);
    UprofSink sink = { .text = g_string_new(NULL) };

    write_picture((Drawing){ .title = title,
                             .tree = both,
                             .picture = picture,
                             .runs = { [UPROF_NEW] = new, [UPROF_OLD] = old } },
                  &sink);
    return sink.text;
}

const UprofFormat uprof_format_svg = {
    .name = "svg",
    .suffixes = { ".svg" },
    .is_timed = true,
    .write = svg_write,
    .has_waits_file = true,
};
