/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "picture-priv.h"

#include "uprof/change.h"
#include "uprof/sorted.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAME_TABLE_BYTES = 6, /* of a row, without its name */
    FRAME_DRAWN_BYTES = 150,
    SHARE_WHOLE = 1000 * 1000 * 1000,
    HOT_MAX = 200, /* functions that are in the table even if all their frames are too narrow */
};

uint64_t
uprof_picture_scale(uint64_t weight, uint64_t whole, uint64_t width)
{
    return whole > 0 ? (uint64_t)((unsigned __int128)weight * width / whole) : 0;
}

/* Returns: the larger width of both profiles; of one profile, the weight */
static uint64_t
measure_width(const UprofTree *tree, uint32_t i)
{
    const UprofTreeNode *node = uprof_tree_node(tree, i);
    const UprofTreeNode *top = uprof_tree_node(tree, 0);
    uint64_t widest = 0;

    if (!tree->compares)
        return node->total[UPROF_NEW];
    for (unsigned side = 0; side < UPROF_N_SIDES; side++)
        widest = MAX(widest, uprof_picture_scale(node->total[side], top->total[side], SHARE_WHOLE));
    return widest;
}

static int
compare_widths(const void *a, const void *b, void *tree)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    const uint64_t width = measure_width(tree, one), other_width = measure_width(tree, other);

    if (width != other_width)
        return UPROF_COMPARE(other_width, width);
    return UPROF_COMPARE(one, other); /* callers before callees */
}

/* Returns: bytes of the escaped name: '&' is "&amp;" */
static size_t
measure_name(const UprofName *name)
{
    size_t bytes = 0;

    for (const char *c = uprof_name_text(name); *c; c++)
        bytes += strchr("&<>\"'", *c) ? strlen("&quot;") : 1;
    return bytes;
}

/* The names of a table that is being filled */
typedef struct {
    GHashTable *names; /* UprofName -> its index, plus 1 */
    GPtrArray *list;
    size_t bytes; /* of frames and names */
} Choice;

/* Returns: index of the name */
static uint32_t
choose_name(Choice *choice, const UprofName *name)
{
    gpointer index = g_hash_table_lookup(choice->names, name);

    if (!index) {
        g_ptr_array_add(choice->list, (gpointer)name);
        index = GUINT_TO_POINTER(choice->list->len);
        g_hash_table_insert(choice->names, (gpointer)name, index);
        choice->bytes += measure_name(name) + strlen("a00A\n");
    }
    return GPOINTER_TO_UINT(index) - 1;
}

static int
compare_selves(const void *a, const void *b)
{
    const UprofChangeRow *one = a, *other = b;
    const uint64_t self = MAX(one->self[UPROF_NEW], one->self[UPROF_OLD]);
    const uint64_t other_self = MAX(other->self[UPROF_NEW], other->self[UPROF_OLD]);

    return self != other_self ? UPROF_COMPARE(other_self, self)
                              : strcmp(uprof_name_text(one->name), uprof_name_text(other->name));
}

/* A function can be hot in many frames that are all too narrow. */
static void
choose_hot_names(GArray *functions, Choice *choice)
{
    g_array_sort(functions, compare_selves);
    for (guint i = 0; i < functions->len && i < HOT_MAX; i++) {
        const UprofName *name = g_array_index(functions, UprofChangeRow, i).name;
        if (choice->bytes + measure_name(name) < UPROF_PICTURE_TABLE_BYTES / 2)
            choose_name(choice, name);
    }
}

/* Marks the widest nodes, as many as fit into the table. */
static void
choose_nodes(const UprofTree *tree, Choice *choice, bool *is_chosen)
{
    const guint n = tree->nodes->len;
    g_autofree uint32_t *order = g_new(uint32_t, n);

    for (guint i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), compare_widths, (void *)tree);
    for (guint i = 0; i < n; i++) {
        const UprofName *name = uprof_tree_node(tree, order[i])->name;
        choice->bytes += FRAME_TABLE_BYTES;
        if (!g_hash_table_contains(choice->names, name) && i > 0 &&
            choice->bytes + measure_name(name) > UPROF_PICTURE_TABLE_BYTES)
            return;
        if (choice->bytes > UPROF_PICTURE_TABLE_BYTES && i > 0)
            return;
        choose_name(choice, name);
        is_chosen[order[i]] = true;
    }
}

static void
add_frame(UprofPicture *picture, uint32_t node, uint32_t parent, Choice *choice)
{
    UprofPictureFrame frame = {
        .node = node,
        .parent = parent,
        .name = choose_name(choice, uprof_tree_node(picture->tree, node)->name),
    };

    memcpy(frame.rest, uprof_tree_node(picture->tree, node)->self, sizeof(frame.rest));
    g_array_append_val(picture->frames, frame);
}

/* The weight of a node that was not chosen counts in its nearest chosen caller. */
static void
hide_node(UprofPictureFrame *frame, const UprofTreeNode *node)
{
    for (unsigned side = 0; side < UPROF_N_SIDES; side++) {
        frame->rest[side] += node->total[side];
        frame->hidden[side] += node->total[side];
    }
}

static void
collect_frames(UprofPicture *picture, const bool *is_chosen, Choice *choice)
{
    const UprofTree *tree = picture->tree;
    g_autofree uint32_t *frames = g_new(uint32_t, tree->nodes->len); /* node -> frame */

    for (uint32_t i = 0; i < tree->nodes->len;) {
        const UprofTreeNode *node = uprof_tree_node(tree, i);
        const uint32_t parent = i > 0 ? frames[node->parent] : 0;
        if (!is_chosen[i]) {
            hide_node(&g_array_index(picture->frames, UprofPictureFrame, parent), node);
            i = node->end;
            continue;
        }
        frames[i] = picture->frames->len;
        add_frame(picture, i, parent, choice);
        i++;
    }
}

static int
compare_names(const void *a, const void *b, void *names)
{
    const guint one = *(const guint *)a, other = *(const guint *)b;
    const int order = strcmp(uprof_name_text(g_ptr_array_index((GPtrArray *)names, one)),
                             uprof_name_text(g_ptr_array_index((GPtrArray *)names, other)));

    return order != 0 ? order : UPROF_COMPARE(one, other);
}

/* Sorts the names, so that neighbors have many letters in common. */
static void
sort_names(UprofPicture *picture)
{
    const guint n = picture->names->len;
    GPtrArray *sorted = g_ptr_array_sized_new(n);
    g_autofree guint *order = g_new(guint, n), *rank = g_new(guint, n);

    for (guint i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), compare_names, picture->names);
    for (guint i = 0; i < n; i++) {
        rank[order[i]] = i;
        g_ptr_array_add(sorted, g_ptr_array_index(picture->names, order[i]));
    }
    for (guint i = 0; i < picture->frames->len; i++) {
        UprofPictureFrame *frame = &g_array_index(picture->frames, UprofPictureFrame, i);
        frame->name = rank[frame->name];
    }
    g_ptr_array_unref(picture->names);
    picture->names = sorted;
}

static void
sum_functions(UprofPicture *picture, const GArray *functions)
{
    g_autoptr(GHashTable) rows = g_hash_table_new(NULL, NULL);

    for (guint i = 0; i < functions->len; i++) {
        const UprofChangeRow *row = &g_array_index(functions, UprofChangeRow, i);
        g_hash_table_insert(rows, (gpointer)row->name, (gpointer)row);
    }
    for (guint i = 0; i < picture->names->len; i++) {
        const UprofChangeRow *row = g_hash_table_lookup(rows, g_ptr_array_index(picture->names, i));
        UprofPictureFunction function = { 0 };
        if (row) {
            memcpy(function.self, row->self, sizeof(function.self));
            memcpy(function.total, row->total, sizeof(function.total));
        }
        g_array_append_val(picture->functions, function);
    }
}

static void
lay_out_frames(UprofPicture *picture)
{
    g_autofree uint64_t *next = g_new0(uint64_t, picture->frames->len);

    for (guint i = 0; i < picture->frames->len; i++) {
        UprofPictureFrame *frame = &g_array_index(picture->frames, UprofPictureFrame, i);
        frame->left = i > 0 ? next[frame->parent] : 0;
        next[i] = frame->left;
        if (i > 0)
            next[frame->parent] += uprof_tree_node(picture->tree, frame->node)->total[UPROF_NEW];
    }
}

static int
compare_frames(const void *a, const void *b, void *data)
{
    const UprofPicture *picture = data;
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;
    const UprofPictureFrame *frames = (const UprofPictureFrame *)picture->frames->data;
    const uint64_t weight = uprof_tree_node(picture->tree, frames[one].node)->total[UPROF_NEW];
    const uint64_t other_weight =
        uprof_tree_node(picture->tree, frames[other].node)->total[UPROF_NEW];

    if (weight != other_weight)
        return UPROF_COMPARE(other_weight, weight);
    return UPROF_COMPARE(one, other);
}

/* Chooses the visible frames, widest first, up to the limit of bytes. */
static void
choose_drawn(UprofPicture *picture, uint64_t width)
{
    const uint64_t whole = uprof_tree_node(picture->tree, 0)->total[UPROF_NEW];
    UprofPictureFrame *frames = (UprofPictureFrame *)picture->frames->data;
    g_autofree uint32_t *order = g_new(uint32_t, picture->frames->len);
    size_t bytes = 0;
    guint n = 0;

    for (guint i = 0; i < picture->frames->len; i++) {
        const UprofTreeNode *node = uprof_tree_node(picture->tree, frames[i].node);
        if (uprof_picture_scale(node->total[UPROF_NEW], whole, width) >= UPROF_PICTURE_NARROW)
            order[n++] = i;
    }
    if (n == 0)
        return;
    qsort_r(order, n, sizeof(*order), compare_frames, picture);
    for (guint i = 0; i < n && i < UPROF_PICTURE_DRAWN_MAX; i++) {
        UprofPictureFrame *frame = &frames[order[i]];
        const UprofTreeNode *node = uprof_tree_node(picture->tree, frame->node);
        bytes += FRAME_DRAWN_BYTES + measure_name(node->name);
        if (bytes > UPROF_PICTURE_DRAWN_BYTES)
            return;
        frame->is_drawn = true;
        picture->n_drawn++;
        picture->depth = MAX(picture->depth, node->depth);
    }
}

static void
count_undrawn(UprofPicture *picture)
{
    for (guint i = 0; i < picture->frames->len; i++) {
        const UprofPictureFrame *frame = &g_array_index(picture->frames, UprofPictureFrame, i);
        picture->undrawn += frame->is_drawn ? frame->hidden[UPROF_NEW] : frame->rest[UPROF_NEW];
    }
}

/* Chooses the names and frames of the table. */
static void
choose_table(UprofPicture *picture)
{
    g_autofree bool *is_chosen = g_new0(bool, picture->tree->nodes->len);
    g_autoptr(GHashTable) names = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) functions = uprof_change_rows(picture->tree);
    Choice choice = { .names = names, .list = picture->names };

    choose_hot_names(functions, &choice);
    choose_nodes(picture->tree, &choice, is_chosen);
    collect_frames(picture, is_chosen, &choice);
    sort_names(picture);
    sum_functions(picture, functions);
}

UprofPicture *
uprof_picture_new(const UprofTree *tree, uint64_t width)
{
    UprofPicture *picture = g_new0(UprofPicture, 1);

    picture->tree = tree;
    picture->n_frames = tree->nodes->len;
    picture->frames = g_array_new(FALSE, FALSE, sizeof(UprofPictureFrame));
    picture->names = g_ptr_array_new();
    picture->functions = g_array_new(FALSE, FALSE, sizeof(UprofPictureFunction));
    choose_table(picture);
    lay_out_frames(picture);
    choose_drawn(picture, width);
    count_undrawn(picture);
    return picture;
}

void
uprof_picture_free(UprofPicture *picture)
{
    if (!picture)
        return;
    g_array_unref(picture->frames);
    g_ptr_array_unref(picture->names);
    g_array_unref(picture->functions);
    g_free(picture);
}
