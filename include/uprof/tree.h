/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * tree.h - all frames of a profile with their weights, in order
 *
 * Frames stand in one array, callers before their callees, and callees in byte order of
 * their names. So all frames below a frame are contiguous in the array. A tree can compare
 * two profiles: each frame then has two weights.
 */
#pragma once

#include "uprof/profile.h"

/** UprofSide: a side of a comparison; a tree of one profile has only %UPROF_NEW */
typedef enum { UPROF_NEW, UPROF_OLD, UPROF_N_SIDES } UprofSide;

/** UprofTreeNode: a frame with all its callers */
typedef struct {
    const UprofName *name;         /* borrowed */
    uint32_t parent;               /* index of the caller; the first node is its own parent */
    uint32_t end;                  /* index after the last frame below this one */
    uint32_t depth;                /* 0 for the first node */
    uint64_t self[UPROF_N_SIDES];  /* weight of stacks that end here */
    uint64_t total[UPROF_N_SIDES]; /* weight of all stacks through this frame */
} UprofTreeNode;

/** UprofTree: one profile, or two that are compared */
typedef struct {
    GArray *nodes;   /* (element-type UprofTreeNode): owned; the first is the root */
    bool compares;   /* has two sides */
    bool is_made_up; /* the root is not a frame of the stacks, but a parent for several roots */
} UprofTree;

/** uprof_tree_new: Returns: (transfer full): a tree that borrows the names of @profile */
UprofTree *uprof_tree_new(const UprofProfile *profile);

/** uprof_tree_new_rootless: as uprof_tree_new(), with the root of the profile as an ordinary frame
 */
UprofTree *uprof_tree_new_rootless(const UprofProfile *profile);

/** uprof_tree_has_callee: is a frame called @name directly below the root? */
bool uprof_tree_has_callee(const UprofTree *tree, const UprofName *name);

void uprof_tree_free(UprofTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofTree, uprof_tree_free)

/**
 * uprof_tree_compare:
 * @old, @new: with names of one table
 *
 * The two roots count as the same frame, even if their names differ.
 *
 * Returns: (transfer full): a tree with all frames of both
 */
UprofTree *uprof_tree_compare(const UprofTree *old, const UprofTree *new);

/** uprof_tree_node: Returns: (transfer none): node @i */
static inline UprofTreeNode *
uprof_tree_node(const UprofTree *tree, uint32_t i)
{
    return &g_array_index(tree->nodes, UprofTreeNode, i);
}
