/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind-priv.h"

#include <string.h>

enum {
    HLT = 0xf4,
    CALL_BYTES_MIN = 2,
    CALL_BYTES_MAX = 7,
};

/* clang-format off */

/* In the order of asking. */
static const struct {
    UprofHow how;
    bool innermost_only; /* behind a call a function is never at its edge */
    UprofStep (*step)(const UprofUnwindContext *context, UprofRegs *frame);
} unwinders[] = {
    { UPROF_HOW_LEAF, true,  uprof_leaf_x86_64_step },
    { UPROF_HOW_FP,   false, uprof_fp_step },
};

static const char *const end_names[UPROF_N_ENDS] = {
    [UPROF_END_BASE]    = "complete",
    [UPROF_END_WINDOW]  = "beyond the copied part of the stack",
    [UPROF_END_DEPTH]   = "deeper than --max-depth",
    [UPROF_END_RECORD]  = "no frame record where the frame pointer points",
    [UPROF_END_CODE]    = "a return address that is not in code",
    [UPROF_END_NO_RULE] = "code that cannot be unwound",
};
/* clang-format on */

const char *
uprof_end_name(UprofEnd end)
{
    return end_names[end];
}

bool
uprof_unwind_is_complete(const UprofStack *stack)
{
    return stack->end == UPROF_END_BASE;
}

bool
uprof_unwind_read_code(const UprofUnwindContext *context, uint64_t gva, void *into, size_t len)
{
    const UprofSnapshot *snapshot = context->snapshot;

    return uprof_mem_read(context->mem, snapshot->vcpu, &snapshot->regs, gva, into, len);
}

/*
 * Whether an x86 call ends at @pc: E8 with a 32-bit distance, or FF /2 in its
 * lengths of 2 to 7 bytes (Intel SDM, volume 2, CALL).
 */
static bool
ends_call(const UprofUnwindContext *context, uint64_t pc)
{
    uint8_t code[CALL_BYTES_MAX];

    for (unsigned len = CALL_BYTES_MIN; len <= CALL_BYTES_MAX; len++) {
        if (pc < len || !uprof_unwind_read_code(context, pc - len, code, 2))
            continue;
        if (len == 5 && code[0] == 0xe8)
            return true;
        if (code[0] == 0xff && (code[1] >> 3 & 7) == 2)
            return true;
    }
    return false;
}

/*
 * A return address lies in the code of a known image, or else where the guest
 * may execute, right behind a call: what is mapped executable alone says little
 * in a unikernel, where that is everything.
 */
static bool
is_return_address(const UprofUnwindContext *context, uint64_t pc)
{
    const UprofSnapshot *snapshot = context->snapshot;
    uint64_t gpa, left;
    bool executable = false;

    if (uprof_sym_is_code(context->sym, pc - 1))
        return true;
    return uprof_mem_translate(context->mem, snapshot->vcpu, &snapshot->regs, pc - 1, &gpa, &left,
                               &executable) &&
           executable && ends_call(context, pc);
}

static UprofStep
step(const UprofUnwindContext *context, UprofRegs *frame, bool is_innermost, UprofHow *how)
{
    for (size_t i = 0; i < G_N_ELEMENTS(unwinders); i++) {
        if (unwinders[i].innermost_only && !is_innermost)
            continue;
        const UprofStep answer = unwinders[i].step(context, frame);
        if (answer == UPROF_STEP_PASS)
            continue;
        *how = unwinders[i].how;
        return answer;
    }
    return UPROF_STEP_PASS;
}

static UprofEnd
end_of(UprofStep answer)
{
    switch (answer) {
    case UPROF_STEP_BASE:
        return UPROF_END_BASE;
    case UPROF_STEP_CUT:
        return UPROF_END_WINDOW;
    case UPROF_STEP_PASS:
        return UPROF_END_NO_RULE;
    default:
        return UPROF_END_RECORD;
    }
}

/* The function at which an image begins to run has no caller, whatever its stack says. */
static bool
is_entry(const UprofUnwindContext *context, const UprofFrame *frame)
{
    return uprof_sym_find(context->sym, frame->pc, frame->is_return).is_entry;
}

static UprofEnd
walk(const UprofUnwindContext *context, UprofStack *stack)
{
    UprofRegs frame = context->snapshot->regs;

    stack->frames[0] = (UprofFrame){ .pc = frame.pc, .how = UPROF_HOW_PC };
    stack->n = 1;
    for (;;) {
        const uint64_t sp = stack->top_sp = frame.sp;
        UprofHow how = UPROF_HOW_PC;

        const UprofStep answer = step(context, &frame, stack->n == 1, &how);
        if (answer != UPROF_STEP_OK)
            return end_of(answer);
        /* the one rule that makes loops impossible: a caller's stack lies higher */
        if (frame.sp <= sp)
            return UPROF_END_RECORD;
        if (!is_return_address(context, frame.pc))
            return UPROF_END_CODE;
        if (stack->n >= context->max_depth)
            return UPROF_END_DEPTH;
        stack->frames[stack->n++] = (UprofFrame){ .pc = frame.pc, .how = how, .is_return = true };
    }
}

void
uprof_unwind(const UprofUnwindContext *context, UprofStack *stack)
{
    g_assert(context->max_depth >= 1 && context->max_depth <= UPROF_DEPTH_MAX);
    stack->end = walk(context, stack);
    if (stack->end != UPROF_END_BASE && stack->end != UPROF_END_DEPTH &&
        is_entry(context, &stack->frames[stack->n - 1]))
        stack->end = UPROF_END_BASE;
}

bool
uprof_unwind_is_idle(const UprofUnwindContext *context)
{
    static const uint8_t mwait[] = { 0x0f, 0x01, 0xc9 };
    const UprofRegs *regs = &context->snapshot->regs;
    uint8_t code[sizeof(mwait)];

    if (regs->privilege != 0)
        return false;
    if (!uprof_unwind_read_code(context, regs->pc - sizeof(code), code, sizeof(code)))
        return uprof_unwind_read_code(context, regs->pc - 1, code, 1) && code[0] == HLT;
    return code[sizeof(code) - 1] == HLT || memcmp(code, mwait, sizeof(mwait)) == 0;
}
