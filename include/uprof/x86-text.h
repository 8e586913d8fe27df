/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * x86-text.h - the text of one x86 instruction, in AT&T syntax
 *
 * Zydis decodes the instruction and writes the operands. Mnemonics are those of binutils, so that
 * the text can be compared with `objdump -d`.
 */
#pragma once

#include "uprof/bytes.h"

enum { UPROF_X86_TEXT_BYTES = 128 };

/** UprofX86Text: an instruction */
typedef struct {
    uint8_t len;                     /* bytes of code */
    bool has_target;                 /* a call or a jump to an address in the instruction ... */
    uint64_t target;                 /* ... and this address */
    char text[UPROF_X86_TEXT_BYTES]; /* ASCII without control characters; never empty */
} UprofX86Text;

/**
 * uprof_x86_text:
 * @code: bytes from the start of the instruction
 * @address: of the instruction
 * @word_bytes: 8 for 64-bit code, 4 for 32-bit code
 * @text: (out): unchanged on failure
 *
 * Returns: false if the bytes are not an instruction, or @code ends inside the instruction
 */
bool uprof_x86_text(UprofSlice code, uint64_t address, unsigned word_bytes, UprofX86Text *text);
