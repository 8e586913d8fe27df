/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-walk-priv.h"

#include <string.h>

#include "code-rule-priv.h"

enum {
    STATES = 256,       /* paths that wait */
    VISITS = 64 * 1024, /* of instructions with a state, in the longest walk */
    VISITS_MIN = 1024,
    PROBES_MAX = 64,
    VISITS_OF_INSN = 3, /* with different states */
    CALL_COST = 6,      /* instructions: a path with fewer calls is more probable */
    SWITCH_COST = 16,   /* a path goes on until another one is so much cheaper */
    FILL_INSNS_MAX = 12,
    FUNCTION_ALIGN = 16,
};

typedef struct {
    uint32_t tag;  /* a hash */
    uint32_t walk; /* the entry is of an earlier walk if the number differs */
} Visit;

struct _UprofCodeWalk {
    UprofCodeText *text; /* borrowed */
    const UprofCodeBounds *bounds;
    uint64_t target;       /* 0: the walk looks for exits */
    UprofCodeExits *exits; /* of a walk ahead */
    unsigned n_returns;
    bool is_reached, has_jump, is_long;

    UprofCodeState *states[STATES]; /* owned; (nullable): made when they are needed */
    uint16_t free[STATES], heap[STATES];
    unsigned n_free, n_heap;
    uint32_t number; /* of this walk */
    size_t n_visits; /* of this walk */
    Visit *visits;   /* owned; @n_visits_max */
    size_t n_visits_max;
    UprofCodeState at_target, at_jump;
};

/* The effect of an instruction on the walk. */
typedef enum {
    GOES_ON,
    PATH_ENDS,
    WALK_ENDS,
} Flow;

UprofCodeWalk *
uprof_code_walk_new(UprofCodeText *text)
{
    UprofCodeWalk *walk = g_new0(UprofCodeWalk, 1);

    walk->text = text;
    return walk;
}

void
uprof_code_walk_free(UprofCodeWalk *walk)
{
    if (!walk)
        return;
    for (unsigned i = 0; i < STATES; i++)
        g_free(walk->states[i]);
    g_free(walk->visits);
    g_free(walk);
}

static unsigned
get_cost(const UprofCodeWalk *walk, unsigned at)
{
    return walk->states[walk->heap[at]]->cost;
}

static void
swap_states(UprofCodeWalk *walk, unsigned one, unsigned other)
{
    const uint16_t state = walk->heap[one];

    walk->heap[one] = walk->heap[other];
    walk->heap[other] = state;
}

static void
push_state(UprofCodeWalk *walk, unsigned state)
{
    unsigned at = walk->n_heap++;

    walk->heap[at] = (uint16_t)state;
    for (; at > 0 && get_cost(walk, (at - 1) / 2) > get_cost(walk, at); at = (at - 1) / 2)
        swap_states(walk, at, (at - 1) / 2);
}

/* Returns: the cheapest state */
static unsigned
pop_state(UprofCodeWalk *walk)
{
    const unsigned first = walk->heap[0];
    unsigned at = 0;

    walk->heap[0] = walk->heap[--walk->n_heap];
    for (;;) {
        unsigned child = 2 * at + 1;
        if (child + 1 < walk->n_heap && get_cost(walk, child + 1) < get_cost(walk, child))
            child++;
        if (child >= walk->n_heap || get_cost(walk, child) >= get_cost(walk, at))
            return first;
        swap_states(walk, at, child);
        at = child;
    }
}

/* Returns: the number of a state that is free */
static unsigned
take_state(UprofCodeWalk *walk)
{
    const unsigned number = walk->free[--walk->n_free];

    if (!walk->states[number])
        walk->states[number] = g_new(UprofCodeState, 1);
    return number;
}

static void
fork_state(UprofCodeWalk *walk, const UprofCodeState *state, uint64_t pc)
{
    if (walk->n_free == 0)
        return;
    const unsigned number = take_state(walk);
    UprofCodeState *other = walk->states[number];

    uprof_code_state_copy(other, state);
    other->pc = pc;
    other->compared = 0;
    other->cost++;
    push_state(walk, number);
}

/* Returns: true the first time in this walk */
static bool
note_visit(UprofCodeWalk *walk, uint64_t hash)
{
    const uint64_t mixed = (hash ^ hash >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    const uint32_t tag = (uint32_t)mixed;
    const size_t first = (size_t)(mixed >> 40);

    for (unsigned i = 0; i < PROBES_MAX; i++) {
        Visit *visit = &walk->visits[(first + i) & (walk->n_visits - 1)];
        if (visit->walk == walk->number && visit->tag == tag)
            return false;
        if (visit->walk != walk->number) {
            *visit = (Visit){ tag, walk->number };
            return true;
        }
    }
    return false;
}

/* An instruction is visited once with the same pointers, and a few times with different ones. */
static bool
may_visit(UprofCodeWalk *walk, const UprofCodeState *state)
{
    const unsigned n = walk->bounds->is_thorough ? VISITS_OF_INSN : 1;
    const uint64_t sp = state->pc * 1000003 ^ uprof_value_hash(&state->regs[UPROF_X86_RSP]);
    const uint64_t both = sp * 31 + uprof_value_hash(&state->regs[UPROF_X86_RBP]);

    if (!note_visit(walk, both * 2 + 1))
        return false;
    for (unsigned i = 0; i < n; i++)
        if (note_visit(walk, (sp + i * UINT64_C(0x1234567)) * 2 + 2))
            return true;
    return false;
}

bool
uprof_code_begins_function(UprofCodeText *text, uint64_t pc, unsigned word_bytes)
{
    bool is_filled = false;
    UprofX86Insn insn;

    for (unsigned i = 0;; i++) {
        if (i == FILL_INSNS_MAX || !uprof_code_text_spend(text, 1) ||
            !uprof_code_text_insn(text, pc, &insn))
            return true;
        if (insn.kind == UPROF_X86_STOP)
            return true;
        if (insn.kind != UPROF_X86_NOP)
            break;
        is_filled = true;
        pc += insn.len;
    }
    if (pc % FUNCTION_ALIGN != 0 && !is_filled)
        return false;
    if (insn.kind == UPROF_X86_MARK)
        return true;
    if (pc % FUNCTION_ALIGN != 0)
        return false;
    if (insn.kind == UPROF_X86_PUSH && insn.from != UPROF_X86_REG_NONE)
        return uprof_code_saved_regs(word_bytes) >> insn.from & 1;
    return insn.kind == UPROF_X86_ADD && insn.to == UPROF_X86_RSP && insn.from == UPROF_X86_RSP &&
           insn.value < 0;
}

/* Does the function that @call calls never return? @pc: the address behind the call */
static bool
is_call_final(UprofCodeWalk *walk, uint64_t call, uint64_t pc)
{
    const uint64_t end = walk->bounds->end;

    return (end != 0 && call < end && pc >= end) ||
           uprof_code_begins_function(walk->text, pc, walk->bounds->word_bytes);
}

/* Adds the rule, or improves a rule that leads to the same return address. */
static void
add_exit(UprofCodeWalk *walk, const UprofCodeRule *rule)
{
    UprofCodeExits *exits = walk->exits;

    for (unsigned i = 0; i < exits->n; i++) {
        if (!uprof_value_is_same(&exits->rules[i].slot, &rule->slot) ||
            exits->rules[i].is_interrupt != rule->is_interrupt)
            continue;
        if (exits->rules[i].is_jump && !rule->is_jump)
            exits->rules[i] = *rule;
        return;
    }
    if (exits->n < UPROF_CODE_EXITS_MAX)
        exits->rules[exits->n++] = *rule;
}

/* The code leaves its function. @is_jump: perhaps */
static Flow
leave_function(UprofCodeWalk *walk, const UprofCodeState *state, const UprofX86Insn *insn,
               bool is_jump)
{
    UprofCodeRule rule;

    if (walk->target != 0)
        return PATH_ENDS;
    const bool is_known = uprof_code_rule_at_exit(state, walk->bounds->word_bytes, &rule);
    walk->exits->has_other_exit |= !is_jump && (!is_known || rule.slot.base != UPROF_X86_RSP);
    if (!is_known)
        return PATH_ENDS;
    rule.is_jump = is_jump;
    rule.is_return = insn->kind == UPROF_X86_RETURN;
    rule.is_interrupt = insn->kind == UPROF_X86_IRET;
    rule.n_popped = insn->kind == UPROF_X86_RETURN ? (uint16_t)insn->value : 0;
    add_exit(walk, &rule);
    if (!is_jump && ++walk->n_returns >= walk->bounds->n_exits_max)
        return WALK_ENDS;
    return PATH_ENDS;
}

/* A jump that cannot be followed: through a table in this function, or to another function. */
static Flow
meet_jump(UprofCodeWalk *walk, const UprofCodeState *state, const UprofX86Insn *insn)
{
    const UprofValue *sp = &state->regs[UPROF_X86_RSP];

    if (walk->target == 0) {
        if (!walk->exits->has_jump) {
            walk->exits->has_jump = true;
            walk->exits->jump_sp = *sp;
        }
    } else if (!walk->has_jump && !uprof_value_is_reg(sp, UPROF_X86_RSP)) {
        /* a function that has removed its frame has ended, so such a jump leads to another function
         */
        uprof_code_state_copy(&walk->at_jump, state);
        walk->has_jump = true;
    }
    return insn->kind == UPROF_X86_JUMP_TABLE ? PATH_ENDS : leave_function(walk, state, insn, true);
}

static uint64_t
find_target(const UprofCodeWalk *walk, uint64_t next, const UprofX86Insn *insn)
{
    const uint64_t target = next + (uint64_t)insn->value;

    return walk->bounds->word_bytes == 4 ? target & UINT32_MAX : target;
}

static Flow
follow_call(UprofCodeWalk *walk, UprofCodeState *state, const UprofX86Insn *insn)
{
    const uint64_t call = state->pc;

    uprof_code_state_apply(state, insn, walk->bounds->word_bytes);
    state->pc += insn->len;
    state->cost += CALL_COST;
    /* the frame may itself wait for a call that never returns */
    if (walk->target != 0 && state->pc == walk->target)
        return GOES_ON;
    return is_call_final(walk, call, state->pc) ? PATH_ENDS : GOES_ON;
}

static Flow
follow_branch(UprofCodeWalk *walk, UprofCodeState *state, const UprofX86Insn *insn)
{
    const uint64_t next = state->pc + insn->len;
    const unsigned compared = state->compared;

    uprof_code_state_apply(state, insn, walk->bounds->word_bytes);
    fork_state(walk, state, find_target(walk, next, insn));
    /* a loop moves the stack pointer until it equals the other register */
    if (compared != 0 && insn->is_unequal)
        state->regs[UPROF_X86_RSP] = state->regs[compared - 1];
    state->pc = next;
    return GOES_ON;
}

static Flow
follow_insn(UprofCodeWalk *walk, UprofCodeState *state, const UprofX86Insn *insn)
{
    const uint64_t next = state->pc + insn->len;

    switch (insn->kind) {
    case UPROF_X86_RETURN:
    case UPROF_X86_JUMP_FIXED:
        return leave_function(walk, state, insn, false);
    case UPROF_X86_JUMP_ANY:
    case UPROF_X86_JUMP_TABLE:
        return meet_jump(walk, state, insn);
    case UPROF_X86_JUMP:
        state->pc = find_target(walk, next, insn);
        state->compared = 0;
        return uprof_code_text_is_code(walk->text, state->pc)
                   ? GOES_ON
                   : leave_function(walk, state, insn, true);
    case UPROF_X86_BRANCH:
        return follow_branch(walk, state, insn);
    case UPROF_X86_CALL:
    case UPROF_X86_CALL_ANY:
        return follow_call(walk, state, insn);
    case UPROF_X86_STOP:
        return PATH_ENDS;
    case UPROF_X86_IRET:
        return walk->bounds->is_kernel ? leave_function(walk, state, insn, false) : PATH_ENDS;
    case UPROF_X86_HALT:
        if (!walk->bounds->is_kernel)
            return PATH_ENDS;
        G_GNUC_FALLTHROUGH;
    default:
        uprof_code_state_apply(state, insn, walk->bounds->word_bytes);
        state->pc = next;
        return GOES_ON;
    }
}

/*
 * Follows the path of state @number until it ends, or another path is cheaper.
 * @n_left: (inout): instructions
 */
static Flow
follow_path(UprofCodeWalk *walk, unsigned number, unsigned *n_left)
{
    UprofCodeState *state = walk->states[number];
    Flow flow = GOES_ON;
    UprofX86Insn insn;

    while (flow == GOES_ON) {
        if (walk->target != 0 && state->pc == walk->target) {
            uprof_code_state_copy(&walk->at_target, state);
            walk->is_reached = true;
            return WALK_ENDS;
        }
        if (*n_left == 0) {
            walk->is_long = true;
            return WALK_ENDS;
        }
        if (!uprof_code_text_spend(walk->text, 1))
            return WALK_ENDS;
        if (!may_visit(walk, state) || !uprof_code_text_insn(walk->text, state->pc, &insn))
            break;
        --*n_left;
        state->n_insns++;
        state->cost++;
        flow = follow_insn(walk, state, &insn);
        if (flow == GOES_ON && walk->n_heap > 0 &&
            (insn.kind == UPROF_X86_BRANCH || insn.kind == UPROF_X86_JUMP) &&
            get_cost(walk, 0) + SWITCH_COST < state->cost) {
            push_state(walk, number);
            return GOES_ON;
        }
    }
    walk->free[walk->n_free++] = (uint16_t)number;
    return flow == WALK_ENDS ? WALK_ENDS : PATH_ENDS;
}

/* Short walks use a small part of the table, which stays in the processor's caches. */
static void
clear_visits(UprofCodeWalk *walk, unsigned work_max)
{
    for (walk->n_visits = VISITS_MIN; walk->n_visits < VISITS;)
        if ((walk->n_visits *= 2) >= 4 * (size_t)work_max)
            break;
    if (++walk->number != 0 && walk->n_visits <= walk->n_visits_max)
        return;
    walk->number = 1;
    walk->n_visits_max = MAX(walk->n_visits, walk->n_visits_max);
    g_free(walk->visits);
    walk->visits = g_new0(Visit, walk->n_visits_max);
}

static void
run_walk(UprofCodeWalk *walk, const UprofCodeBounds *bounds, uint64_t pc)
{
    unsigned n_left = bounds->work_max;

    walk->bounds = bounds;
    walk->is_reached = walk->has_jump = walk->is_long = false;
    walk->n_returns = 0;
    walk->n_heap = walk->n_free = 0;
    for (unsigned i = STATES; i > 0; i--)
        walk->free[walk->n_free++] = (uint16_t)(i - 1);
    clear_visits(walk, bounds->work_max);
    const unsigned first = take_state(walk);
    uprof_code_state_init(walk->states[first], pc);
    push_state(walk, first);
    while (walk->n_heap > 0)
        if (follow_path(walk, pop_state(walk), &n_left) == WALK_ENDS)
            return;
}

void
uprof_code_walk_ahead(UprofCodeWalk *walk, const UprofCodeBounds *bounds, uint64_t pc,
                      UprofCodeExits *exits)
{
    exits->n = 0;
    exits->has_jump = exits->has_other_exit = false;
    walk->exits = exits;
    walk->target = 0;
    run_walk(walk, bounds, pc);
    exits->is_long = walk->is_long;
}

/* Is the start's value of @reg in a slot? */
static bool
has_slot(const UprofCodeState *state, unsigned reg)
{
    for (unsigned i = 0; i < state->n_slots; i++)
        if (uprof_value_is_reg(&state->slots[i].value, reg))
            return true;
    return false;
}

void
uprof_code_walk_from(UprofCodeWalk *walk, const UprofCodeBounds *bounds, uint64_t start,
                     uint64_t pc, UprofCodeReach *reach)
{
    *reach = (UprofCodeReach){ 0 };
    walk->target = pc;
    run_walk(walk, bounds, start);
    if (walk->is_reached) {
        reach->is_fresh_stack = walk->at_target.sp_origin == UPROF_SP_FRESH;
        reach->is_reached =
            uprof_code_rule_inside(&walk->at_target, bounds->word_bytes, &reach->rule);
        reach->is_zero_fp = walk->at_target.regs[UPROF_X86_RBP].base == UPROF_VALUE_ZERO &&
                            !has_slot(&walk->at_target, UPROF_X86_RBP);
    } else if (walk->has_jump) {
        reach->has_jump =
            uprof_code_rule_inside(&walk->at_jump, bounds->word_bytes, &reach->jump_rule);
    }
}
