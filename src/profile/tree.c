/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/tree.h"

#include <string.h>

static UprofTree *
new_tree(guint n_reserved)
{
    UprofTree *tree = g_new0(UprofTree, 1);

    tree->nodes = g_array_sized_new(FALSE, FALSE, sizeof(UprofTreeNode), n_reserved);
    return tree;
}

void
uprof_tree_free(UprofTree *tree)
{
    if (!tree)
        return;
    g_array_unref(tree->nodes);
    g_free(tree);
}

static uint32_t
append_node(UprofTree *tree, const UprofName *name, uint32_t parent)
{
    const uint32_t at = tree->nodes->len;
    const UprofTreeNode node = {
        .name = name,
        .parent = parent,
        .end = at + 1,
        .depth = at > 0 ? uprof_tree_node(tree, parent)->depth + 1 : 0,
    };

    g_array_append_val(tree->nodes, node);
    return at;
}

/* Sums from the last frame to the first, because callees stand after their callers. */
static void
sum_up(UprofTree *tree)
{
    for (guint i = 0; i < tree->nodes->len; i++) {
        UprofTreeNode *node = uprof_tree_node(tree, i);
        memcpy(node->total, node->self, sizeof(node->total));
        node->end = i + 1;
    }
    for (guint i = tree->nodes->len; i-- > 1;) {
        const UprofTreeNode *node = uprof_tree_node(tree, i);
        UprofTreeNode *parent = uprof_tree_node(tree, node->parent);
        for (unsigned side = 0; side < UPROF_N_SIDES; side++)
            parent->total[side] += node->total[side];
        parent->end = MAX(parent->end, node->end);
    }
}

typedef struct {
    UprofTree *tree;
    uint32_t path[UPROF_PROFILE_DEPTH_MAX + 1]; /* nodes of the previous stack, root first */
    unsigned n;
} Building;

/* Stacks are sorted, so a stack shares only its first frames with the previous one. */
static void
add_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Building *building = data;
    UprofTree *tree = building->tree;
    const unsigned first = tree->is_made_up ? 1 : 0; /* index of frames[0] in the path */
    unsigned same = 1;

    while (same < building->n && same - first < n &&
           uprof_tree_node(tree, building->path[same])->name == frames[same - first])
        same++;
    for (; same - first < n; same++)
        building->path[same] = append_node(tree, frames[same - first], building->path[same - 1]);
    building->n = n + first;
    uprof_tree_node(tree, building->path[building->n - 1])->self[UPROF_NEW] += weight;
}

static UprofTree *
build_tree(const UprofProfile *profile, const UprofName *root)
{
    UprofNames *names = uprof_profile_names(profile);
    g_autofree Building *building = g_new0(Building, 1);
    UprofTree *tree = new_tree(1024);

    tree->is_made_up = !root;
    append_node(tree, root ? root : uprof_names_marker(names, "all"), 0);
    building->tree = tree;
    building->n = 1;
    uprof_profile_walk(profile, add_stack, building);
    sum_up(tree);
    return tree;
}

UprofTree *
uprof_tree_new(const UprofProfile *profile)
{
    return build_tree(profile, uprof_profile_root(profile));
}

UprofTree *
uprof_tree_new_rootless(const UprofProfile *profile)
{
    return build_tree(profile, NULL);
}

bool
uprof_tree_has_callee(const UprofTree *tree, const UprofName *name)
{
    for (uint32_t i = 1; i < tree->nodes->len; i = uprof_tree_node(tree, i)->end)
        if (uprof_tree_node(tree, i)->name == name)
            return true;
    return false;
}

static const UprofName *
name_at(const UprofTree *tree, uint32_t at, uint32_t end)
{
    return at < end ? uprof_tree_node(tree, at)->name : NULL;
}

/* Compares names by byte order. A missing name (NULL) comes last. */
static int
compare_names(const UprofName *one, const UprofName *other)
{
    if (one == other)
        return 0;
    if (!one || !other)
        return one ? -1 : 1;
    return strcmp(uprof_name_text(one), uprof_name_text(other));
}

/* A position in two trees that are walked together. A side without the frame is at its end. */
typedef struct {
    uint32_t at[UPROF_N_SIDES];
    uint32_t end[UPROF_N_SIDES];
    uint32_t parent;
} Pair;

/* Finds the next callee of either side, and moves each side that has it. */
static bool
take_callee(const UprofTree *const *sides, Pair *pair, UprofTree *both, Pair *below)
{
    const UprofName *one = name_at(sides[0], pair->at[0], pair->end[0]);
    const UprofName *other = name_at(sides[1], pair->at[1], pair->end[1]);
    const int order = compare_names(one, other);

    if (!one && !other)
        return false;
    *below = (Pair){ .parent = append_node(both, order <= 0 ? one : other, pair->parent) };
    for (unsigned side = 0; side < UPROF_N_SIDES; side++) {
        if (side == 0 ? order > 0 : order < 0)
            continue;
        const UprofTreeNode *node = uprof_tree_node(sides[side], pair->at[side]);
        uprof_tree_node(both, below->parent)->self[side] = node->self[UPROF_NEW];
        below->at[side] = pair->at[side] + 1;
        below->end[side] = node->end;
        pair->at[side] = node->end;
    }
    return true;
}

UprofTree *
uprof_tree_compare(const UprofTree *old, const UprofTree *new)
{
    const UprofTree *const sides[UPROF_N_SIDES] = { [UPROF_NEW] = new, [UPROF_OLD] = old };
    g_autofree Pair *todo = g_new(Pair, UPROF_PROFILE_DEPTH_MAX + 2);
    UprofTree *both = new_tree(new->nodes->len);
    unsigned n = 1;

    both->compares = true;
    both->is_made_up = new->is_made_up;
    append_node(both, uprof_tree_node(new, 0)->name, 0);
    todo[0] = (Pair){ .parent = 0 };
    for (unsigned side = 0; side < UPROF_N_SIDES; side++) {
        const UprofTreeNode *top = uprof_tree_node(sides[side], 0);
        uprof_tree_node(both, 0)->self[side] = top->self[UPROF_NEW];
        todo[0].at[side] = 1;
        todo[0].end[side] = top->end;
    }
    while (n > 0) {
        if (take_callee(sides, &todo[n - 1], both, &todo[n]))
            n++;
        else
            n--;
    }
    sum_up(both);
    return both;
}
