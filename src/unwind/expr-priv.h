/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * expr-priv.h - a machine for the DWARF expressions of unwind tables
 *
 * DWARF 5, section 2.5, without operations that need debug information (frame base, types, pieces,
 * thread storage, other address spaces). The machine treats these operations, and unknown
 * operations, as malformed. The expression comes from a file and the memory from the guest, and
 * both may mean harm: stack and number of steps are bounded, and nothing is allocated.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_EXPR_STACK_MAX = 16,
    UPROF_EXPR_STEPS_MAX = 256,
};

/** UprofExprAnswer: the result of an expression */
typedef enum {
    UPROF_EXPR_OK,      /* there is a result */
    UPROF_EXPR_UNKNOWN, /* it needs a register with an unknown value */
    UPROF_EXPR_CUT,     /* it needs memory that was not copied */
    UPROF_EXPR_BAD,     /* it is malformed, or beyond a limit */
} UprofExprAnswer;

/** UprofExprOps: the reads of an expression; both functions are required */
typedef struct {
    /* @dwarf: the register's number in expressions. Returns: false if its value is unknown */
    bool (*read_reg)(void *data, uint64_t dwarf, uint64_t *value);
    /* @len: 1 to 8 bytes, in the guest's byte order. Returns: false if they were not copied */
    bool (*read_memory)(void *data, uint64_t gva, unsigned len, uint64_t *value);
} UprofExprOps;

/** UprofExpr: an expression and its surroundings */
typedef struct {
    UprofSlice code;    /* the operations; borrowed */
    uint8_t word_bytes; /* 4 or 8: size of an address, and of all values */
    bool big_endian;    /* byte order of numbers in @code */
    const UprofExprOps *ops;
    void *data; /* for @ops; borrowed */
} UprofExpr;

/**
 * uprof_expr_run:
 * @first: (nullable): the value on the stack at the start; %NULL: the stack is empty
 * @result: (out): the topmost value at the end; untouched if there is none
 */
UprofExprAnswer uprof_expr_run(const UprofExpr *expr, const uint64_t *first, uint64_t *result);
