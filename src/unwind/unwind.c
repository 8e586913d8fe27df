/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cache-priv.h"
#include "unwind-priv.h"

#include <string.h>

/* the images' tables are of x86 */
#define FP (UINT64_C(1) << UPROF_X86_RBP)

enum { HLT = 0xf4 };

/* clang-format off */

/* Those that know pc, sp and fp alone, in the order of asking. */
static const struct {
    UprofHow how;
    bool exact_only; /* behind a call a function is never at its edge */
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

UprofUnwindMethod
uprof_unwind_method(const char *name)
{
    if (g_strcmp0(name, "cfi") == 0)
        return UPROF_UNWIND_CFI;
    return g_strcmp0(name, "fp") == 0 ? UPROF_UNWIND_FP : UPROF_UNWIND_AUTO;
}

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

bool
uprof_unwind_read_word(const UprofUnwindContext *context, const UprofRegs *frame, uint64_t gva,
                       uint64_t *word)
{
    uint64_t wide;
    uint32_t narrow;

    if (frame->word_bytes == sizeof(wide)) {
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

uint64_t
uprof_unwind_place(const UprofUnwindContext *context, uint64_t pc)
{
    return context->space ? uprof_space_place(context->space, pc) : pc;
}

bool
uprof_unwind_function(const UprofUnwindContext *context, const UprofCursor *frame,
                      UprofFunction *function)
{
    const uint64_t pc = frame->regs.pc - frame->is_return;
    const uint64_t place = uprof_unwind_place(context, pc);

    if (!uprof_sym_function(context->sym, place, &function->place, &function->len,
                            &function->is_entry))
        return false;
    function->start = function->place + (pc - place);
    return true;
}

/*
 * A return address lies in the code of a known image, or else where the guest
 * may execute, right behind a call: what is mapped executable alone says little
 * in a unikernel, where that is everything. What a trap interrupted has no call
 * before it, and must be there at least.
 */
static bool
is_caller(const UprofUnwindContext *context, const UprofCursor *caller)
{
    const UprofSnapshot *snapshot = context->snapshot;
    const uint64_t at = caller->regs.pc - caller->is_return;
    uint64_t gpa, left, target;
    bool executable = false;
    uint8_t code;

    if (uprof_sym_is_code(context->sym, uprof_unwind_place(context, at)))
        return true;
    if (!uprof_mem_translate(context->mem, snapshot->vcpu, &snapshot->regs, at, &gpa, &left,
                             &executable) ||
        !executable)
        return false;
    return caller->is_return
               ? uprof_x86_64_call_before(context, caller->regs.pc, &target) >= UPROF_CALL_DIRECT
               : uprof_unwind_read_code(context, at, &code, sizeof(code));
}

/* @how: (inout): how the frame was found, and its caller */
static UprofStep
step(const UprofUnwindContext *context, UprofCursor *cursor, UprofHow *how)
{
    const UprofHow found_by = *how;

    if (context->method != UPROF_UNWIND_FP) {
        const UprofStep by_orc = uprof_orc_step(context, cursor);
        *how = UPROF_HOW_ORC;
        if (by_orc != UPROF_STEP_PASS)
            return by_orc;
        const UprofStep answer = uprof_cfi_step(context, cursor);
        *how = UPROF_HOW_CFI;
        if (answer != UPROF_STEP_PASS || context->method == UPROF_UNWIND_CFI)
            return answer;
    }
    const UprofStep by_code = uprof_code_x86_64_step(context, cursor, how);
    if (by_code != UPROF_STEP_PASS)
        return by_code;
    if (cursor->unknown & FP)
        return UPROF_STEP_PASS;
    for (size_t i = 0; i < G_N_ELEMENTS(unwinders); i++) {
        if (unwinders[i].exact_only && cursor->is_return)
            continue;
        const UprofStep answer = unwinders[i].step(context, &cursor->regs);
        if (answer == UPROF_STEP_PASS)
            continue;
        *how = unwinders[i].how;
        if (answer == UPROF_STEP_OK) {
            /* the function may have saved the others, who knows where; pc and sp are found */
            cursor->unknown = ~FP;
            cursor->is_return = true;
        }
        /*
         * Zeros are the root of a chain of frame records. Elsewhere they are any
         * numbers: in code that uses the register for something else, and in what
         * it happens to point at.
         */
        return answer == UPROF_STEP_BASE && found_by != UPROF_HOW_FP ? UPROF_STEP_PASS : answer;
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
    return uprof_sym_find(context->sym, frame->place, frame->is_return).is_entry;
}

static void
push_frame(const UprofUnwindContext *context, UprofStack *stack, const UprofCursor *cursor,
           UprofHow how)
{
    const uint64_t pc = cursor->regs.pc;

    stack->frames[stack->n++] = (UprofFrame){
        .pc = pc,
        .place = uprof_unwind_place(context, pc - cursor->is_return) + cursor->is_return,
        .how = how,
        .is_return = cursor->is_return,
    };
}

/* Of the two halves of all addresses a Linux kernel has the upper one, on every x86_64. */
static bool
is_upper(uint64_t gva)
{
    return gva >> 63;
}

/* @cursor: behind the frame on top of @stack, if @answer says so. Garbage leads nowhere. */
static void
note_kernel(UprofStack *stack, const UprofCursor *cursor, UprofStep answer)
{
    if (!is_upper(stack->frames[stack->n - 1].pc))
        return;
    stack->n_kernel = stack->n;
    stack->has_whole_kernel =
        answer == UPROF_STEP_BASE || (answer == UPROF_STEP_OK && cursor->regs.privilege != 0);
}

static UprofEnd
walk(const UprofUnwindContext *context, UprofStack *stack)
{
    UprofCursor cursor = { .regs = context->snapshot->regs };
    unsigned n_falls = 0;

    stack->n = stack->n_kernel = 0;
    stack->has_whole_kernel = false;
    push_frame(context, stack, &cursor, UPROF_HOW_PC);
    for (;;) {
        const uint64_t sp = cursor.regs.sp;
        UprofHow how = stack->frames[stack->n - 1].how;

        stack->top_sp = sp;
        cursor.is_switched = false;
        const UprofStep answer = step(context, &cursor, &how);
        note_kernel(stack, &cursor, answer);
        if (answer != UPROF_STEP_OK)
            return end_of(answer);
        /*
         * The one rule that makes loops impossible: a caller's stack lies higher. Only
         * of the stacks that a kernel changes between any may be the lower one.
         */
        if (cursor.regs.sp <= sp && !(cursor.is_switched && n_falls++ < UPROF_WINDOWS_MAX))
            return UPROF_END_RECORD;
        if (!is_caller(context, &cursor))
            return UPROF_END_CODE;
        if (stack->n >= context->max_depth)
            return UPROF_END_DEPTH;
        push_frame(context, stack, &cursor, how);
    }
}

void
uprof_unwind(const UprofUnwindContext *context, UprofStack *stack)
{
    g_assert(context->max_depth >= 1 && context->max_depth <= UPROF_DEPTH_MAX);
    uprof_cache_begin(context);
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
