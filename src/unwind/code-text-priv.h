/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code-text-priv.h - the guest's code by address: bytes, instructions, and the work for them
 *
 * Code is read in complete pages, which are kept for some seconds. A page that cannot be read, or
 * where no code may run, is missing.
 *
 * Walks and searches cost units of work. A sample and a second of the snapshots' time have a
 * limited number of units, so that hostile code cannot take the processor, and a replay does the
 * same work. A look at a single place is not refused, but pages that must be read cost units, too.
 */
#pragma once

#include "call-insn-priv.h"
#include "uprof/x86-insn.h"

enum {
    UPROF_TEXT_RESERVE_OF_SEARCH = 100 * 1000,
    UPROF_TEXT_RESERVE_OF_LONG_SEARCH = 500 * 1000,
    UPROF_TEXT_WORK_OF_SAMPLE = 200 * 1000,   /* units; an instruction costs one */
    UPROF_TEXT_RESERVE_OF_SAMPLE = 50 * 1000, /* for the frames behind a long search */
    UPROF_TEXT_WORK_OF_SECOND = 250 * 1000,   /* added each second */
    UPROF_TEXT_WORK_MAX = 4 * 1000 * 1000,    /* saved up, for a start with new code */
    UPROF_TEXT_WORK_OF_PAGE = 100,            /* to read it */
    UPROF_TEXT_WORK_OF_CHECK = 10,            /* to compare it with what is known */
    UPROF_TEXT_WORK_OF_WORD = 1,              /* to look at a word of the stack */
};

typedef struct _UprofCodeText UprofCodeText;

UprofCodeText *uprof_code_text_new(void);
void uprof_code_text_free(UprofCodeText *text);

/**
 * uprof_code_text_begin: call it before each stack
 * @context: borrowed until the next call
 */
void uprof_code_text_begin(UprofCodeText *text, const UprofUnwindContext *context);

/** uprof_code_text_forget: drops all pages and instructions */
void uprof_code_text_forget(UprofCodeText *text);

/** uprof_code_text_set_frame: @regs: borrowed until the next call; of the frame to unwind */
void uprof_code_text_set_frame(UprofCodeText *text, const UprofRegs *regs);

/** uprof_code_text_word_bytes: Returns: of the frame's mode */
unsigned uprof_code_text_word_bytes(const UprofCodeText *text);

/**
 * uprof_code_text_set_reserve: @reserve: units of the saved ones that stay for other work; up to
 * %UPROF_TEXT_RESERVE_OF_SAMPLE of the sample's units stay, too
 *
 * Long searches leave enough for the frames that need only short ones.
 */
void uprof_code_text_set_reserve(UprofCodeText *text, unsigned reserve);

/** uprof_code_text_spend: Returns: false if less than @work units are left */
bool uprof_code_text_spend(UprofCodeText *text, unsigned work);

/** uprof_code_text_is_spent: has work been refused, or a page not been read, for this stack? */
bool uprof_code_text_is_spent(const UprofCodeText *text);

/**
 * uprof_code_text_refresh: drops what is known of the page of @pc if the guest has other bytes
 * there now, because code was generated. A page is compared once in a millisecond.
 */
void uprof_code_text_refresh(UprofCodeText *text, uint64_t pc);

/** uprof_code_text_is_code: is there readable code at @pc? */
bool uprof_code_text_is_code(UprofCodeText *text, uint64_t pc);

/** uprof_code_text_read: false unless all @len bytes, at most a page, are code */
bool uprof_code_text_read(UprofCodeText *text, uint64_t pc, void *into, size_t len);

/** uprof_code_text_insn: @insn: (out). Returns: false if there is no complete instruction */
bool uprof_code_text_insn(UprofCodeText *text, uint64_t pc, UprofX86Insn *insn);

/** uprof_code_text_call: the call before @pc; @target: (out): of a direct call */
UprofCall uprof_code_text_call(UprofCodeText *text, uint64_t pc, uint64_t *target);

/**
 * uprof_code_text_key: Returns: a number for @pc that is the same in all processes that map the
 *   file, and differs where the code may differ
 */
uint64_t uprof_code_text_key(UprofCodeText *text, uint64_t pc);
