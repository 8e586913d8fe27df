/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind-priv.h"

#include <string.h>

/* What an interrupt leaves on the stack, in words (Intel SDM, volume 3, 6.14.2). */
enum { FRAME_IP, FRAME_CS, FRAME_FLAGS, FRAME_SP };

/* And below it what the kernel saves (Linux, arch/x86/include/asm/ptrace.h): a pt_regs. */
enum { PT_REGS_FRAME = 16, PT_REGS_WORDS = 21 };

enum {
    WORD = 8,
    USER = 3,
    FILLERS_MAX = 2,
    FILLER_REACH = 8, /* bytes; a call has 5, and a trap stands behind it */
};

/* clang-format off */
static const uint8_t pt_regs[] = {
    UPROF_X86_R15, UPROF_X86_R15 - 1, UPROF_X86_R15 - 2, UPROF_X86_R15 - 3, UPROF_X86_RBP,
    UPROF_X86_RBX, UPROF_X86_R8 + 3, UPROF_X86_R8 + 2, UPROF_X86_R8 + 1, UPROF_X86_R8,
    UPROF_X86_RAX, UPROF_X86_RCX, UPROF_X86_RDX, UPROF_X86_RSI, UPROF_X86_RDI,
};

/*
 * Of code: the kernel's, and user space's of both widths (Linux, arch/x86/include/asm/segment.h);
 * and the same on Xen, which has its own (Xen, xen/include/public/arch-x86/xen-x86_64.h).
 */
static const struct {
    uint16_t selector;
    uint8_t word_bytes;
} segments[] = {
    { 0x10, 8 },   { 0x23, 4 },   { 0x33, 8 },
    { 0xe030, 8 }, { 0xe023, 4 }, { 0xe033, 8 },
};

/*
 * What the CFA counts from; where it is what stands in memory, the offset is added before
 * that is read, or behind. (The kernel does not add it to AX, DX, DI, R10 and R13, where it
 * is 0 but for DX: where an NMI changes stacks, and what is said to be there is.)
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
    UprofCursor *cursor; /* the frame, until its caller is known */
    UprofOrcRule rule;
    uint64_t cfa;
    bool is_switched; /* the CFA may be on another stack */
} Frame;

/* Linux: no process has an address from here on. */
#define KERNEL_FROM (UINT64_C(1) << 63)

#define BIT(reg) (UINT64_C(1) << (reg))

static uint64_t *
place_of(UprofRegs *regs, unsigned reg)
{
    return reg == UPROF_X86_RSP ? &regs->sp : reg == UPROF_X86_RBP ? &regs->fp : &regs->reg[reg];
}

static bool
read_word(const Frame *frame, uint64_t gva, uint64_t *word)
{
    return uprof_unwind_read_word(frame->context, &frame->cursor->regs, gva, word);
}

static uint64_t
add(uint64_t base, int16_t offset)
{
    return base + (uint64_t)(int64_t)offset;
}

/*
 * On the frame's own stack, above its stack pointer; or a little below it, where an
 * interrupt is left and part of what it had left is popped.
 */
static bool
is_near(const Frame *frame)
{
    const uint64_t below = frame->rule.type == UPROF_ORC_CALL ? 0 : PT_REGS_WORDS * WORD;

    return frame->cfa - (frame->cursor->regs.sp - below) <= UPROF_FRAME_BYTES_MAX + below;
}

/* On another stack that was copied. */
static bool
is_elsewhere(const Frame *frame)
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
    const uint64_t base = *place_of(&frame->cursor->regs, reg);
    frame->cfa = is_behind ? base : add(base, rule->sp_offset);
    if (is_at && !read_word(frame, frame->cfa, &frame->cfa))
        return UPROF_STEP_CUT;
    if (is_behind)
        frame->cfa = add(frame->cfa, rule->sp_offset);
    /* the word at the stack pointer is what leads to another stack; others may, up to 5.11 */
    frame->is_switched = (is_at && reg == UPROF_X86_RSP) || !is_near(frame);
    const bool is_lost = frame->is_switched && !is_at && !is_elsewhere(frame);
    return is_lost || frame->cfa % WORD != 0 ? UPROF_STEP_LOST : UPROF_STEP_OK;
}

/* @bp: (inout): what it is if it was not saved. Returns: whether it is known */
static bool
find_bp(const Frame *frame, bool is_known, uint64_t *bp)
{
    const UprofOrcRule *rule = &frame->rule;

    if (rule->bp_reg == UPROF_ORC_REG_SAME)
        return is_known;
    if (rule->bp_reg == UPROF_ORC_REG_CFA)
        return read_word(frame, add(frame->cfa, rule->bp_offset), bp);
    return !(frame->cursor->unknown & BIT(UPROF_X86_RBP)) &&
           read_word(frame, add(frame->cursor->regs.fp, rule->bp_offset), bp);
}

/*
 * A task that is new has never called anything: it is made to return to where it begins,
 * right behind what is no code (Linux, copy_thread()).
 */
static bool
is_made_up(const Frame *frame, uint64_t pc)
{
    UprofSym *sym = frame->context->sym;
    UprofOrcRule rule;

    return uprof_sym_orc(sym, pc - 1, &rule) && rule.type == UPROF_ORC_UNDEFINED &&
           uprof_sym_orc(sym, pc, &rule) && rule.type == UPROF_ORC_END;
}

/* What else the function has saved, and where, nobody says. */
static UprofStep
leave_call(const Frame *frame)
{
    UprofCursor *cursor = frame->cursor;
    uint64_t pc, bp = cursor->regs.fp;

    if (!read_word(frame, frame->cfa - WORD, &pc))
        return UPROF_STEP_CUT;
    const bool is_known = find_bp(frame, !(cursor->unknown & BIT(UPROF_X86_RBP)), &bp);
    cursor->regs.pc = pc;
    cursor->regs.sp = frame->cfa;
    cursor->regs.fp = bp;
    cursor->unknown = is_known ? ~BIT(UPROF_X86_RBP) : UINT64_MAX;
    cursor->is_return = !frame->rule.is_signal && !is_made_up(frame, pc);
    cursor->is_switched = frame->is_switched;
    return UPROF_STEP_OK;
}

/* All that was saved. What is below the stack pointer was popped, and is there already. */
static void
restore_regs(const Frame *frame, UprofCursor *caller)
{
    uint64_t unknown = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(pt_regs); i++) {
        const uint64_t slot = frame->cfa + i * WORD, bit = BIT(pt_regs[i]);
        if (!frame->is_switched && slot < frame->cursor->regs.sp)
            unknown |= caller->unknown & bit;
        else if (!read_word(frame, slot, place_of(&caller->regs, pt_regs[i])))
            unknown |= bit;
    }
    caller->unknown = unknown;
}

/* Newer processors have more in the rest of the word. Returns: 0 if it is no code's */
static unsigned
find_word_bytes(uint64_t cs)
{
    for (size_t i = 0; i < G_N_ELEMENTS(segments); i++)
        if ((uint16_t)cs == segments[i].selector)
            return segments[i].word_bytes;
    return 0;
}

/* The process goes on with what it called the kernel from, if that is known, and was copied. */
static UprofStep
enter_user_space(const Frame *frame, UprofCursor *caller, unsigned word_bytes)
{
    const UprofUnwindContext *context = frame->context;
    uint64_t word;

    if (!context->space || !uprof_space_has_process(context->space) ||
        !uprof_snapshot_read(context->snapshot, caller->regs.sp, &word, sizeof(word)))
        return UPROF_STEP_BASE;
    caller->regs.privilege = USER;
    caller->regs.word_bytes = (uint8_t)word_bytes;
    caller->is_return = false;
    *frame->cursor = *caller;
    return UPROF_STEP_OK;
}

/*
 * A system call begins, and ends, on the stack of the process, and the processor keeps in RCX
 * where it was called from (Intel SDM, volume 2, SYSCALL). What comes by an interrupt has the
 * kernel's stack from the beginning. Calls by 32-bit code are not told from others by that.
 */
static UprofStep
leave_system_call(const Frame *frame)
{
    UprofCursor caller = *frame->cursor;
    const UprofSymAnswer where = uprof_sym_find(frame->context->sym, caller.regs.pc, false);

    if (caller.is_return || caller.regs.privilege == USER || caller.unknown & BIT(UPROF_X86_RCX) ||
        caller.regs.sp >= KERNEL_FROM || strstr(uprof_name_text(where.name), "compat"))
        return UPROF_STEP_BASE;
    caller.regs.pc = caller.regs.reg[UPROF_X86_RCX];
    caller.unknown = BIT(UPROF_X86_RCX) | BIT(UPROF_X86_R8 + 3);
    caller.is_switched = true;
    return caller.regs.pc < KERNEL_FROM ? enter_user_space(frame, &caller, WORD) : UPROF_STEP_BASE;
}

static UprofStep
leave_interrupt(const Frame *frame)
{
    const bool has_all = frame->rule.type == UPROF_ORC_REGS;
    const uint64_t left = frame->cfa + (has_all ? PT_REGS_FRAME * WORD : 0);
    UprofCursor caller = *frame->cursor;
    uint64_t cs;

    if (!read_word(frame, left + FRAME_IP * WORD, &caller.regs.pc) ||
        !read_word(frame, left + FRAME_CS * WORD, &cs) ||
        !read_word(frame, left + FRAME_FLAGS * WORD, &caller.regs.flags) ||
        !read_word(frame, left + FRAME_SP * WORD, &caller.regs.sp))
        return UPROF_STEP_CUT;
    const unsigned word_bytes = find_word_bytes(cs);
    if (word_bytes == 0)
        return UPROF_STEP_LOST;
    if (has_all)
        restore_regs(frame, &caller);
    const bool is_known = find_bp(frame, !(caller.unknown & BIT(UPROF_X86_RBP)), &caller.regs.fp);
    caller.unknown = (caller.unknown & ~BIT(UPROF_X86_RBP)) | (is_known ? 0 : BIT(UPROF_X86_RBP));
    caller.is_return = !frame->rule.is_signal;
    caller.is_switched = true;
    if ((cs & USER) == USER)
        return enter_user_space(frame, &caller, word_bytes);
    *frame->cursor = caller;
    return UPROF_STEP_OK;
}

static UprofStep
leave(const Frame *frame)
{
    return frame->rule.type == UPROF_ORC_CALL ? leave_call(frame) : leave_interrupt(frame);
}

/* Where tables are wrong, nothing is: no code, and no user space. */
static bool
is_plausible(const Frame *frame, UprofStep answer)
{
    const UprofCursor *cursor = frame->cursor;

    if (answer != UPROF_STEP_OK || cursor->regs.privilege == USER)
        return answer == UPROF_STEP_OK || answer == UPROF_STEP_BASE;
    return uprof_sym_is_code(frame->context->sym, cursor->regs.pc - cursor->is_return);
}

/*
 * Return addresses that nobody will return to: calls to right behind the call, which the
 * kernel does to fill the processor's own stack of them when it changes tasks. (Linux,
 * arch/x86/include/asm/nospec-branch.h, __FILL_RETURN_BUFFER; it is one of several
 * pieces of code for the same place, and the table may be that of another one.)
 */
static unsigned
count_fillers(const Frame *frame)
{
    const UprofRegs *regs = &frame->cursor->regs;
    uint64_t word;
    unsigned n = 0;

    while (n < FILLERS_MAX && read_word(frame, regs->sp + n * WORD, &word) && word < regs->pc &&
           regs->pc - word <= FILLER_REACH)
        n++;
    return n;
}

/* Returns: false if there is no other way to see it */
static bool
correct(Frame *frame)
{
    if (frame->rule.type == UPROF_ORC_PARTIAL) {
        /* what is called first saves the rest, below its own return address (error_entry()) */
        frame->rule.type = UPROF_ORC_REGS;
        frame->cfa = frame->cursor->regs.sp;
        return true;
    }
    const unsigned n = frame->rule.type == UPROF_ORC_CALL ? count_fillers(frame) : 0;
    frame->cfa += n * WORD;
    return n > 0;
}

/*
 * Tables are right where the kernel uses them, and it mostly begins at a call. The other
 * places where they are not were found by looking at stacks.
 */
static UprofStep
leave_and_check(Frame *frame)
{
    const UprofCursor before = *frame->cursor;
    const UprofStep answer = leave(frame);

    if (is_plausible(frame, answer))
        return answer;
    const UprofCursor first = *frame->cursor;
    *frame->cursor = before;
    if (correct(frame)) {
        const UprofStep other = leave(frame);
        if (is_plausible(frame, other))
            return other;
    }
    *frame->cursor = first;
    return answer;
}

/*
 * Whether a function that is said to have no caller was called, and has just begun: so up to
 * 6.1 are the thunks that indirect calls go through. What they call pushes a word or two.
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
            uprof_x86_64_call_before(context, word, &target) == UPROF_CALL_DIRECT &&
            target == function.start)
            return true;
    return false;
}

UprofStep
uprof_orc_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    Frame frame = { .context = context, .cursor = cursor };

    if (cursor->regs.word_bytes != WORD ||
        !uprof_sym_orc(context->sym, cursor->regs.pc - cursor->is_return, &frame.rule))
        return UPROF_STEP_PASS;
    if (frame.rule.type == UPROF_ORC_UNDEFINED)
        return UPROF_STEP_PASS;
    if (frame.rule.type == UPROF_ORC_END)
        return was_called(&frame) ? UPROF_STEP_PASS : leave_system_call(&frame);
    const UprofStep answer = find_cfa(&frame);
    if (answer != UPROF_STEP_OK)
        return answer;
    return frame.rule.type == UPROF_ORC_CALL && cursor->is_return ? leave(&frame)
                                                                  : leave_and_check(&frame);
}
