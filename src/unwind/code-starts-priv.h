/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-starts-priv.h - where functions may begin, without symbols
 */
#pragma once

#include "code-text-priv.h"

enum { UPROF_STARTS_BLOCK_BYTES = UPROF_PAGE_BYTES };

/** UprofStartKind: the places that a search finds */
typedef enum {
    UPROF_START_ALIGNED,  /* aligned, with a prologue in the first instructions */
    UPROF_START_ANYWHERE, /* not aligned; the first instruction is one of a prologue */
} UprofStartKind;

/** UprofCodeStarts: a search downwards */
typedef struct {
    UprofCodeText *text; /* borrowed */
    unsigned word_bytes;
    UprofStartKind kind;
    uint64_t at, lowest; /* the next address to look at, and the last one */
    /* The page of @at, with the bytes before it. 0: none */
    uint64_t block;
    uint8_t bytes[UPROF_X86_INSN_BYTES_MAX + 1 + UPROF_STARTS_BLOCK_BYTES];
} UprofCodeStarts;

/** uprof_code_starts_begin: @pc: the highest start that may be found */
void uprof_code_starts_begin(UprofCodeStarts *starts, UprofCodeText *text, UprofStartKind kind,
                             uint64_t pc, unsigned word_bytes);

/** uprof_code_starts_next: @start: (out). Returns: false if there is no other one nearby */
bool uprof_code_starts_next(UprofCodeStarts *starts, uint64_t *start);

/** uprof_code_makes_record: does the function at @start set the frame pointer to its stack? */
bool uprof_code_makes_record(UprofCodeText *text, uint64_t start);
