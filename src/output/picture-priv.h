/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * picture-priv.h - which frames of a tree a flame graph shows, and where
 *
 * Wide frames go first, until there are so many that a browser would be slow or
 * the file large. Those that may be looked at travel in a table; those that are
 * also seen without zooming are drawn.
 */
#pragma once

#include "uprof/tree.h"

enum {
    UPROF_PICTURE_TABLE_BYTES = 2000 * 1000, /* of all frames that travel, names among them */
    UPROF_PICTURE_DRAWN_BYTES = 800 * 1000,  /* of those that are drawn */
    UPROF_PICTURE_DRAWN_MAX = 5000,
    UPROF_PICTURE_NARROW = 5, /* what is narrower is not drawn; tenths of a pixel */
};

/**
 * UprofPictureFrame:
 * @node: in the tree
 * @parent: in the array of these; of the first its own
 * @name: in the array of names
 * @left: weight of what stands beside it on the left
 * @rest: by side, weight of stacks that end here, or in frames that do not travel
 * @hidden: by side, the latter alone
 */
typedef struct {
    uint32_t node;
    uint32_t parent;
    uint32_t name;
    uint64_t left;
    uint64_t rest[UPROF_N_SIDES];
    uint64_t hidden[UPROF_N_SIDES];
    bool is_drawn;
} UprofPictureFrame;

/**
 * UprofPicture:
 * @frames: of UprofPictureFrame, callers before callees
 * @names: of UprofName *: each that travels, once
 * @n_drawn, @n_frames: frames drawn, and of the tree in all
 * @undrawn: weight of stacks that end in frames that are not drawn
 * @depth: of the deepest frame that is drawn
 */
typedef struct {
    const UprofTree *tree;
    GArray *frames;
    GPtrArray *names;
    uint32_t n_drawn;
    uint32_t n_frames;
    uint64_t undrawn;
    uint32_t depth;
} UprofPicture;

/** uprof_picture_new: @width: tenths of a pixel; @tree: borrowed */
UprofPicture *uprof_picture_new(const UprofTree *tree, uint64_t width);
void uprof_picture_free(UprofPicture *picture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPicture, uprof_picture_free)

/** uprof_picture_scale: Returns: @weight of @whole as a share of @width, rounded down */
uint64_t uprof_picture_scale(uint64_t weight, uint64_t whole, uint64_t width);
