/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "picture-priv.h"

#include "uprof/sorted.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAME_TABLE_BYTES = 9, /* of a row, without its name */
    FRAME_DRAWN_BYTES = 150,
    SHARE_WHOLE = 1000 * 1000 * 1000,
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
    return one < other ? -1 : 1; /* callers before callees */
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

/* Marks the widest nodes, as many as fit into the table. */
static void
choose_nodes(const UprofTree *tree, bool *is_chosen)
{
    const guint n = tree->nodes->len;
    g_autofree uint32_t *order = g_new(uint32_t, n);
    g_autoptr(GHashTable) names = g_hash_table_new(NULL, NULL);
    size_t bytes = 0;

    for (guint i = 0; i < n; i++)
        order[i] = i;
    qsort_r(order, n, sizeof(*order), compare_widths, (void *)tree);
    for (guint i = 0; i < n; i++) {
        const UprofName *name = uprof_tree_node(tree, order[i])->name;
        bytes += FRAME_TABLE_BYTES;
        if (g_hash_table_add(names, (gpointer)name))
            bytes += measure_name(name) + strlen("a00\n");
        if (bytes > UPROF_PICTURE_TABLE_BYTES && i > 0)
            return;
        is_chosen[order[i]] = true;
    }
}

static void
add_frame(UprofPicture *picture, uint32_t node, uint32_t parent, GHashTable *names)
{
    const UprofName *name = uprof_tree_node(picture->tree, node)->name;
    UprofPictureFrame frame = { .node = node, .parent = parent };
    gpointer index;

    if (!g_hash_table_lookup_extended(names, name, NULL, &index)) {
        index = GUINT_TO_POINTER(picture->names->len);
        g_hash_table_insert(names, (gpointer)name, index);
        g_ptr_array_add(picture->names, (gpointer)name);
    }
    frame.name = GPOINTER_TO_UINT(index);
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
collect_frames(UprofPicture *picture, const bool *is_chosen)
{
    const UprofTree *tree = picture->tree;
    g_autoptr(GHashTable) names = g_hash_table_new(NULL, NULL);
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
        add_frame(picture, i, parent, names);
        i++;
    }
}

static void
place_frames(UprofPicture *picture)
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
    return one < other ? -1 : 1;
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

UprofPicture *
uprof_picture_new(const UprofTree *tree, uint64_t width)
{
    UprofPicture *picture = g_new0(UprofPicture, 1);
    g_autofree bool *is_chosen = g_new0(bool, tree->nodes->len);

    picture->tree = tree;
    picture->n_frames = tree->nodes->len;
    picture->frames = g_array_new(FALSE, FALSE, sizeof(UprofPictureFrame));
    picture->names = g_ptr_array_new();
    choose_nodes(tree, is_chosen);
    collect_frames(picture, is_chosen);
    place_frames(picture);
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
    g_free(picture);
}
