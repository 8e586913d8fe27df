/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * python-merge-priv.h - puts the functions of Python into a stack, in place of the interpreter's
 * frames
 */
#pragma once

#include "uprof/runtimes.h"
#include "uprof/stack.h"

/** UprofPythonMerge: where functions of Python belong in a stack */
typedef struct _UprofPythonMerge {
    UprofPythonFrame frames[UPROF_PYTHON_FRAMES_MAX]; /* the innermost one comes first */
    unsigned n;
    bool is_cut; /* the outermost functions are missing */
    /* by frame of the stack: the first of @frames that the frame runs, and how many it runs */
    uint16_t first[UPROF_DEPTH_MAX];
    uint16_t count[UPROF_DEPTH_MAX];
    /* the frame of the stack that runs the innermost function: it and its callers in the
     * interpreter are not shown */
    unsigned innermost;
} UprofPythonMerge;

/**
 * uprof_python_merge_find:
 * @with_lines: names include the line
 * @merge: (out): undefined if false is returned
 *
 * Returns: false if the thread runs no Python that is known
 */
bool uprof_python_merge_find(UprofRuntimes *runtimes, const UprofStack *stack, bool with_lines,
                             UprofPythonMerge *merge);

/** uprof_python_merge_hides: is frame @i of @stack one of the interpreter that functions replace?
 */
bool uprof_python_merge_hides(UprofRuntimes *runtimes, const UprofPythonMerge *merge,
                              const UprofStack *stack, unsigned i);
