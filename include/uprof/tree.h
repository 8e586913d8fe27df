/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tree.h - a profile laid out: every frame with what it weighs in all
 *
 * Frames stand in one array, each before those that it called, its callees in
 * byte order of their names: what lies below a frame is one piece of the array.
 * A tree may compare two profiles: then every frame has two weights.
 */
#pragma once

#include "uprof/profile.h"

/** UprofSide: of a comparison; a tree of one profile has %UPROF_NEW alone */
typedef enum { UPROF_NEW, UPROF_OLD, UPROF_N_SIDES } UprofSide;

/**
 * UprofTreeNode:
 * @parent: index of its caller; of the first node, its own
 * @end: index behind the last frame below it
 * @depth: 0 for the first node
 * @self: weight of stacks that end here
 * @total: of all that go through
 */
typedef struct {
    const UprofName *name;
    uint32_t parent;
    uint32_t end;
    uint32_t depth;
    uint64_t self[UPROF_N_SIDES];
    uint64_t total[UPROF_N_SIDES];
} UprofTreeNode;

/**
 * UprofTree:
 * @nodes: of UprofTreeNode; never empty: the first is the root, or stands for
 *   all roots
 * @compares: whether there are two sides
 * @is_made_up: whether the first node is no frame of the stacks
 */
typedef struct {
    GArray *nodes;
    bool compares;
    bool is_made_up;
} UprofTree;

/** uprof_tree_new: Returns: (transfer full): with the profile's names */
UprofTree *uprof_tree_new(const UprofProfile *profile);

/** uprof_tree_new_rootless: the same, with the profile's root as a frame like others */
UprofTree *uprof_tree_new_rootless(const UprofProfile *profile);

/**
 * uprof_tree_has_callee: Returns: whether a frame called @name stands right under
 *   the first node
 */
bool uprof_tree_has_callee(const UprofTree *tree, const UprofName *name);

void uprof_tree_free(UprofTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofTree, uprof_tree_free)

/**
 * uprof_tree_compare:
 * @old, @new: with names from one table
 *
 * First nodes count as the same frame whatever they are called.
 *
 * Returns: (transfer full): both in one
 */
UprofTree *uprof_tree_compare(const UprofTree *old, const UprofTree *new);

/** uprof_tree_node: Returns: (transfer none): node @i */
static inline UprofTreeNode *
uprof_tree_node(const UprofTree *tree, uint32_t i)
{
    return &g_array_index(tree->nodes, UprofTreeNode, i);
}
