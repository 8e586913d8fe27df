/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A word on the stack that follows a direct call is the return address if the function that was
 * called gets to the frame's address with a stack of just this height. The function may get there
 * only by a jump that cannot be followed. Then the stack at this jump decides, because all code
 * behind it mostly has the same frame.
 */
#include "code-frame-priv.h"
#include "code-role-priv.h"

enum {
    WORDS_MAX = 2048,
    WALKS_MAX = 64,
    STUB_INSNS_MAX = 3,
    THUNK_CALL_MAX = 64, /* distance of a thunk's call of its own code */
};

/* A scan of one frame, and its state. */
typedef struct {
    UprofCodeFrame *frame;
    int64_t jump_offset; /* stack pointer at the next jump that cannot be followed - that here */
    unsigned n_walks;
} Scan;

/* Does the function only jump elsewhere: by a word, by a register, or by a return to a register? */
static bool
is_stub(UprofCodeText *text, uint64_t pc)
{
    UprofX86Insn insn;

    for (unsigned i = 0; i < STUB_INSNS_MAX; i++, pc += insn.len) {
        if (!uprof_code_text_insn(text, pc, &insn))
            return false;
        if (insn.kind == UPROF_X86_JUMP_FIXED || insn.kind == UPROF_X86_JUMP_ANY)
            return true;
        if (insn.kind == UPROF_X86_CALL)
            return insn.value >= 0 && insn.value < THUNK_CALL_MAX;
        if (insn.kind != UPROF_X86_MARK && insn.kind != UPROF_X86_NOP)
            return false;
    }
    return false;
}

static void
accept_rule(UprofCodeFrame *frame, const UprofCodeRule *rule, const UprofSlotCheck *check)
{
    uprof_code_facts_add(frame->facts, rule);
    uprof_code_frame_leave(frame, rule, check);
}

/* Moves all that counts from the stack pointer by @offset. */
static UprofCodeRule
move_rule(const UprofCodeRule *rule, int64_t offset)
{
    UprofCodeRule moved = *rule;

    moved.slot.offset[0] += (int32_t)offset;
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++)
        if (moved.saved[i].base == UPROF_X86_RSP && moved.saved[i].n_loads == 1)
            moved.saved[i].offset[0] += (int32_t)offset;
    return moved;
}

/* Does the frame at the jump, perhaps with what the code pushes up to it, end at @check? */
static bool
accept_jump(Scan *scan, const UprofCodeRule *rule, const UprofSlotCheck *check)
{
    uint64_t slot;

    if (!uprof_code_frame_slot(scan->frame, rule, &slot))
        return false;
    if (slot == check->slot) {
        accept_rule(scan->frame, rule, check);
        return true;
    }
    if (!uprof_value_is_offset(&rule->slot, UPROF_X86_RSP) || scan->jump_offset == 0 ||
        slot + (uint64_t)scan->jump_offset != check->slot)
        return false;
    const UprofCodeRule moved = move_rule(rule, scan->jump_offset);
    accept_rule(scan->frame, &moved, check);
    return true;
}

/* @target: of the call before the return address */
static bool
try_direct(Scan *scan, uint64_t target, const UprofSlotCheck *check)
{
    uint64_t slot;

    if (scan->n_walks++ >= WALKS_MAX)
        return false;
    const UprofCodeReach *reach = uprof_code_frame_reach(scan->frame, target);
    if (!reach)
        return false;
    if (reach->has_jump)
        return accept_jump(scan, &reach->jump_rule, check);
    if (!reach->is_reached || !uprof_code_frame_slot(scan->frame, &reach->rule, &slot) ||
        slot != check->slot)
        return false;
    accept_rule(scan->frame, &reach->rule, check);
    return true;
}

static bool
try_indirect(Scan *scan, const UprofSlotCheck *check)
{
    for (unsigned i = 0; i < scan->frame->n_starts; i++) {
        const UprofCodeReach *reach = uprof_code_frame_reach(scan->frame, scan->frame->starts[i]);
        if (reach && reach->has_jump && accept_jump(scan, &reach->jump_rule, check))
            return true;
    }
    return false;
}

/* Returns: false if no call is before the word */
static bool
read_candidate(const UprofCodeFrame *frame, uint64_t slot, UprofSlotCheck *check, bool *is_direct,
               uint64_t *target)
{
    UprofCodeText *text = frame->tools->text;

    check->slot = slot;
    if (!uprof_unwind_read_word(frame->context, &frame->cursor->regs, slot, &check->pc) ||
        check->pc < UPROF_PAGE_BYTES || !uprof_code_text_is_code(text, check->pc - 1))
        return false;
    const UprofCall call = uprof_code_text_call(text, check->pc, target);
    *is_direct = call == UPROF_CALL_DIRECT && uprof_code_text_is_code(text, *target) &&
                 !is_stub(text, *target);
    return call >= UPROF_CALL_DIRECT;
}

static bool
scan_words(Scan *scan, bool want_direct)
{
    const UprofRegs *regs = &scan->frame->cursor->regs;
    const uint64_t word = regs->word_bytes, first = (regs->sp + word - 1) & ~(word - 1);
    uint64_t target;

    for (unsigned i = 0; i < WORDS_MAX; i++) {
        UprofSlotCheck check;
        bool is_direct;
        const uint64_t slot = first + i * word;
        if (!uprof_code_text_spend(scan->frame->tools->text, UPROF_TEXT_WORK_OF_WORD))
            return false;
        if (!uprof_snapshot_window_at(scan->frame->context->snapshot, slot))
            return false;
        if (!read_candidate(scan->frame, slot, &check, &is_direct, &target) ||
            is_direct != want_direct)
            continue;
        if (is_direct ? try_direct(scan, target, &check) : try_indirect(scan, &check))
            return true;
    }
    return false;
}

bool
uprof_code_frame_scan(UprofCodeFrame *frame, bool by_direct)
{
    Scan scan = { .frame = frame };

    if (frame->facts->has_jump && uprof_value_is_offset(&frame->facts->jump_sp, UPROF_X86_RSP))
        scan.jump_offset = frame->facts->jump_sp.offset[0];
    return (by_direct || frame->n_starts > 0) && scan_words(&scan, by_direct);
}
