/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ORC tables exist on x86_64 only (Linux, arch/x86/include/asm/orc_types.h and
 * arch/x86/kernel/unwind_orc.c). How the kernel is entered is in linux/arch-x86_64.c.
 */
#include "orc-step-priv.h"

#include <string.h>

#include "call-insn-priv.h"
#include "uprof/linux-arch.h"

enum {
    WORD = 8,
    FILLERS_MAX = 2,
    FILLER_REACH = 8, /* bytes: a call has 5, and a trap follows it */
};

/* clang-format off */

/*
 * The base of the CFA. With @is_at the CFA is a value in memory: the rule's offset is added to
 * the address of the value, or, with @is_behind, to the value itself. (The kernel adds no offset
 * for AX, DX, DI, R10 and R13. Their offset is 0, except for DX, where an NMI changes stacks. For
 * DX the value with the offset is right.)
 */
static const struct {
    uint8_t reg;
    bool is_at, is_behind;
} bases[] = {
    [UPROF_ORC_REG_SP]           = { UPROF_X86_RSP, false, false },
    [UPROF_ORC_REG_BP]           = { UPROF_X86_RBP, false, false },
    [UPROF_ORC_REG_AX]           = { UPROF_X86_RAX, false, false },
    [UPROF_ORC_REG_DX]           = { UPROF_X86_RDX, false, false },
    [UPROF_ORC_REG_DI]           = { UPROF_X86_RDI, false, false },
    [UPROF_ORC_REG_R10]          = { UPROF_X86_R8 + 2, false, false },
    [UPROF_ORC_REG_R13]          = { UPROF_X86_R8 + 5, false, false },
    [UPROF_ORC_REG_AT_SP]        = { UPROF_X86_RSP, true, true },
    [UPROF_ORC_REG_AT_SP_OFFSET] = { UPROF_X86_RSP, true, false },
    [UPROF_ORC_REG_AT_BP_OFFSET] = { UPROF_X86_RBP, true, false },
};
/* clang-format on */

typedef struct {
    const UprofUnwindContext *context;
    const UprofLinuxEntryFrame *entry;
    const UprofCursor *cursor; /* the frame, not its caller */
    UprofOrcRule rule;
    uint64_t cfa;
    bool is_switched; /* the CFA may be on another stack */
} Frame;

#define BIT(reg) (UINT64_C(1) << (reg))

static uint64_t
get_reg(const UprofRegs *regs, unsigned reg)
{
    return reg == UPROF_X86_RSP ? regs->sp : reg == UPROF_X86_RBP ? regs->fp : regs->reg[reg];
}

static uint64_t *
find_reg(UprofRegs *regs, unsigned reg)
{
    return reg == UPROF_X86_RSP ? &regs->sp : reg == UPROF_X86_RBP ? &regs->fp : &regs->reg[reg];
}

static bool
read_word(const Frame *frame, uint64_t gva, uint64_t *word)
{
    return uprof_unwind_read_word(frame->context, &frame->cursor->regs, gva, word);
}

static uint64_t
add_offset(uint64_t base, int16_t offset)
{
    return base + (uint64_t)(int64_t)offset;
}

/*
 * Is the CFA on the frame's own stack, above its stack pointer? Where an interrupt returns, the
 * CFA may be a little below, because a part of the saved registers is popped already.
 */
static bool
is_near(const Frame *frame)
{
    const uint64_t below = frame->rule.type == UPROF_ORC_CALL ? 0 : frame->entry->regs_words * WORD;

    return frame->cfa - (frame->cursor->regs.sp - below) <= UPROF_FRAME_BYTES_MAX + below;
}

/* Is the CFA on another stack that was copied? */
static bool
is_on_copied_stack(const Frame *frame)
{
    const UprofSnapshot *snapshot = frame->context->snapshot;
    const UprofWindow *window = uprof_snapshot_window_at(snapshot, frame->cfa - WORD);

    return window && window != uprof_snapshot_window_at(snapshot, frame->cursor->regs.sp - WORD);
}

static UprofStep
find_cfa(Frame *frame)
{
    const UprofOrcRule *rule = &frame->rule;
    const unsigned reg = bases[rule->sp_reg].reg;
    const bool is_at = bases[rule->sp_reg].is_at, is_behind = bases[rule->sp_reg].is_behind;

    if (reg != UPROF_X86_RSP && frame->cursor->unknown & BIT(reg))
        return UPROF_STEP_PASS;
    const uint64_t base = get_reg(&frame->cursor->regs, reg);
    frame->cfa = is_behind ? base : add_offset(base, rule->sp_offset);
    if (is_at && !read_word(frame, frame->cfa, &frame->cfa))
        return UPROF_STEP_CUT;
    if (is_behind)
        frame->cfa = add_offset(frame->cfa, rule->sp_offset);
    /* A word at the stack pointer leads to another stack. Up to 5.11 registers may, too. */
    frame->is_switched = (is_at && reg == UPROF_X86_RSP) || !is_near(frame);
    const bool is_lost = frame->is_switched && !is_at && !is_on_copied_stack(frame);
    return is_lost || frame->cfa % WORD != 0 ? UPROF_STEP_LOST : UPROF_STEP_OK;
}

/* @bp: (inout): unchanged if the register was not saved. Returns: false if the value is unknown */
static bool
find_bp(const Frame *frame, bool is_known, uint64_t *bp)
{
    const UprofOrcRule *rule = &frame->rule;

    if (rule->bp_reg == UPROF_ORC_REG_SAME)
        return is_known;
    if (rule->bp_reg == UPROF_ORC_REG_CFA)
        return read_word(frame, add_offset(frame->cfa, rule->bp_offset), bp);
    return !(frame->cursor->unknown & BIT(UPROF_X86_RBP)) &&
           read_word(frame, add_offset(frame->cursor->regs.fp, rule->bp_offset), bp);
}

/*
 * A new task has never called anything. Its stack is made to return to the task's first
 * instruction, right behind bytes that are not code (Linux, copy_thread()).
 */
static bool
is_task_start(const Frame *frame, uint64_t pc)
{
    UprofSym *sym = frame->context->sym;
    UprofOrcRule rule;

    return uprof_sym_orc(sym, pc - 1, &rule) && rule.type == UPROF_ORC_UNDEFINED &&
           uprof_sym_orc(sym, pc, &rule) && rule.type == UPROF_ORC_END;
}

/*
 * Behind a call only the frame pointer is known: the tables do not tell where other registers are
 * saved.
 * @caller: (inout): a copy of the frame's cursor, or the cursor itself
 */
static UprofStep
return_from_call(const Frame *frame, UprofCursor *caller)
{
    const bool knows_bp = !(frame->cursor->unknown & BIT(UPROF_X86_RBP));
    uint64_t pc, bp = frame->cursor->regs.fp;

    if (!read_word(frame, frame->cfa - WORD, &pc))
        return UPROF_STEP_CUT;
    const bool is_known = find_bp(frame, knows_bp, &bp);
    caller->regs.pc = pc;
    caller->regs.sp = frame->cfa;
    caller->regs.fp = bp;
    caller->unknown = is_known ? ~BIT(UPROF_X86_RBP) : UINT64_MAX;
    caller->is_return = !frame->rule.is_signal && !is_task_start(frame, pc);
    caller->is_switched = frame->is_switched;
    caller->how = UPROF_HOW_ORC;
    return UPROF_STEP_OK;
}

/* Slots below the stack pointer are popped, so those registers have their values already. */
static void
restore_regs(const Frame *frame, UprofCursor *caller)
{
    uint64_t unknown = 0;

    for (unsigned i = 0; i < frame->entry->n_saved_regs; i++) {
        const unsigned reg = frame->entry->saved_regs[i];
        const uint64_t slot = frame->cfa + i * WORD, bit = BIT(reg);
        if (!frame->is_switched && slot < frame->cursor->regs.sp)
            unknown |= caller->unknown & bit;
        else if (!read_word(frame, slot, find_reg(&caller->regs, reg)))
            unknown |= bit;
    }
    caller->unknown = unknown;
}

/*
 * @cs: as saved; newer processors use its upper bits. Returns: word size of the code in that
 * segment, 0 if it is not a segment of code
 */
static unsigned
find_word_bytes(const Frame *frame, uint64_t cs)
{
    for (unsigned i = 0; i < frame->entry->n_segments; i++)
        if ((uint16_t)cs == frame->entry->segments[i].selector)
            return frame->entry->segments[i].word_bytes;
    return 0;
}

/*
 * Continues in the process that entered the kernel, if the process is known and its stack was
 * copied.
 * @caller: (inout): in user space
 */
static UprofStep
enter_user_space(const Frame *frame, UprofCursor *caller, unsigned word_bytes)
{
    const UprofUnwindContext *context = frame->context;
    UprofMapping mapping;
    uint64_t word;

    if (!context->space || !uprof_space_is_of_process(context->space))
        return UPROF_STEP_BASE;
    if (!uprof_space_has_process(context->space))
        return UPROF_STEP_PROCESS;
    if (!uprof_snapshot_read(context->snapshot, caller->regs.sp, &word, sizeof(word)))
        /* a process that begins another program has no stack yet */
        return uprof_mem_find(context->mem, context->snapshot->vcpu, uprof_unwind_tables(context),
                              caller->regs.sp, &mapping)
                   ? UPROF_STEP_PROCESS
                   : UPROF_STEP_BASE;
    caller->regs.privilege = frame->entry->user_privilege;
    caller->regs.word_bytes = (uint8_t)word_bytes;
    caller->is_return = false;
    return UPROF_STEP_OK;
}

/*
 * A system call begins and ends on the stack of the process, and a register holds its return
 * address. An interrupt uses the kernel's stack from its first instruction. System calls of
 * 32-bit code look the same in registers, but their entry code has another name.
 */
static UprofStep
return_from_syscall(const Frame *frame, UprofCursor *caller)
{
    const UprofLinuxEntryFrame *entry = frame->entry;
    const UprofSymAnswer where = uprof_sym_find(frame->context->sym, caller->regs.pc, false);

    if (caller->is_return || caller->regs.privilege == entry->user_privilege ||
        caller->unknown & BIT(entry->syscall_pc_reg) || caller->regs.sp >= UPROF_UPPER_HALF ||
        strstr(uprof_name_text(where.name), "compat"))
        return UPROF_STEP_BASE;
    caller->regs.pc = caller->regs.reg[entry->syscall_pc_reg];
    caller->unknown = entry->syscall_lost_regs;
    caller->is_switched = true;
    caller->how = UPROF_HOW_ORC;
    return caller->regs.pc < UPROF_UPPER_HALF ? enter_user_space(frame, caller, WORD)
                                              : UPROF_STEP_BASE;
}

/* @caller: (inout): a copy of the frame's cursor; undefined unless the answer is OK */
static UprofStep
return_from_interrupt(const Frame *frame, UprofCursor *caller)
{
    const UprofLinuxEntryFrame *entry = frame->entry;
    const bool has_all = frame->rule.type == UPROF_ORC_REGS;
    const uint64_t left = frame->cfa + (has_all ? entry->frame_word * WORD : 0);
    uint64_t cs;

    if (!read_word(frame, left + entry->pc_word * WORD, &caller->regs.pc) ||
        !read_word(frame, left + entry->mode_word * WORD, &cs) ||
        !read_word(frame, left + entry->flags_word * WORD, &caller->regs.flags) ||
        !read_word(frame, left + entry->sp_word * WORD, &caller->regs.sp))
        return UPROF_STEP_CUT;
    const unsigned word_bytes = find_word_bytes(frame, cs);
    if (word_bytes == 0)
        return UPROF_STEP_LOST;
    if (has_all)
        restore_regs(frame, caller);
    const bool is_known = find_bp(frame, !(caller->unknown & BIT(UPROF_X86_RBP)), &caller->regs.fp);
    caller->unknown = (caller->unknown & ~BIT(UPROF_X86_RBP)) | (is_known ? 0 : BIT(UPROF_X86_RBP));
    caller->is_return = !frame->rule.is_signal;
    caller->is_switched = true;
    caller->how = UPROF_HOW_ORC;
    if ((cs & entry->user_privilege) == entry->user_privilege)
        return enter_user_space(frame, caller, word_bytes);
    return UPROF_STEP_OK;
}

static UprofStep
return_by_rule(const Frame *frame, UprofCursor *caller)
{
    return frame->rule.type == UPROF_ORC_CALL ? return_from_call(frame, caller)
                                              : return_from_interrupt(frame, caller);
}

/*
 * Are the registers those that are saved at @at? Right before the kernel returns to a process, all
 * registers have their saved values again, but the one that holds the address of the saved values.
 */
static bool
has_saved_regs(const Frame *frame, uint64_t at)
{
    const UprofCursor *cursor = frame->cursor;
    const UprofLinuxEntryFrame *entry = frame->entry;
    uint64_t word;

    for (unsigned i = 0; i < entry->n_saved_regs; i++) {
        const unsigned reg = entry->saved_regs[i];
        if (reg != entry->return_reg &&
            (cursor->unknown & BIT(reg) || !read_word(frame, at + i * WORD, &word) ||
             word != get_reg(&cursor->regs, reg)))
            return false;
    }
    return true;
}

/*
 * Does the processor's frame of an entry lie at @at, and nothing else yet? Xen pushes two more
 * words in paravirtual guests (Linux, arch/x86/xen/xen-asm.S).
 */
static bool
has_only_entry_frame(const Frame *frame, uint64_t at)
{
    enum { MORE_WORDS = 3 };
    const UprofCursor *cursor = frame->cursor;

    return !cursor->is_return && cursor->regs.sp <= at &&
           at - cursor->regs.sp <= MORE_WORDS * (uint64_t)WORD;
}

/*
 * Where the kernel's part of a process's stack ends, the process continues with its saved
 * registers, if the kernel returns to it: at the end of an entry, or in a new task, whose kernel
 * stack is empty. At the beginning of an entry, only the processor's own frame is saved.
 */
static UprofStep
return_to_process(const Frame *frame, UprofCursor *caller)
{
    const UprofUnwindContext *context = frame->context;
    const UprofLinuxEntryFrame *entry = frame->entry;
    const UprofCursor *cursor = frame->cursor;
    const uint64_t at = context->space ? uprof_space_saved_regs(context->space) : 0;
    const uint64_t entry_frame = at + entry->frame_word * WORD;
    Frame left = *frame;
    uint64_t cs;

    if (at == 0 || cursor->regs.privilege == entry->user_privilege ||
        !read_word(frame, entry_frame + entry->mode_word * WORD, &cs) ||
        (cs & entry->user_privilege) != entry->user_privilege)
        return UPROF_STEP_BASE;
    left.is_switched = true;
    left.rule = (UprofOrcRule){ .type = UPROF_ORC_REGS, .bp_reg = UPROF_ORC_REG_SAME };
    left.cfa = at;
    if (has_only_entry_frame(frame, entry_frame)) {
        left.rule.type = UPROF_ORC_PARTIAL;
        left.cfa = entry_frame;
        caller->unknown |= entry->syscall_lost_regs;
    } else if (cursor->is_return ? cursor->regs.sp != at : !has_saved_regs(frame, at)) {
        return UPROF_STEP_PROCESS;
    }
    return return_from_interrupt(&left, caller);
}

/* A wrong table leads to neither kernel code nor user space. */
static bool
is_plausible(const Frame *frame, UprofStep answer, const UprofCursor *caller)
{
    const uint8_t user_privilege = frame->entry->user_privilege;

    if (answer != UPROF_STEP_OK)
        return answer == UPROF_STEP_BASE || answer == UPROF_STEP_PROCESS;
    return caller->regs.privilege == user_privilege ||
           uprof_sym_is_code(frame->context->sym, caller->regs.pc - caller->is_return);
}

static bool
apply_as_stated(Frame *frame)
{
    return true;
}

/* Right after an entry the kernel first calls error_entry(), which saves the other registers. */
static bool
apply_as_all_regs(Frame *frame)
{
    if (frame->rule.type != UPROF_ORC_PARTIAL)
        return false;
    frame->rule.type = UPROF_ORC_REGS;
    frame->cfa = frame->cursor->regs.sp;
    return true;
}

/*
 * Skips return addresses to which no code returns. When the kernel changes tasks, it fills the
 * processor's return stack with calls of the next instruction. (Linux,
 * arch/x86/include/asm/nospec-branch.h, __FILL_RETURN_BUFFER; it is one of several alternatives for
 * the same code, and the table may describe another one.)
 */
static bool
apply_behind_fillers(Frame *frame)
{
    const UprofRegs *regs = &frame->cursor->regs;
    uint64_t word;
    unsigned n = 0;

    if (frame->rule.type != UPROF_ORC_CALL)
        return false;
    while (n < FILLERS_MAX && read_word(frame, regs->sp + n * WORD, &word) && word < regs->pc &&
           regs->pc - word <= FILLER_REACH)
        n++;
    frame->cfa += n * WORD;
    return n > 0;
}

/*
 * Methods of applying a rule, in the order of the tries. The first method with a plausible caller
 * counts. Tables are right where the kernel itself uses them, which is mostly at a call. The
 * exceptions come from the study of wrong stacks.
 */
static bool (*const candidates[])(Frame *frame) = {
    apply_as_stated,
    apply_as_all_regs,
    apply_behind_fillers,
};

/* If no candidate is plausible, the answer of the first one counts. */
static UprofStep
return_plausibly(const Frame *frame, UprofCursor *cursor)
{
    UprofCursor first = *cursor;
    UprofStep first_answer = UPROF_STEP_PASS;

    for (size_t i = 0; i < G_N_ELEMENTS(candidates); i++) {
        Frame candidate = *frame;
        UprofCursor caller = *frame->cursor;
        if (!candidates[i](&candidate))
            continue;
        const UprofStep answer = return_by_rule(&candidate, &caller);
        const bool is_good = is_plausible(&candidate, answer, &caller);
        if (i == 0 || is_good) {
            first = caller;
            first_answer = answer;
        }
        if (is_good)
            break;
    }
    if (first_answer == UPROF_STEP_OK)
        *cursor = first;
    return first_answer;
}

/*
 * Has a function just been called although it has no caller by its rule? Up to 6.1 the thunks for
 * indirect calls have such rules. The functions that a thunk calls push a word or two.
 */
static bool
was_called(const Frame *frame)
{
    const UprofUnwindContext *context = frame->context;
    UprofFunction function;
    uint64_t word, target;

    if (frame->cursor->is_return || !uprof_unwind_function(context, frame->cursor, &function))
        return false;
    for (unsigned i = 0; i <= FILLERS_MAX; i++)
        if (read_word(frame, frame->cursor->regs.sp + i * WORD, &word) &&
            uprof_sym_is_code(context->sym, word - 1) &&
            uprof_call_before(context, word, &target) == UPROF_CALL_DIRECT &&
            target == function.start)
            return true;
    return false;
}

static UprofStep
return_from_root(const Frame *frame, UprofCursor *cursor)
{
    UprofCursor caller = *cursor;

    if (was_called(frame))
        return UPROF_STEP_PASS;
    UprofStep answer = return_from_syscall(frame, &caller);
    if (answer == UPROF_STEP_BASE) {
        caller = *cursor;
        answer = return_to_process(frame, &caller);
    }
    if (answer == UPROF_STEP_OK)
        *cursor = caller;
    return answer;
}

UprofStep
uprof_orc_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    Frame frame = {
        .context = context,
        .entry = uprof_linux_arch_x86_64.entry,
        .cursor = cursor,
    };

    if (cursor->regs.word_bytes != WORD ||
        !uprof_sym_orc(context->sym, cursor->regs.pc - cursor->is_return, &frame.rule))
        return UPROF_STEP_PASS;
    if (frame.rule.type == UPROF_ORC_UNDEFINED)
        return UPROF_STEP_PASS;
    if (frame.rule.type == UPROF_ORC_END)
        return return_from_root(&frame, cursor);
    const UprofStep answer = find_cfa(&frame);
    if (answer != UPROF_STEP_OK)
        return answer;
    /* Fast path: behind a call the tables are right. */
    if (frame.rule.type == UPROF_ORC_CALL && cursor->is_return)
        return return_by_rule(&frame, cursor);
    return return_plausibly(&frame, cursor);
}
