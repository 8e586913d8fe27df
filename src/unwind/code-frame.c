/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-frame-priv.h"

#include "code-role-priv.h"
#include "interrupt-frame-priv.h"

enum {
    NEAR_WORK = 4000, /* instructions of one walk */
    DEEP_WORK = 30000,
    POPPED_MAX = 4096,
};

bool
uprof_code_frame_slot(const UprofCodeFrame *frame, const UprofCodeRule *rule, uint64_t *slot)
{
    return uprof_value_find(frame->context, frame->cursor, &rule->slot, slot) == UPROF_EVALUATED &&
           *slot >= frame->cursor->regs.sp;
}

bool
uprof_code_frame_check(UprofCodeFrame *frame, const UprofCodeRule *rule, UprofSlotCheck *check)
{
    const UprofRegs *regs = &frame->cursor->regs;

    if (!uprof_code_frame_slot(frame, rule, &check->slot) ||
        check->slot - regs->sp > UPROF_FRAME_BYTES_MAX)
        return false;
    if (!uprof_unwind_read_word(frame->context, regs, check->slot, &check->pc)) {
        frame->is_cut = true;
        return false;
    }
    if (check->pc == 0 && rule->is_return) {
        frame->has_zero = true;
        uprof_code_facts_add(frame->facts, rule); /* it shows the same in the next sample */
    }
    return check->pc != 0 && uprof_code_is_return(frame->tools->text, check->pc);
}

const UprofCodeReach *
uprof_code_frame_reach(const UprofCodeFrame *frame, uint64_t start)
{
    const UprofRegs *regs = &frame->cursor->regs;
    UprofCodeText *text = frame->tools->text;
    const UprofCodeKey key = { .number = uprof_code_text_key(text, frame->pc),
                               .start = uprof_code_text_key(text, start),
                               .is_return = frame->cursor->is_return,
                               .is_deep = frame->is_deep,
                               .word_bytes = regs->word_bytes };
    const UprofCodeBounds bounds = { .word_bytes = regs->word_bytes,
                                     .is_kernel = regs->privilege == 0,
                                     .work_max = frame->is_deep ? DEEP_WORK : NEAR_WORK,
                                     .is_thorough = !frame->is_deep };
    bool is_known;

    if (!uprof_code_text_spend(text, 1))
        return NULL;
    UprofCodeReach *reach = uprof_code_memo_reach(
        frame->tools->memo, &key, frame->context->snapshot->time_ns, frame->is_file, &is_known);

    if (is_known)
        return reach;
    uprof_code_walk_from(frame->tools->walk, &bounds, start, frame->pc, reach);
    if (!uprof_code_text_is_spent(text))
        return reach;
    uprof_code_memo_drop_reach(frame->tools->memo);
    return reach->is_reached ? reach : NULL;
}

static void
write_reg(UprofCursor *cursor, unsigned reg, uint64_t value)
{
    if (reg == UPROF_X86_RBP)
        cursor->regs.fp = value;
    else
        cursor->regs.reg[reg] = value;
}

static bool
is_by_fp(const UprofCodeRule *rule, unsigned word_bytes)
{
    return uprof_value_is_offset(&rule->slot, UPROF_X86_RBP) &&
           rule->slot.offset[0] == (int32_t)word_bytes;
}

/*
 * All values depend on the frame's registers: none is written before all are found.
 * Returns: bits of registers whose values are not known in the caller
 */
static uint64_t
restore_regs(const UprofCodeFrame *frame, const UprofCodeRule *rule)
{
    UprofCursor *cursor = frame->cursor;
    const unsigned word_bytes = cursor->regs.word_bytes;
    uint64_t values[UPROF_CODE_SAVED_MAX], unknown = UINT64_MAX;

    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++) {
        const unsigned reg = uprof_code_saved_reg(i, word_bytes);
        if (reg != UPROF_X86_REG_NONE && uprof_value_find(frame->context, cursor, &rule->saved[i],
                                                          &values[i]) == UPROF_EVALUATED)
            unknown &= ~(UINT64_C(1) << reg);
    }
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++) {
        const unsigned reg = uprof_code_saved_reg(i, word_bytes);
        if (reg != UPROF_X86_REG_NONE && !(unknown >> reg & 1))
            write_reg(cursor, reg, values[i]);
    }
    return unknown;
}

void
uprof_code_frame_leave(UprofCodeFrame *frame, const UprofCodeRule *rule,
                       const UprofSlotCheck *check)
{
    UprofCursor *cursor = frame->cursor;
    const unsigned word_bytes = cursor->regs.word_bytes;

    cursor->unknown = restore_regs(frame, rule);
    cursor->regs.pc = check->pc;
    cursor->regs.sp = check->slot + word_bytes + MIN(rule->n_popped, POPPED_MAX);
    cursor->is_return = true;
    cursor->how = is_by_fp(rule, word_bytes) ? UPROF_HOW_FP : UPROF_HOW_CODE;
}

/* A handler may have a stack of its own, so the interrupt's frame may be anywhere. */
bool
uprof_code_frame_leave_interrupt(UprofCodeFrame *frame, const UprofCodeRule *rule)
{
    UprofCursor *cursor = frame->cursor;
    UprofInterrupted found;
    uint64_t slot;

    if (uprof_value_find(frame->context, cursor, &rule->slot, &slot) != UPROF_EVALUATED ||
        !uprof_interrupt_frame_read(frame, slot, &found))
        return false;
    frame->is_entered = found.is_user;
    if (found.is_user)
        return true;
    cursor->unknown = restore_regs(frame, rule);
    cursor->is_switched = found.sp <= cursor->regs.sp;
    cursor->regs.pc = found.pc;
    cursor->regs.sp = found.sp;
    cursor->regs.flags = found.flags;
    cursor->is_return = false;
    cursor->how = UPROF_HOW_CODE;
    return true;
}
