/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-step-x86_64-priv.h"

#include "code-frame-priv.h"
#include "code-role-priv.h"
#include "code-starts-priv.h"
#include "uprof/clock.h"

enum {
    AHEAD_WORK = 800, /* instructions */
    AHEAD_EXITS = 2,
    FAR_WORK = 8000,
    FAR_EXITS = 12,
    FIRST_STARTS = 3,
    DEEP_STARTS = 4, /* of each kind */
    FAILURES_MAX = 3,
    WAITS_MAX = 6, /* the wait for the next search doubles at most so many times */
    CUT_WAIT_MS = 100,
    UCONTEXT_REGS = 40, /* bytes from rt_sigreturn()'s stack pointer (Linux, struct rt_sigframe) */
};

static bool
try_rule(UprofCodeFrame *frame, const UprofCodeRule *rule)
{
    UprofSlotCheck check;

    if (rule->is_interrupt)
        return uprof_code_frame_leave_interrupt(frame, rule);
    if (!uprof_code_frame_check(frame, rule, &check))
        return false;
    uprof_code_frame_leave(frame, rule, &check);
    return true;
}

static bool
try_rules(UprofCodeFrame *frame)
{
    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < frame->facts->n_rules; i++) {
            const UprofCodeRule *rule = &frame->facts->rules[i];
            if (rule->is_jump == (pass == 1) && try_rule(frame, rule))
                return true;
        }
    return false;
}

/*
 * Behind a call that never returns, the next function may begin. The end of that function says
 * nothing about the frame.
 */
static void
walk_ahead(UprofCodeFrame *frame, unsigned work_max, unsigned n_exits_max)
{
    const UprofRegs *regs = &frame->cursor->regs;
    const UprofCodeBounds bounds = { .word_bytes = regs->word_bytes,
                                     .is_kernel = regs->privilege == 0,
                                     .end = frame->end,
                                     .work_max = work_max,
                                     .n_exits_max = n_exits_max,
                                     .is_thorough = true };
    UprofCodeExits exits = { 0 };

    if (frame->cursor->is_return &&
        ((frame->end != 0 && frame->pc >= frame->end) ||
         uprof_code_begins_function(frame->tools->text, frame->pc, regs->word_bytes)))
        return;
    uprof_code_walk_ahead(frame->tools->walk, &bounds, frame->pc, &exits);
    for (unsigned i = 0; i < exits.n; i++)
        uprof_code_facts_add(frame->facts, &exits.rules[i]);
    frame->facts->has_jump = exits.has_jump;
    frame->facts->jump_sp = exits.jump_sp;
    frame->facts->is_long = exits.is_long;
    frame->facts->has_other_exit |= exits.has_other_exit;
}

/*
 * A start that leads to the frame gives the frame's height. If the return address there follows a
 * direct call of another function, and this function leads to the frame with another height, the
 * start was wrong.
 */
static bool
try_start(UprofCodeFrame *frame, uint64_t start)
{
    UprofCodeText *text = frame->tools->text;
    const UprofCodeReach *reach = uprof_code_frame_reach(frame, start);
    UprofSlotCheck check;
    uint64_t target, slot;

    if (frame->n_starts < UPROF_FRAME_STARTS_MAX)
        frame->starts[frame->n_starts++] = start;
    if (!reach)
        return false;
    frame->facts->is_zero_fp |= frame->n_starts == 1 && reach->is_zero_fp;
    /* a return address at @start would mean that @start is in the function that made the call */
    if (!reach->is_reached || !uprof_code_frame_check(frame, &reach->rule, &check) ||
        check.pc == start)
        return false;
    const UprofCodeRule rule = reach->rule;
    if (uprof_code_text_call(text, check.pc, &target) == UPROF_CALL_DIRECT && target != start &&
        uprof_code_text_is_code(text, target)) {
        reach = uprof_code_frame_reach(frame, target);
        if (reach && reach->is_reached && uprof_code_frame_slot(frame, &reach->rule, &slot) &&
            slot != check.slot)
            return false;
    }
    uprof_code_facts_add(frame->facts, &rule);
    uprof_code_frame_leave(frame, &rule, &check);
    return true;
}

/* @n: how many starts are tried */
static bool
try_starts(UprofCodeFrame *frame, UprofCodeStarts *starts, unsigned n)
{
    uint64_t start;

    for (unsigned i = 0; i < n && uprof_code_starts_next(starts, &start); i++)
        if (start != frame->start && try_start(frame, start))
            return true;
    return false;
}

static void
begin_starts(const UprofCodeFrame *frame, UprofStartKind kind, UprofCodeStarts *starts)
{
    uprof_code_starts_begin(starts, frame->tools->text, kind, frame->pc - frame->cursor->is_return,
                            frame->cursor->regs.word_bytes);
}

static void
find_function(UprofCodeFrame *frame)
{
    UprofFunction function;

    if (frame->start != 0 || !uprof_unwind_function(frame->context, frame->cursor, &function))
        return;
    frame->start = function.start;
    frame->end = function.start + function.len;
    frame->facts->is_entry = function.is_entry;
}

/*
 * Most frames are near the start of their function. In a large function, a direct call on the stack
 * tells more than starts that are farther away.
 */
static bool
search_by(UprofCodeFrame *frame, bool is_deep)
{
    const unsigned n = is_deep ? DEEP_STARTS : UPROF_FRAME_STARTS_NEAR_MAX;
    UprofCodeStarts starts;

    uprof_code_text_set_reserve(frame->tools->text, is_deep ? UPROF_TEXT_RESERVE_OF_LONG_SEARCH
                                                            : UPROF_TEXT_RESERVE_OF_SEARCH);
    frame->is_deep = is_deep;
    frame->n_starts = 0;
    begin_starts(frame, UPROF_START_ALIGNED, &starts);
    if ((frame->start != 0 && try_start(frame, frame->start)) ||
        try_starts(frame, &starts, FIRST_STARTS) || uprof_code_frame_scan(frame, true) ||
        try_starts(frame, &starts, n - FIRST_STARTS))
        return true;
    begin_starts(frame, UPROF_START_ANYWHERE, &starts);
    return try_starts(frame, &starts, n) || uprof_code_frame_scan(frame, false);
}

/* The end of the function may be far. */
static bool
search_far(UprofCodeFrame *frame)
{
    if (frame->facts->is_walked_far)
        return false;
    walk_ahead(frame, FAR_WORK, FAR_EXITS);
    frame->facts->is_walked_far = true;
    return try_rules(frame);
}

static bool
search_everywhere(UprofCodeFrame *frame)
{
    find_function(frame);
    if (frame->facts->is_long && !frame->facts->has_jump && search_far(frame))
        return true;
    return search_by(frame, false) || search_far(frame) || search_by(frame, true);
}

/*
 * A search that finds nothing is expensive, and mostly finds nothing in the next sample either. So
 * the next one at this address waits for a second, then for two, and so on. The copied part of the
 * stack grows if stacks are cut, so that such a search soon finds more.
 *
 * Returns: true if the cursor is at the caller now
 */
static bool
search_caller(UprofCodeFrame *frame)
{
    UprofCodeFacts *facts = frame->facts;
    const uint64_t now_ns = frame->context->snapshot->time_ns;

    frame->has_searched = facts->n_failures < FAILURES_MAX && now_ns >= facts->search_ns;
    if (!frame->has_searched) {
        frame->is_cut = facts->is_cut;
        return false;
    }
    if (search_everywhere(frame))
        return true;
    facts->is_cut = frame->is_cut;
    facts->first_start = frame->n_starts > 0 ? frame->starts[0] : 0;
    facts->search_ns = now_ns + (frame->is_cut ? CUT_WAIT_MS * UPROF_NS_PER_MS
                                               : UPROF_NS_PER_S << facts->n_searches);
    facts->n_searches = MIN(facts->n_searches + 1, WAITS_MAX);
    return false;
}

/*
 * JIT compilers keep frame records, but some functions do not make their record themselves: in
 * Node.js, their first instruction calls a common function that makes it. So the function's code
 * does not show that there is a record. The stack must show it: the next record is farther up the
 * stack. A function that runs and has a return address on top of the stack may not have made its
 * record yet.
 */
static bool
has_generated_record(const UprofCodeFrame *frame)
{
    const UprofUnwindContext *context = frame->context;
    const UprofRegs *regs = &frame->cursor->regs;
    uint64_t next, top;

    return frame->is_generated && regs->fp >= regs->sp &&
           uprof_unwind_read_word(context, regs, regs->fp, &next) &&
           (next == 0 || next > regs->fp) &&
           (frame->cursor->is_return || !uprof_unwind_read_word(context, regs, regs->sp, &top) ||
            !uprof_code_is_return(frame->tools->text, top));
}

/* The function makes a frame record, but no walk leads to the frame. */
static bool
try_record(UprofCodeFrame *frame)
{
    const int word_bytes = frame->cursor->regs.word_bytes;
    const uint64_t start = frame->facts->first_start;
    UprofCodeRule rule = { .slot = uprof_value_add(uprof_value_of(UPROF_X86_RBP), word_bytes) };
    UprofSlotCheck check;

    if (!has_generated_record(frame) &&
        (start == 0 || !uprof_code_makes_record(frame->tools->text, start)))
        return false;
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++)
        rule.saved[i] = uprof_code_saved_reg(i, (unsigned)word_bytes) == UPROF_X86_RBP
                            ? uprof_value_load(uprof_value_of(UPROF_X86_RBP))
                            : uprof_value_of(UPROF_VALUE_UNKNOWN);
    if (!uprof_code_frame_check(frame, &rule, &check))
        return false;
    uprof_code_frame_leave(frame, &rule, &check);
    return true;
}

/* The frame is the outermost one, by what its stack and its registers hold. */
static bool
is_root(const UprofCodeFrame *frame)
{
    const UprofCursor *cursor = frame->cursor;

    if (frame->has_zero || frame->facts->is_zero_fp)
        return true;
    return cursor->how == UPROF_HOW_FP && cursor->regs.fp == 0 &&
           !(cursor->unknown >> UPROF_X86_RBP & 1);
}

/*
 * Has the kernel's function begun the stack on which it has called? The way from the start of the
 * function must say so, and a symbol must say where this start is.
 */
static bool
is_on_fresh_stack(UprofCodeFrame *frame)
{
    UprofCodeFacts *facts = frame->facts;

    if (!frame->cursor->is_return || frame->cursor->regs.privilege != 0 || !frame->is_known ||
        frame->is_cut || facts->has_other_exit)
        return false;
    if (!facts->has_start) {
        find_function(frame);
        const UprofCodeReach *reach =
            frame->start != 0 ? uprof_code_frame_reach(frame, frame->start) : NULL;
        facts->is_fresh_stack = reach && reach->is_fresh_stack;
        facts->has_start = !uprof_code_text_is_spent(frame->tools->text);
    }
    return facts->is_fresh_stack;
}

/* The caller is found. But if it is a process, the frame is the first one of the kernel. */
static UprofStep
end_at_entry(const UprofCodeFrame *frame)
{
    const UprofSpace *space = frame->context->space;

    if (!frame->is_entered)
        return UPROF_STEP_OK;
    return space && uprof_space_is_of_process(space) ? UPROF_STEP_PROCESS : UPROF_STEP_BASE;
}

static UprofStep
find_caller(UprofCodeFrame *frame)
{
    if (frame->facts->is_new) {
        walk_ahead(frame, AHEAD_WORK, AHEAD_EXITS);
        frame->facts->is_new = uprof_code_text_is_spent(frame->tools->text);
    }
    if (try_rules(frame))
        return end_at_entry(frame);
    if (is_on_fresh_stack(frame))
        return UPROF_STEP_BASE;
    if (frame->is_cut)
        return is_root(frame) ? UPROF_STEP_BASE : UPROF_STEP_CUT;
    if (search_caller(frame))
        return end_at_entry(frame);
    if (try_record(frame))
        return UPROF_STEP_OK;
    if (is_root(frame))
        return UPROF_STEP_BASE;
    frame->facts->n_failures +=
        frame->has_searched && !uprof_code_text_is_spent(frame->tools->text);
    return frame->is_cut ? UPROF_STEP_CUT : UPROF_STEP_PASS;
}

static UprofStep
return_from_signal(const UprofUnwindContext *context, UprofCursor *cursor)
{
    static const uint8_t order[] = { 8,
                                     9,
                                     10,
                                     11,
                                     12,
                                     13,
                                     14,
                                     15,
                                     UPROF_X86_RDI,
                                     UPROF_X86_RSI,
                                     UPROF_X86_RBP,
                                     UPROF_X86_RBX,
                                     UPROF_X86_RDX,
                                     UPROF_X86_RAX,
                                     UPROF_X86_RCX,
                                     UPROF_X86_RSP,
                                     UPROF_X86_RIP };
    uint64_t values[G_N_ELEMENTS(order)];

    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++)
        if (!uprof_unwind_read_word(context, &cursor->regs,
                                    cursor->regs.sp + UCONTEXT_REGS + i * sizeof(values[0]),
                                    &values[i]))
            return UPROF_STEP_CUT;
    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++)
        if (order[i] < UPROF_X86_RIP)
            cursor->regs.reg[order[i]] = values[i];
    cursor->regs.fp = cursor->regs.reg[UPROF_X86_RBP];
    cursor->regs.sp = cursor->regs.reg[UPROF_X86_RSP];
    cursor->regs.pc = values[G_N_ELEMENTS(order) - 1];
    cursor->unknown = 0;
    cursor->is_return = false;
    cursor->is_switched = true; /* a handler may have a stack of its own */
    cursor->how = UPROF_HOW_CODE;
    return UPROF_STEP_OK;
}

/*
 * Code of files stays what it is. The kernel patches its own code, and loads other modules. All
 * other code may have been generated a moment ago.
 */
static void
find_kind(UprofCodeFrame *frame)
{
    const UprofUnwindContext *context = frame->context;
    const uint64_t pc = frame->pc - frame->cursor->is_return;
    const uint64_t symbol_address = uprof_unwind_symbol_address(context, pc);

    frame->is_known = uprof_sym_is_code(context->sym, symbol_address);
    frame->is_file = frame->is_known && pc < UPROF_UPPER_HALF;
    frame->is_generated = uprof_sym_is_process_address(symbol_address);
}

/* Few functions begin or end farther away than NEAR, and those have a table or a frame record. */
static void
refresh_text(const UprofCodeFrame *frame)
{
    enum { NEAR = 512 };

    uprof_code_text_refresh(frame->tools->text, frame->pc);
    if (frame->pc >= NEAR && frame->pc <= UINT64_MAX - NEAR) {
        uprof_code_text_refresh(frame->tools->text, frame->pc - NEAR);
        uprof_code_text_refresh(frame->tools->text, frame->pc + NEAR);
    }
}

/*
 * The entry of a kernel's image waits for its first call to return. Nothing has called the entry,
 * whatever is on the stack. The entry of a shared library says less.
 */
static bool
is_entry_of_kernel(const UprofCodeFrame *frame)
{
    return frame->facts->is_entry && frame->cursor->is_return &&
           frame->cursor->regs.privilege == 0 && !frame->is_generated;
}

UprofStep
uprof_code_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    const UprofCodeTools *tools = uprof_cache_code_tools(context);
    const UprofRegs *regs = &cursor->regs;
    UprofCodeFrame frame = { .context = context, .cursor = cursor, .tools = tools, .pc = regs->pc };

    if (regs->word_bytes != 8 && regs->word_bytes != 4)
        return UPROF_STEP_PASS;
    uprof_code_text_set_frame(tools->text, regs);
    find_kind(&frame);
    const UprofCodeKey key = { .number = uprof_code_text_key(tools->text, regs->pc),
                               .is_return = cursor->is_return,
                               .word_bytes = regs->word_bytes };
    frame.facts =
        uprof_code_memo_facts(tools->memo, &key, context->snapshot->time_ns, frame.is_file);
    if (frame.facts->is_new && frame.is_file)
        uprof_kept_rules_fill(tools->kept, frame.facts);
    if (frame.facts->is_new) {
        if (!frame.is_known)
            refresh_text(&frame);
        frame.facts->role =
            uprof_code_find_role(tools->text, regs->pc, cursor->is_return, regs->privilege == 0);
        find_function(&frame);
    }
    if (frame.facts->role == UPROF_ROLE_ROOT || is_entry_of_kernel(&frame))
        return UPROF_STEP_BASE;
    if (frame.facts->role == UPROF_ROLE_SIGNAL && regs->word_bytes == 8)
        return return_from_signal(context, cursor);
    return find_caller(&frame);
}
