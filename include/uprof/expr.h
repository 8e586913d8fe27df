/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * expr.h - a machine for DWARF expressions, as unwind tables have them
 *
 * DWARF 5, section 2.5, without what needs debug information (frame base,
 * types, pieces, thread storage, other address spaces): those operations are
 * bad, as unknown ones are. The file wrote the expression and the guest the
 * memory it reads, and both may have meant harm: the stack is small, and so is
 * the number of steps; nothing is allocated.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_EXPR_STACK_MAX = 16,
    UPROF_EXPR_STEPS_MAX = 256,
};

/**
 * UprofExprAnswer:
 * @UPROF_EXPR_OK: there is a result
 * @UPROF_EXPR_UNKNOWN: a register is wanted that is not known
 * @UPROF_EXPR_CUT: memory is wanted that was not copied
 * @UPROF_EXPR_BAD: no proper expression, or beyond a limit
 */
typedef enum {
    UPROF_EXPR_OK,
    UPROF_EXPR_UNKNOWN,
    UPROF_EXPR_CUT,
    UPROF_EXPR_BAD,
} UprofExprAnswer;

/** UprofExprOps: what an expression may ask; both must be there */
typedef struct {
    /* @dwarf: as the expression numbers it. Returns: false if it is not known */
    bool (*read_reg)(void *data, uint64_t dwarf, uint64_t *value);
    /* @len: 1 to 8 bytes, a number in the guest's byte order. Returns: false if not there */
    bool (*read_memory)(void *data, uint64_t gva, unsigned len, uint64_t *value);
} UprofExprOps;

/**
 * UprofExpr:
 * @code: the operations, borrowed
 * @word_bytes: 4 or 8: the size of an address, of which all numbers are
 * @big_endian: byte order of the numbers in @code
 * @ops: borrowed
 * @data: for @ops
 */
typedef struct {
    UprofSlice code;
    uint8_t word_bytes;
    bool big_endian;
    const UprofExprOps *ops;
    void *data; /* borrowed */
} UprofExpr;

/**
 * uprof_expr_run:
 * @first: (nullable): a value that is on the stack at first; %NULL: it is empty
 * @result: (out): the value on top at the end; untouched unless there is one
 */
UprofExprAnswer uprof_expr_run(const UprofExpr *expr, const uint64_t *first, uint64_t *result);
