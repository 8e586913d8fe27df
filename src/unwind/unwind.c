/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/unwind.h"

#include "cfi-step-priv.h"
#include "code-cache-priv.h"
#include "code-role-priv.h"
#include "code-step-aarch64-priv.h"
#include "code-step-x86_64-priv.h"
#include "fp-step-priv.h"
#include "orc-step-priv.h"

#include <string.h>

#define METHOD(name) (1u << UPROF_UNWIND_##name)
#define FAMILY(name) (1u << UPROF_FAMILY_##name)
#define ANY_FAMILY (FAMILY(X86) | FAMILY(ARM))

/* clang-format off */

/* The unwinders, in the order in which they are asked */
static const struct {
    unsigned methods;  /* bits METHOD() by which the unwinder is asked */
    unsigned families; /* bits FAMILY() of the code that it knows */
    UprofStepFunc *step;
} unwinders[] = {
    { METHOD(AUTO) | METHOD(CFI), FAMILY(X86), uprof_orc_step },
    { METHOD(AUTO) | METHOD(CFI), ANY_FAMILY,  uprof_cfi_step },
    { METHOD(AUTO) | METHOD(FP),  FAMILY(X86), uprof_code_x86_64_step },
    { METHOD(AUTO) | METHOD(FP),  FAMILY(ARM), uprof_code_aarch64_step },
    { METHOD(FP),                 FAMILY(X86), uprof_fp_step },
    { METHOD(AUTO) | METHOD(FP),  FAMILY(ARM), uprof_fp_step },
};

static const char *const end_names[UPROF_N_ENDS] = {
    [UPROF_END_BASE]    = "complete",
    [UPROF_END_WINDOW]  = "beyond the copied part of the stack",
    [UPROF_END_DEPTH]   = "deeper than --max-depth",
    [UPROF_END_RECORD]  = "no frame record where the frame pointer points",
    [UPROF_END_CODE]    = "a return address that is not in code",
    [UPROF_END_NO_RULE] = "code that cannot be unwound",
    [UPROF_END_PROCESS] = "the stack of the process was not copied",
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

/*
 * A return address must lie in the code of a known image, or lie in an executable page right behind
 * a call. An executable page alone proves little, because all pages of a unikernel are executable.
 * An interrupted instruction has no call before it, so this instruction must only be readable.
 */
static bool
is_plausible_caller(const UprofUnwindContext *context, const UprofCursor *caller)
{
    UprofCodeText *text = uprof_cache_code_tools(context)->text;
    const uint64_t at = caller->regs.pc - caller->is_return;

    if (uprof_sym_is_code(context->sym, uprof_unwind_symbol_address(context, at)))
        return true;
    uprof_code_text_set_frame(text, &caller->regs);
    return caller->is_return ? uprof_code_is_return(text, caller->regs.pc)
                             : uprof_code_text_is_code(text, at);
}

static UprofStep
find_caller(const UprofUnwindContext *context, UprofCursor *cursor)
{
    const unsigned family = 1u << uprof_sym_arch(context->sym)->family;

    for (size_t i = 0; i < G_N_ELEMENTS(unwinders); i++) {
        if (!(unwinders[i].methods & 1u << context->method) || !(unwinders[i].families & family))
            continue;
        const UprofStep answer = unwinders[i].step(context, cursor);
        if (answer != UPROF_STEP_PASS)
            return answer;
    }
    return UPROF_STEP_PASS;
}

static UprofEnd
get_end(UprofStep answer)
{
    switch (answer) {
    case UPROF_STEP_BASE:
        return UPROF_END_BASE;
    case UPROF_STEP_CUT:
        return UPROF_END_WINDOW;
    case UPROF_STEP_PASS:
        return UPROF_END_NO_RULE;
    case UPROF_STEP_PROCESS:
        return UPROF_END_PROCESS;
    default:
        return UPROF_END_RECORD;
    }
}

/* The function where an image begins to run has no caller, even if its stack seems to have one. */
static bool
is_entry(const UprofUnwindContext *context, const UprofFrame *frame)
{
    return uprof_sym_find(context->sym, frame->symbol_address, frame->is_return).is_entry;
}

static void
push_frame(const UprofUnwindContext *context, UprofStack *stack, const UprofCursor *cursor)
{
    const uint64_t pc = cursor->regs.pc;

    stack->frames[stack->n++] = (UprofFrame){
        .pc = pc,
        .symbol_address =
            uprof_unwind_symbol_address(context, pc - cursor->is_return) + cursor->is_return,
        .sp = cursor->regs.sp,
        .how = cursor->how,
        .is_return = cursor->is_return,
    };
}

/* @cursor: at the caller of the topmost frame if @answer is OK */
static void
note_kernel_frames(UprofStack *stack, const UprofCursor *cursor, UprofStep answer)
{
    if (stack->frames[stack->n - 1].pc < UPROF_UPPER_HALF)
        return;
    stack->n_kernel = stack->n;
    stack->has_whole_kernel = answer == UPROF_STEP_BASE || answer == UPROF_STEP_PROCESS ||
                              (answer == UPROF_STEP_OK && cursor->regs.privilege != 0);
}

/* The kernel starts a process's first thread. Above its first frame lie the arguments. */
static bool
is_process_root(const UprofUnwindContext *context, const UprofCursor *cursor)
{
    return context->space && cursor->regs.privilege != 0 && cursor->regs.pc < UPROF_UPPER_HALF &&
           uprof_space_is_root(context->space, cursor->regs.sp);
}

/*
 * This rule makes endless stacks impossible: a caller's stack pointer is higher. It may be lower
 * only a few times, where a kernel switches stacks. It may be the same where a call leaves the
 * return address in a register: a function that calls nothing may leave the address there, and need
 * no stack.
 */
static bool
has_risen(const UprofUnwindContext *context, const UprofCursor *cursor, uint64_t sp,
          bool was_return, unsigned *n_lower)
{
    const bool may_be_same =
        !was_return && cursor->is_return && uprof_sym_arch(context->sym)->lr != 0;

    return cursor->regs.sp > sp || (cursor->regs.sp == sp && may_be_same) ||
           (cursor->is_switched && (*n_lower)++ < UPROF_STACK_SWITCHES_MAX);
}

static UprofEnd
walk_stack(const UprofUnwindContext *context, UprofStack *stack)
{
    UprofCursor cursor = { .regs = context->snapshot->regs };
    unsigned n_lower = 0;

    stack->n = stack->n_kernel = 0;
    stack->has_whole_kernel = false;
    push_frame(context, stack, &cursor);
    for (;;) {
        const uint64_t sp = cursor.regs.sp;
        const bool was_return = cursor.is_return;

        stack->top_sp = sp;
        cursor.is_switched = false;
        const UprofStep answer =
            is_process_root(context, &cursor) ? UPROF_STEP_BASE : find_caller(context, &cursor);
        note_kernel_frames(stack, &cursor, answer);
        if (answer != UPROF_STEP_OK)
            return get_end(answer);
        if (!has_risen(context, &cursor, sp, was_return, &n_lower))
            return UPROF_END_RECORD;
        if (!is_plausible_caller(context, &cursor))
            return UPROF_END_CODE;
        if (stack->n >= context->max_depth)
            return UPROF_END_DEPTH;
        push_frame(context, stack, &cursor);
    }
}

void
uprof_unwind(const UprofUnwindContext *context, UprofStack *stack)
{
    g_autoptr(UprofUnwindCache) cache = context->cache ? NULL : uprof_unwind_cache_new();
    UprofUnwindContext own = *context;

    g_assert(context->max_depth >= 1 && context->max_depth <= UPROF_DEPTH_MAX);
    if (cache) {
        own.cache = cache;
        context = &own;
    }
    uprof_cache_begin(context);
    stack->end = walk_stack(context, stack);
    if (stack->end != UPROF_END_BASE && stack->end != UPROF_END_DEPTH &&
        is_entry(context, &stack->frames[stack->n - 1]))
        stack->end = UPROF_END_BASE;
}

/* Right behind HLT or MWAIT */
static bool
is_behind_halt_x86(const UprofUnwindContext *context, uint64_t pc)
{
    enum { HLT = 0xf4 };
    static const uint8_t mwait[] = { 0x0f, 0x01, 0xc9 };
    uint8_t code[sizeof(mwait)];

    if (!uprof_unwind_read_code(context, pc - sizeof(code), code, sizeof(code)))
        return uprof_unwind_read_code(context, pc - 1, code, 1) && code[0] == HLT;
    return code[sizeof(code) - 1] == HLT || memcmp(code, mwait, sizeof(mwait)) == 0;
}

/* At WFI, or right behind it: QEMU's emulation stops behind the instruction, KVM before it. */
static bool
is_at_wait_aarch64(const UprofUnwindContext *context, uint64_t pc)
{
    enum { WFI = 0xd503207f };
    uint8_t code[2 * sizeof(uint32_t)];

    return uprof_unwind_read_code(context, pc - sizeof(uint32_t), code, sizeof(code)) &&
           (uprof_read_le32(code) == WFI || uprof_read_le32(code + sizeof(uint32_t)) == WFI);
}

bool
uprof_unwind_is_idle(const UprofUnwindContext *context)
{
    const UprofRegs *regs = &context->snapshot->regs;

    if (regs->privilege != 0)
        return false;
    return uprof_sym_arch(context->sym)->family == UPROF_FAMILY_ARM
               ? is_at_wait_aarch64(context, regs->pc)
               : is_behind_halt_x86(context, regs->pc);
}
