/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cfi-step-priv.h"

#include "expr-priv.h"

#include <string.h>

typedef struct {
    const UprofSnapshot *snapshot;
    const UprofCursor *cursor; /* the frame, not its caller */
    const UprofCfi *cfi;
    const UprofArch *arch;
    const UprofCfiRule *rule;
    uint64_t cfa;
} Frame;

static uint64_t
truncate_to_word(const Frame *frame, uint64_t value)
{
    return frame->arch->word_bytes == 4 ? value & UINT32_MAX : value;
}

static bool
read_reg(const Frame *frame, unsigned reg, uint64_t *value)
{
    const UprofRegs *regs = &frame->cursor->regs;

    const bool is_always_known =
        reg == frame->arch->pc || (reg == frame->arch->sp && frame->arch->lr == 0);

    if (!is_always_known && frame->cursor->unknown >> reg & 1)
        return false;
    *value = truncate_to_word(frame, reg == frame->arch->pc   ? regs->pc
                                     : reg == frame->arch->sp ? regs->sp
                                     : reg == frame->arch->fp ? regs->fp
                                                              : regs->reg[reg]);
    return true;
}

/* @len: 1 to 8. All supported architectures are little-endian. */
static bool
read_number(const Frame *frame, uint64_t gva, unsigned len, uint64_t *value)
{
    uint64_t raw = 0;

    if (!uprof_snapshot_read(frame->snapshot, gva, &raw, len))
        return false;
    *value = GUINT64_FROM_LE(raw);
    return true;
}

static bool
expr_read_reg(void *data, uint64_t dwarf, uint64_t *value)
{
    const Frame *frame = data;
    unsigned reg;

    return uprof_arch_dwarf_reg(frame->arch, dwarf, &reg) && read_reg(frame, reg, value);
}

static bool
expr_read_memory(void *data, uint64_t gva, unsigned len, uint64_t *value)
{
    return read_number(data, gva, len, value);
}

static const UprofExprOps expr_ops = { expr_read_reg, expr_read_memory };

/* @first: (nullable): the value on the stack at the start */
static UprofStep
run_expression(Frame *frame, int32_t number, const uint64_t *first, uint64_t *value)
{
    const UprofExpr expr = { .code = uprof_cfi_expression(frame->cfi, number),
                             .word_bytes = frame->arch->word_bytes,
                             .big_endian = frame->arch->big_endian,
                             .ops = &expr_ops,
                             .data = frame };

    switch (uprof_expr_run(&expr, first, value)) {
    case UPROF_EXPR_OK:
        return UPROF_STEP_OK;
    case UPROF_EXPR_UNKNOWN:
        return UPROF_STEP_PASS;
    case UPROF_EXPR_CUT:
        return UPROF_STEP_CUT;
    default:
        return UPROF_STEP_LOST;
    }
}

/*
 * A return address is looked up by the call before it, which may be the last instruction of its
 * function. A signal frame has an address that no call precedes. In a return from a signal, the
 * address is behind the system call, which is the last instruction of the signal frame's code.
 */
static const UprofCfiRule *
find_rule(const UprofUnwindContext *context, const UprofCursor *cursor, const UprofCfi **cfi)
{
    const uint64_t pc = cursor->regs.pc;
    const UprofCfiRule *rule = uprof_sym_rule(
        context->sym, uprof_unwind_symbol_address(context, pc - cursor->is_return), cfi);

    if (rule)
        return rule;
    rule = uprof_sym_rule(context->sym,
                          uprof_unwind_symbol_address(context, pc - !cursor->is_return), cfi);
    return rule && (rule->flags & UPROF_CFI_SIGNAL) ? rule : NULL;
}

static UprofStep
find_cfa(Frame *frame)
{
    const UprofCfiRule *rule = frame->rule;
    const uint64_t sp = frame->cursor->regs.sp;
    uint64_t base;

    if (rule->cfa_how == UPROF_CFI_EXPRESSION)
        return run_expression(frame, rule->cfa_value, NULL, &frame->cfa);
    if (!read_reg(frame, rule->cfa_reg, &base))
        return UPROF_STEP_PASS;
    frame->cfa = truncate_to_word(frame, base + (uint64_t)(int64_t)rule->cfa_value);
    /* The frame pointer may hold anything. */
    if (rule->cfa_reg == frame->arch->fp &&
        (frame->cfa <= sp || frame->cfa - sp > UPROF_FRAME_BYTES_MAX))
        return UPROF_STEP_LOST;
    return UPROF_STEP_OK;
}

/*
 * Behind a "pop" a table may still say that the register is saved in a slot, which lies below the
 * stack pointer by then. The register itself has the value again. A call, or an interrupt that uses
 * the same stack (kernel code), may have overwritten the slot. In user code with a red zone the
 * slot still holds the value, and may be the only place that does.
 */
static bool
may_be_overwritten(const Frame *frame, uint64_t slot)
{
    const UprofRegs *regs = &frame->cursor->regs;

    return slot < regs->sp && (frame->cursor->is_return || regs->privilege == 0);
}

/* Reads @slot. If the slot may be overwritten or was not copied, uses the register itself. */
static UprofStep
load_slot(const Frame *frame, const UprofCfiSaved *saved, uint64_t slot, uint64_t *value)
{
    const bool is_pc = saved->reg == frame->arch->pc;

    if (is_pc || !may_be_overwritten(frame, slot))
        if (read_number(frame, slot, frame->arch->word_bytes, value))
            return UPROF_STEP_OK;
    if (is_pc)
        return UPROF_STEP_CUT;
    if (slot < frame->cursor->regs.sp && read_reg(frame, saved->reg, value))
        return UPROF_STEP_OK;
    return UPROF_STEP_PASS;
}

/* Returns: %UPROF_STEP_PASS if the value cannot be known */
static UprofStep
find_value(Frame *frame, const UprofCfiSaved *saved, uint64_t *value)
{
    const uint64_t at = truncate_to_word(frame, frame->cfa + (uint64_t)(int64_t)saved->value);
    uint64_t slot;

    switch (saved->how) {
    case UPROF_CFI_AT_OFFSET:
        return load_slot(frame, saved, at, value);
    case UPROF_CFI_OFFSET:
        *value = at;
        return UPROF_STEP_OK;
    case UPROF_CFI_REGISTER:
        return read_reg(frame, (unsigned)saved->value, value) ? UPROF_STEP_OK : UPROF_STEP_PASS;
    case UPROF_CFI_EXPRESSION:
        return run_expression(frame, saved->value, &frame->cfa, value);
    case UPROF_CFI_AT_EXPRESSION: {
        const UprofStep answer = run_expression(frame, saved->value, &frame->cfa, &slot);
        return answer == UPROF_STEP_OK ? load_slot(frame, saved, slot, value) : answer;
    }
    default:
        return UPROF_STEP_PASS;
    }
}

static void
write_reg(const UprofArch *arch, UprofCursor *cursor, unsigned reg, uint64_t value)
{
    UprofRegs *regs = &cursor->regs;

    if (reg == arch->pc)
        regs->pc = value;
    else if (reg == arch->sp)
        regs->sp = value;
    else if (reg == arch->fp)
        regs->fp = value;
    else
        regs->reg[reg] = value;
}

/* A call has overwritten the register with the return address. */
static uint64_t
get_unknown_of_caller(const UprofArch *arch, uint64_t unknown, bool is_return)
{
    unknown &= ~(UINT64_C(1) << arch->sp);
    return arch->lr != 0 && is_return ? unknown | UINT64_C(1) << arch->lr : unknown;
}

static uint64_t
get_plain_pc(const Frame *frame, uint64_t pc)
{
    return uprof_regs_plain_address(frame->arch, &frame->snapshot->regs, pc);
}

/* All values depend on the frame's registers: none is written before all are found. */
static UprofStep
restore_regs(Frame *frame, UprofCursor *caller)
{
    const UprofCfiSaved *saved = uprof_cfi_saved(frame->cfi, frame->rule);
    const UprofArch *arch = frame->arch;
    uint64_t values[UPROF_REGS_MAX];
    uint64_t unknown = caller->unknown;

    for (unsigned i = 0; i < frame->rule->n_saved; i++) {
        const UprofStep answer = find_value(frame, &saved[i], &values[i]);
        const uint64_t bit = UINT64_C(1) << saved[i].reg;

        if (answer == UPROF_STEP_OK)
            unknown &= ~bit;
        else if (saved[i].reg == arch->pc || saved[i].reg == arch->sp)
            return answer;
        else
            unknown |= bit;
        if (saved[i].reg == arch->pc && values[i] == 0)
            return UPROF_STEP_BASE;
    }
    caller->regs.sp = frame->cfa;
    for (unsigned i = 0; i < frame->rule->n_saved; i++)
        if (!(unknown >> saved[i].reg & 1))
            write_reg(arch, caller, saved[i].reg, values[i]);
    caller->regs.pc = get_plain_pc(frame, caller->regs.pc);
    caller->is_return = !(frame->rule->flags & UPROF_CFI_SIGNAL);
    caller->unknown = get_unknown_of_caller(arch, unknown, caller->is_return);
    /* a handler may have a stack of its own */
    caller->is_switched = !caller->is_return;
    caller->how = UPROF_HOW_CFI;
    return UPROF_STEP_OK;
}

/*
 * A fast path for most rules of 64-bit code. It does the same as find_cfa() and restore_regs(), but
 * makes all checks first.
 *
 * Returns: false, with nothing changed, if the slow path is needed
 */
static bool
restore_quickly(const Frame *frame, UprofCursor *cursor)
{
    const UprofCfiRule *rule = frame->rule;
    const UprofArch *arch = frame->arch;
    const UprofWindow *window = &frame->snapshot->windows[0];
    UprofRegs *regs = &cursor->regs;
    const uint64_t sp = regs->sp, fp_bit = UINT64_C(1) << arch->fp;
    const uint64_t base = rule->cfa_reg == arch->sp ? sp : regs->fp;
    const uint64_t cfa = base + (uint64_t)(int64_t)rule->cfa_value;
    uint64_t pc = 0, known = 0;

    if (rule->reach == 0 || arch->word_bytes != sizeof(pc) || frame->snapshot->n_windows == 0 ||
        (rule->cfa_reg == arch->fp && cursor->unknown & fp_bit) ||
        (arch->lr != 0 && cursor->unknown >> arch->sp & 1))
        return false;
    /* All slots lie between the stack pointer and the CFA, and in the first window. */
    if (cfa <= sp || cfa - sp < rule->reach || cfa - sp > UPROF_FRAME_BYTES_MAX ||
        sp < window->gva || cfa - window->gva > window->len)
        return false;
    const uint8_t *top = frame->snapshot->bytes + window->offset + (cfa - window->gva);
    const UprofCfiSaved *saved = uprof_cfi_saved(frame->cfi, rule);
    /* Registers are sorted by number, and the program counter has the highest. */
    memcpy(&pc, top + saved[rule->n_saved - 1].value, sizeof(pc));
    if (pc == 0)
        return false;
    for (unsigned i = 0; i + 1 < rule->n_saved; i++) {
        uint64_t *to = saved[i].reg == arch->fp ? &regs->fp : &regs->reg[saved[i].reg];
        memcpy(to, top + saved[i].value, sizeof(*to));
        *to = GUINT64_FROM_LE(*to);
        known |= UINT64_C(1) << saved[i].reg;
    }
    regs->pc = get_plain_pc(frame, GUINT64_FROM_LE(pc));
    regs->sp = cfa;
    cursor->unknown = get_unknown_of_caller(arch, cursor->unknown & ~known, true);
    cursor->is_return = true;
    cursor->how = UPROF_HOW_CFI;
    return true;
}

/* The function has changed to another stack. */
static UprofStep
leave_stack(const UprofUnwindContext *context, UprofCursor *cursor)
{
    UprofFunction function;

    if (!context->runtimes || !uprof_unwind_function(context, cursor, &function))
        return UPROF_STEP_CUT;
    switch (uprof_runtimes_leave_go_stack(context->runtimes, function.start,
                                          function.symbol_address, &cursor->regs)) {
    case UPROF_GO_NONE:
        return UPROF_STEP_BASE;
    case UPROF_GO_FOUND:
        cursor->unknown = ~UINT64_C(0);
        cursor->is_return = true;
        cursor->is_switched = true;
        cursor->how = UPROF_HOW_CFI;
        return UPROF_STEP_OK;
    default:
        return UPROF_STEP_CUT;
    }
}

UprofStep
uprof_cfi_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    Frame frame = { .snapshot = context->snapshot, .cursor = cursor };

    frame.rule = find_rule(context, cursor, &frame.cfi);
    if (!frame.rule)
        return UPROF_STEP_PASS;
    frame.arch = uprof_cfi_arch(frame.cfi);
    /* The image is of another mode than the code that runs. */
    if (cursor->regs.word_bytes != frame.arch->word_bytes)
        return UPROF_STEP_PASS;
    if (frame.rule->flags & UPROF_CFI_END)
        return UPROF_STEP_BASE;
    if (frame.rule->flags & UPROF_CFI_SWITCHED)
        return leave_stack(context, cursor);
    if (restore_quickly(&frame, cursor))
        return UPROF_STEP_OK;
    const UprofStep answer = find_cfa(&frame);
    if (answer == UPROF_STEP_OK && (frame.rule->flags & UPROF_CFI_GO) && context->runtimes)
        uprof_runtimes_note_go_signal(context->runtimes, frame.cfa);
    return answer == UPROF_STEP_OK ? restore_regs(&frame, cursor) : answer;
}
