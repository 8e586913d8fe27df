/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * picture-priv.h - chooses the frames of a flame graph, and their positions
 *
 * The widest frames are chosen, up to a number that a browser can handle. The chosen frames
 * stand in a table of the file, which the script draws. The chosen frames that are
 * visible without zooming are also drawn in the file itself.
 */
#pragma once

#include "uprof/tree.h"

enum {
    UPROF_PICTURE_TABLE_BYTES = 800 * 1000, /* of the table of frames, with their complete names */
    UPROF_PICTURE_DRAWN_BYTES = 800 * 1000, /* of the frames that are drawn */
    UPROF_PICTURE_DRAWN_MAX = 5000,
    UPROF_PICTURE_NARROW = 5, /* tenths of a pixel; narrower frames are not drawn */
};

/** UprofPictureFrame: a chosen frame; arrays have one value for each UprofSide */
typedef struct {
    uint32_t node;                  /* index in the tree */
    uint32_t parent;                /* index of the caller; the first frame is its own parent */
    uint32_t name;                  /* index in UprofPicture.names */
    uint64_t left;                  /* weight of the frames beside it on the left */
    uint64_t rest[UPROF_N_SIDES];   /* weight of stacks that end here, with @hidden */
    uint64_t hidden[UPROF_N_SIDES]; /* weight of stacks that end in frames above it that were not
                                     * chosen */
    bool is_drawn;                  /* stands in the picture, not only in the table */
} UprofPictureFrame;

/** UprofPictureFunction: weights of a function in all frames, chosen or not */
typedef struct {
    uint64_t self[UPROF_N_SIDES];  /* of stacks that end in the function */
    uint64_t total[UPROF_N_SIDES]; /* of stacks that contain the function */
} UprofPictureFunction;

/** UprofPicture: the chosen frames of a tree */
typedef struct {
    const UprofTree *tree; /* borrowed */
    GArray *frames;        /* (element-type UprofPictureFrame): owned; callers before callees */
    GPtrArray *names;  /* (element-type UprofName): owned; the names of @frames and of the hottest
                          functions, sorted */
    GArray *functions; /* (element-type UprofPictureFunction): owned; of @names */
    uint32_t n_drawn;
    uint32_t n_frames; /* of the tree */
    uint64_t undrawn;  /* weight of stacks that end in frames that are not drawn */
    uint32_t depth;    /* of the deepest frame that is drawn */
} UprofPicture;

/** uprof_picture_new: @width: tenths of a pixel; @tree: borrowed */
UprofPicture *uprof_picture_new(const UprofTree *tree, uint64_t width);
void uprof_picture_free(UprofPicture *picture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPicture, uprof_picture_free)

/** uprof_picture_scale: Returns: @weight of @whole as a share of @width, rounded down */
uint64_t uprof_picture_scale(uint64_t weight, uint64_t whole, uint64_t width);
