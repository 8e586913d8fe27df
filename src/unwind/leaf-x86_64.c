/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The innermost frame at the edges of its function: before the frame record is
 * made and after it is gone the frame pointer is still, or again, the caller's,
 * and following it would lose the caller.
 *
 * Looks at the function's own bytes, so it wants to know where the function
 * begins. Leaf functions that never make a frame have no such edges; finding
 * their caller (a scan for call sites) joins here.
 */
#include "unwind-priv.h"

#include <string.h>

enum {
    PROLOGUE_BYTES = 48, /* other instructions may stand before and between the two */
    PUSH_FP = 0x55,
    POP_FP = 0x5d,
    LEAVE = 0xc9,
    RET = 0xc3,
    RET_POP = 0xc2,
    REP = 0xf3,
    JMP_NEAR = 0xe9,
    JMP_SHORT = 0xeb,
    REX_B = 0x41, /* makes the push one of R13 */
};

/* "mov %rsp,%rbp" in its two encodings; the first byte is missing in 32-bit code */
static const uint8_t set_fp[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };

static bool
read_word(const UprofUnwindContext *context, uint64_t gva, unsigned word_bytes, uint64_t *word)
{
    uint64_t wide;
    uint32_t narrow;

    if (word_bytes == sizeof(wide)) {
        if (!uprof_snapshot_read(context->snapshot, gva, &wide, sizeof(wide)))
            return false;
        *word = GUINT64_FROM_LE(wide);
        return true;
    }
    if (!uprof_snapshot_read(context->snapshot, gva, &narrow, sizeof(narrow)))
        return false;
    *word = GUINT32_FROM_LE(narrow);
    return true;
}

/* The return address is the word at @skip words above the stack pointer. */
static UprofStep
return_from(const UprofUnwindContext *context, UprofRegs *frame, unsigned skip)
{
    const unsigned word_bytes = frame->word_bytes;
    uint64_t pc, fp = frame->fp;

    if (!read_word(context, frame->sp + skip * word_bytes, word_bytes, &pc) ||
        (skip > 0 && !read_word(context, frame->sp, word_bytes, &fp)))
        return UPROF_STEP_PASS;
    if (pc == 0)
        return UPROF_STEP_BASE;
    frame->pc = pc;
    frame->fp = fp;
    frame->sp += (skip + 1) * word_bytes;
    return UPROF_STEP_OK;
}

/* Whether the frame record has just been taken down: "ret", or a jump behind "pop" or "leave". */
static bool
is_epilogue(const UprofUnwindContext *context, uint64_t pc)
{
    uint8_t code[3]; /* the byte before, and two from pc on */

    if (!uprof_unwind_read_code(context, pc - 1, code, sizeof(code)))
        return false;
    if (code[1] == RET || code[1] == RET_POP || (code[1] == REP && code[2] == RET))
        return true;
    return (code[0] == POP_FP || code[0] == LEAVE) && (code[1] == JMP_NEAR || code[1] == JMP_SHORT);
}

/* Returns: whether the function makes a frame record; then, where push and mov stand */
static bool
find_prologue(const uint8_t *code, size_t len, bool is_64bit, size_t *push, size_t *mov)
{
    const size_t skip = is_64bit ? 0 : 1;

    for (size_t i = 0; i < len; i++) {
        if (code[i] != PUSH_FP || (i > 0 && code[i - 1] == REX_B))
            continue;
        for (size_t j = i + 1; j + sizeof(set_fp[0]) - skip <= len; j++) {
            for (size_t k = 0; k < G_N_ELEMENTS(set_fp); k++) {
                if (memcmp(code + j, set_fp[k] + skip, sizeof(set_fp[k]) - skip) != 0)
                    continue;
                *push = i;
                *mov = j;
                return true;
            }
        }
    }
    return false;
}

UprofStep
uprof_leaf_x86_64_step(const UprofUnwindContext *context, UprofRegs *frame)
{
    uint8_t code[PROLOGUE_BYTES];
    size_t len = sizeof(code), push, mov;

    if (frame->word_bytes != 8 && frame->word_bytes != 4)
        return UPROF_STEP_PASS;
    const UprofSymAnswer function = uprof_sym_find(context->sym, frame->pc, false);
    if (function.kind != UPROF_SYM_NAMED)
        return UPROF_STEP_PASS;
    if (is_epilogue(context, frame->pc))
        return return_from(context, frame, 0);
    /* behind the longest prologue there is nothing to repair */
    const uint64_t at = frame->pc - function.start;
    if (at >= PROLOGUE_BYTES)
        return UPROF_STEP_PASS;
    while (len > 0 && !uprof_unwind_read_code(context, function.start, code, len))
        len /= 2; /* the end of the code */
    if (!find_prologue(code, len, frame->word_bytes == 8, &push, &mov) || at > mov)
        return UPROF_STEP_PASS;
    return return_from(context, frame, at <= push ? 0 : 1);
}
