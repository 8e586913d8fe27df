/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * In the innermost frame the frame pointer may still be the caller's: before the function makes its
 * frame record, after the function removes it, and in functions that make none. An unwinder that
 * follows such a frame pointer skips the caller.
 *
 * This unwinder reads the function's own bytes, so the function must be known. The unwinder also
 * checks calls: the return address is behind a call, and nearly always behind a call of this very
 * function.
 */
#include "leaf-step-x86_64-priv.h"

#include "call-insn-x86_64-priv.h"
#include "fp-step-priv.h"

#include <string.h>

enum {
    PROLOGUE_BYTES = 48, /* other instructions may stand before and between the two */
    STUB_BYTES = 16,     /* of a stub to call a function in another file */
    SCAN_WORDS = 24,     /* largest frame of a function without a frame record */
    PUSH_FP = 0x55,
    POP_FP = 0x5d,
    LEAVE = 0xc9,
    RET = 0xc3,
    RET_POP = 0xc2,
    REP = 0xf3,
    JMP_NEAR = 0xe9,
    JMP_SHORT = 0xeb,
    GROUP_5 = 0xff,
    JMP_THERE = 0x25, /* after GROUP_5: to the address in the word at a fixed place */
    BND = 0xf2,
    REX_B = 0x41, /* with this prefix the push is of R13 */
};

/* "mov %rsp,%rbp" in its two encodings; the first byte is missing in 32-bit code */
static const uint8_t set_fp[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };

/*
 * @skip: words between the stack pointer and the return address. @fp: the caller's
 */
static UprofStep
return_past(const UprofUnwindContext *context, UprofCursor *cursor, unsigned skip, uint64_t fp)
{
    UprofRegs *regs = &cursor->regs;
    const unsigned word_bytes = regs->word_bytes;
    uint64_t pc;

    if (!uprof_unwind_read_word(context, regs, regs->sp + skip * word_bytes, &pc))
        return UPROF_STEP_PASS;
    if (pc == 0)
        return UPROF_STEP_STOP;
    regs->pc = pc;
    regs->fp = fp;
    regs->sp += (skip + 1) * word_bytes;
    /* The function may have saved other registers, but nothing says where. */
    cursor->unknown = ~(UINT64_C(1) << UPROF_X86_RBP);
    cursor->is_return = true;
    cursor->how = UPROF_HOW_LEAF;
    return UPROF_STEP_OK;
}

/* Was the frame record just removed, as at "ret", and at a jump behind "pop" or "leave"? */
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

/* @push, @mov: (out): offsets of the two instructions that make a frame record */
static bool
find_prologue(const UprofUnwindContext *context, const UprofFunction *function, bool is_64bit,
              size_t *push, size_t *mov)
{
    const size_t skip = is_64bit ? 0 : 1;
    uint8_t code[PROLOGUE_BYTES];
    size_t len = MIN(sizeof(code), function->len);

    while (len > 0 && !uprof_unwind_read_code(context, function->start, code, len))
        len /= 2; /* the code may end before */
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

/* Does the frame pointer's record hold a return address behind a call of this very function? */
static bool
is_own_record(const UprofUnwindContext *context, const UprofFunction *function,
              const UprofCursor *cursor)
{
    UprofCursor caller = *cursor;
    uint64_t target;

    return uprof_fp_step(context, &caller) == UPROF_STEP_OK &&
           uprof_x86_64_call_before(context, caller.regs.pc, &target) == UPROF_CALL_DIRECT &&
           target == function->start;
}

/*
 * The return address of a function without a frame record lies between the stack pointer and the
 * caller's record. A word that points behind a direct call of the function is the return address.
 * If there is no such word and @any_call is set, the function takes the first word that points
 * behind an indirect call, or else the first word behind a direct call of another function, which
 * then jumped here. Both choices need a caller's record that ends the search.
 *
 * Returns: number of the word above the stack pointer; -1 if there is none
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
        if (word == 0 ||
            !uprof_sym_is_code(context->sym, uprof_unwind_symbol_address(context, word - 1)))
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
 * Is this code without a symbol, and was it called a few bytes before? Linkers make such stubs
 * for calls into other files; in stripped images it may be the start of any function.
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
 * Is this code without a symbol that jumps to the address in a fixed word? Such code is a stub
 * for a function that is chosen, or found, when the program starts. The stub does not use the
 * stack.
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
uprof_leaf_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    const UprofRegs *regs = &cursor->regs;
    UprofFunction function;
    size_t push, mov;
    uint64_t fp;

    if (regs->word_bytes != 8 && regs->word_bytes != 4)
        return UPROF_STEP_PASS;
    if (!uprof_unwind_function(context, cursor, &function))
        return was_just_called(context, regs) || is_stub(context, regs)
                   ? return_past(context, cursor, 0, regs->fp)
                   : UPROF_STEP_PASS;
    if (function.is_entry)
        return UPROF_STEP_PASS;
    if (is_epilogue(context, regs->pc))
        return return_past(context, cursor, 0, regs->fp);
    const bool has_record = find_prologue(context, &function, regs->word_bytes == 8, &push, &mov);
    const uint64_t at = regs->pc - function.start;
    if (has_record && at <= push)
        return return_past(context, cursor, 0, regs->fp);
    if (has_record && at <= mov)
        return uprof_unwind_read_word(context, regs, regs->sp, &fp)
                   ? return_past(context, cursor, 1, fp)
                   : UPROF_STEP_PASS;
    /* One path through a function may make a record, and another one not. */
    if (is_own_record(context, &function, cursor))
        return UPROF_STEP_PASS;
    const int word = find_return(context, &function, regs, !has_record);
    return word < 0 ? UPROF_STEP_PASS : return_past(context, cursor, (unsigned)word, regs->fp);
}
