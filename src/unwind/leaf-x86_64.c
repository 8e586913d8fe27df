/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The innermost frame, where the frame pointer may be still, or again, or all
 * the time, that of the caller: before the frame record is made, when it is
 * gone, and in functions that make none. Following it would lose the caller.
 *
 * Looks at the function's own bytes, so it wants to know where the function is,
 * and at calls: the return address is that of a call, and nearly always of one
 * of this very function.
 */
#include "unwind-priv.h"

#include <string.h>

enum {
    PROLOGUE_BYTES = 48, /* other instructions may stand before and between the two */
    STUB_BYTES = 16,     /* of a stub to call a function in another file */
    SCAN_WORDS = 24,     /* how far a function without a frame record may reach */
    PUSH_FP = 0x55,
    POP_FP = 0x5d,
    LEAVE = 0xc9,
    RET = 0xc3,
    RET_POP = 0xc2,
    REP = 0xf3,
    JMP_NEAR = 0xe9,
    JMP_SHORT = 0xeb,
    GROUP_5 = 0xff,
    JMP_THERE = 0x25, /* after GROUP_5: to what the word at a fixed place says */
    BND = 0xf2,
    REX_B = 0x41, /* makes the push one of R13 */
};

/* "mov %rsp,%rbp" in its two encodings; the first byte is missing in 32-bit code */
static const uint8_t set_fp[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };

/* The return address is the word at @skip words above the stack pointer; @fp is the caller's. */
static UprofStep
return_from(const UprofUnwindContext *context, UprofRegs *frame, unsigned skip, uint64_t fp)
{
    const unsigned word_bytes = frame->word_bytes;
    uint64_t pc;

    if (!uprof_unwind_read_word(context, frame, frame->sp + skip * word_bytes, &pc))
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
find_prologue(const UprofUnwindContext *context, const UprofFunction *function, bool is_64bit,
              size_t *push, size_t *mov)
{
    const size_t skip = is_64bit ? 0 : 1;
    uint8_t code[PROLOGUE_BYTES];
    size_t len = MIN(sizeof(code), function->len);

    while (len > 0 && !uprof_unwind_read_code(context, function->start, code, len))
        len /= 2; /* the end of the code */
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

/* Whether the frame pointer's record says that this very function was called. */
static bool
is_own_record(const UprofUnwindContext *context, const UprofFunction *function,
              const UprofRegs *frame)
{
    UprofRegs caller = *frame;
    uint64_t target;

    return uprof_fp_step(context, &caller) == UPROF_STEP_OK &&
           uprof_x86_64_call_before(context, caller.pc, &target) == UPROF_CALL_DIRECT &&
           target == function->start;
}

/*
 * The return address of a function without a frame record lies between the
 * stack pointer and the caller's record. That of a direct call of the function
 * decides. If there is none and @any_call: the first one of an indirect call,
 * or else of a direct call of another function, which then jumped here; but
 * only if there is a record to stop at.
 *
 * Returns: the word above the stack pointer, -1 if there is none
 */
static int
find_return(const UprofUnwindContext *context, const UprofFunction *function,
            const UprofRegs *frame, bool any_call)
{
    const unsigned word_bytes = frame->word_bytes;
    const bool has_end =
        uprof_snapshot_window_at(context->snapshot, frame->fp) != NULL && frame->fp >= frame->sp;
    UprofCall best = UPROF_CALL_UNREADABLE;
    int found = -1;

    for (int i = 0; i < SCAN_WORDS; i++) {
        const uint64_t at = frame->sp + (unsigned)i * word_bytes;
        uint64_t word, target;
        if ((has_end && at >= frame->fp) || !uprof_unwind_read_word(context, frame, at, &word))
            break;
        if (word == 0 || !uprof_sym_is_code(context->sym, uprof_unwind_place(context, word - 1)))
            continue;
        const UprofCall call = uprof_x86_64_call_before(context, word, &target);
        if (call == UPROF_CALL_DIRECT && target == function->start)
            return i;
        if (!any_call || !has_end || call < UPROF_CALL_DIRECT || best == UPROF_CALL_INDIRECT ||
            call == best)
            continue;
        best = call;
        found = i;
    }
    return found;
}

/*
 * Code without a name that was called a few bytes before: the stubs which linkers
 * make for calls into other files, and in stripped images the first instructions
 * of anything.
 */
static bool
was_just_called(const UprofUnwindContext *context, const UprofRegs *frame)
{
    uint64_t pc, target;

    return uprof_unwind_read_word(context, frame, frame->sp, &pc) &&
           uprof_x86_64_call_before(context, pc, &target) == UPROF_CALL_DIRECT &&
           frame->pc - target < STUB_BYTES;
}

/*
 * Code without a name that goes on to where a word says: the stub of a function that
 * is chosen, or found, when the program starts. It may have been jumped to, and has
 * no stack of its own.
 */
static bool
is_stub(const UprofUnwindContext *context, const UprofRegs *frame)
{
    uint8_t code[3];
    uint64_t pc, target;

    if (!uprof_unwind_read_code(context, frame->pc, code, sizeof(code)))
        return false;
    const uint8_t *jump = code[0] == BND ? code + 1 : code;
    return jump[0] == GROUP_5 && jump[1] == JMP_THERE &&
           uprof_unwind_read_word(context, frame, frame->sp, &pc) &&
           uprof_x86_64_call_before(context, pc, &target) >= UPROF_CALL_DIRECT;
}

UprofStep
uprof_leaf_x86_64_step(const UprofUnwindContext *context, UprofRegs *frame)
{
    const UprofCursor cursor = { .regs = *frame };
    UprofFunction function;
    size_t push, mov;
    uint64_t fp;

    if (frame->word_bytes != 8 && frame->word_bytes != 4)
        return UPROF_STEP_PASS;
    if (!uprof_unwind_function(context, &cursor, &function))
        return was_just_called(context, frame) || is_stub(context, frame)
                   ? return_from(context, frame, 0, frame->fp)
                   : UPROF_STEP_PASS;
    if (function.is_entry)
        return UPROF_STEP_PASS;
    if (is_epilogue(context, frame->pc))
        return return_from(context, frame, 0, frame->fp);
    const bool has_record = find_prologue(context, &function, frame->word_bytes == 8, &push, &mov);
    const uint64_t at = frame->pc - function.start;
    if (has_record && at <= push)
        return return_from(context, frame, 0, frame->fp);
    if (has_record && at <= mov)
        return uprof_unwind_read_word(context, frame, frame->sp, &fp)
                   ? return_from(context, frame, 1, fp)
                   : UPROF_STEP_PASS;
    /* one path of a function may make a record, and another not */
    if (is_own_record(context, &function, frame))
        return UPROF_STEP_PASS;
    const int word = find_return(context, &function, frame, !has_record);
    return word < 0 ? UPROF_STEP_PASS : return_from(context, frame, (unsigned)word, frame->fp);
}
