/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * local-labels-priv.h - drops labels of assembly code that are parts of functions
 *
 * An assembler makes a symbol of each label, also of the target of a branch in a function. Such a
 * label would give its own name to the function's code behind it, and hide where the function
 * begins. A label is part of a function
 *
 * - whose size covers the label, or
 * - which has no size and comes before the label, if the function's code up to the label goes on to
 *   the label or branches there, and nothing calls the label.
 *
 * All other labels may be functions whose author has left out the type.
 */
#pragma once

#include "symbol-table-priv.h"

enum {
    UPROF_LABEL_REACH_BYTES_MAX = 64 * 1024, /* from a function without a size to its last label */
    UPROF_LABEL_CODE_BYTES_MAX = 16 * 1024 * 1024, /* read for the labels of an image */
};

/**
 * uprof_local_labels_drop: removes labels that are part of a function
 * @symbols: (inout): of UprofSymbol, in any order; the order of the others stays
 * @ranges: of UprofCodeRange, sorted, with their bytes
 * @word_bytes: 8 or 4: for x86 code of 64 or 32 bits; 0: for other code, which this function cannot
 * read
 * @targets: (inout): of uprof_call_targets_find() for @ranges; %NULL: found if it is needed
 */
void uprof_local_labels_drop(GArray *symbols, const GArray *ranges, unsigned word_bytes,
                             GArray **targets);
