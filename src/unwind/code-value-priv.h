/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-value-priv.h - a value in terms of a frame's registers and of words in memory
 */
#pragma once

#include "unwind-context-priv.h"
#include "uprof/code-rule.h"

/** uprof_value_of: Returns: the value of @base */
UprofValue uprof_value_of(unsigned base);

/** uprof_value_add: Returns: @value + @offset; unknown if an offset gets too large */
UprofValue uprof_value_add(UprofValue value, int64_t offset);

/** uprof_value_load: Returns: the word at @value; unknown after too many loads */
UprofValue uprof_value_load(UprofValue value);

/** uprof_value_is_same: are both the same value? Unknown values are not. */
bool uprof_value_is_same(const UprofValue *one, const UprofValue *other);

/** uprof_value_is_offset: is it @base plus a constant? */
bool uprof_value_is_offset(const UprofValue *value, unsigned base);

/** uprof_value_is_reg: is it the unchanged value of @reg? */
bool uprof_value_is_reg(const UprofValue *value, unsigned reg);

/** uprof_value_hash: Returns: equal numbers for the same values */
uint64_t uprof_value_hash(const UprofValue *value);

/** UprofEvaluation: a value of a frame */
typedef enum {
    UPROF_EVALUATED,
    UPROF_NOT_COPIED,    /* a word was not copied from the guest */
    UPROF_NOT_EVALUATED, /* it depends on an unknown register */
} UprofEvaluation;

/** uprof_value_find: @result: (out): the value in the frame of @cursor */
UprofEvaluation uprof_value_find(const UprofUnwindContext *context, const UprofCursor *cursor,
                                 const UprofValue *value, uint64_t *result);
