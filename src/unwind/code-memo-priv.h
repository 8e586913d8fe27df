/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-memo-priv.h - results of walks over code, by address
 *
 * Each address has some slots, which it shares with other addresses. The addresses that were used
 * last keep their slots. A slot takes memory only after it was used. Facts about code of a file
 * stay for a minute. Facts about other code stay for some seconds, because that code may be
 * replaced. All times are those of the snapshots.
 */
#pragma once

#include "code-walk-priv.h"

/** UprofCodeKey: a place in code */
typedef struct {
    uint64_t number; /* of uprof_code_text_key() */
    uint64_t start;  /* the same, of a function's start; 0 for facts */
    bool is_return;  /* the place is a return address */
    bool is_deep;    /* a long walk */
    uint8_t word_bytes;
} UprofCodeKey;

/** UprofCodeFacts: about frames at one address */
typedef struct {
    UprofCodeKey key;
    uint64_t until_ns; /* of the snapshots' time */
    uint64_t used;     /* number of the last use */
    UprofCodeRole role;
    bool is_new;          /* nothing is known yet */
    bool is_walked_far;   /* the long walk ahead was done */
    bool is_long;         /* the first walk ahead had more to follow */
    bool has_jump;        /* the walk ahead met a jump that it cannot follow */
    bool has_other_exit;  /* the code may go back to another stack */
    UprofValue jump_sp;   /* the stack pointer at that jump */
    bool is_entry;        /* the image begins to run in the function, which nothing has called */
    bool has_start;       /* the way from the function's start is known */
    bool is_fresh_stack;  /* that way begins a stack */
    bool is_zero_fp;      /* the function's first instructions clear the frame pointer */
    uint8_t n_failures;   /* searches that have found neither a caller nor the end of the stack */
    bool is_cut;          /* the last search has met slots beyond the copied part of the stack */
    uint8_t n_searches;   /* that have found no caller */
    uint64_t search_ns;   /* the earliest time of the next search */
    uint8_t age;          /* how many runs have used these facts before */
    uint64_t first_start; /* the function's likely start, by the last search; 0: unknown */
    uint8_t n_rules;
    UprofCodeRule *rules; /* owned; the first one that fits a frame is right */
} UprofCodeFacts;

typedef struct _UprofCodeMemo UprofCodeMemo;

UprofCodeMemo *uprof_code_memo_new(void);
void uprof_code_memo_free(UprofCodeMemo *memo);

/** uprof_code_memo_visit: calls @visit for all facts */
void uprof_code_memo_visit(const UprofCodeMemo *memo,
                           void (*visit)(const UprofCodeFacts *facts, void *data), void *data);

/** uprof_code_memo_forget: drops everything */
void uprof_code_memo_forget(UprofCodeMemo *memo);

/**
 * uprof_code_memo_facts:
 * @is_file: the code is of a known file
 *
 * Returns: the facts; borrowed until the next call
 */
UprofCodeFacts *
uprof_code_memo_facts(UprofCodeMemo *memo, const UprofCodeKey *key, uint64_t now_ns, bool is_file);

/** uprof_code_facts_clear: as if nothing were known */
void uprof_code_facts_clear(UprofCodeFacts *facts);

/** uprof_code_facts_add: a rule that leads to the same slot is not added again */
void uprof_code_facts_add(UprofCodeFacts *facts, const UprofCodeRule *rule);

/**
 * uprof_code_memo_reach:
 * @is_known: (out): the result is valid; else the caller fills it
 *
 * Returns: borrowed until the next call
 */
UprofCodeReach *uprof_code_memo_reach(UprofCodeMemo *memo, const UprofCodeKey *key, uint64_t now_ns,
                                      bool is_file, bool *is_known);

/** uprof_code_memo_drop_reach: the caller could not fill the last result */
void uprof_code_memo_drop_reach(UprofCodeMemo *memo);
