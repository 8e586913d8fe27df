/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-state-priv.h"

#include <string.h>

#define BIT(reg) (1u << (reg))

enum {
    /* registers that a call may change: RAX, RDX, RCX, RSI, RDI, R8 to R11; EAX, EDX, ECX */
    CALL_WRITES_64 = BIT(UPROF_X86_RAX) | BIT(UPROF_X86_RDX) | BIT(UPROF_X86_RCX) |
                     BIT(UPROF_X86_RSI) | BIT(UPROF_X86_RDI) | 0xf << UPROF_X86_R8,
    CALL_WRITES_32 = BIT(UPROF_X86_RAX) | BIT(UPROF_X86_RDX) | BIT(UPROF_X86_RCX),
    CALL_NEXT_BYTES = 5,
    R10 = UPROF_X86_R8 + 2,
    R11,
};

unsigned
uprof_code_saved_regs(unsigned word_bytes)
{
    const unsigned all = word_bytes == 8 ? 0xffffu & ~CALL_WRITES_64 : 0xffu & ~CALL_WRITES_32;

    return all & ~BIT(UPROF_X86_RSP);
}

void
uprof_code_state_init(UprofCodeState *state, uint64_t pc)
{
    memset(state, 0, offsetof(UprofCodeState, slots));
    state->pc = pc;
    for (unsigned reg = 0; reg < UPROF_CODE_REGS; reg++)
        state->regs[reg].base = (uint8_t)reg;
}

void
uprof_code_state_copy(UprofCodeState *to, const UprofCodeState *from)
{
    memcpy(to, from, offsetof(UprofCodeState, slots) + from->n_slots * sizeof(from->slots[0]));
}

/* Only values that lead to a caller are kept: slots are few. */
static bool
is_useful(const UprofValue *value, unsigned word_bytes)
{
    if (value->base >= UPROF_CODE_REGS)
        return false;
    if ((uprof_code_saved_regs(word_bytes) | BIT(UPROF_X86_RSP)) >> value->base & 1)
        return true;
    /* functions that round their stack pointer keep the old one in one of these */
    return value->n_loads == 0 &&
           (value->base == R10 || value->base == R11 || value->base == UPROF_X86_RAX);
}

/* Drops slots in the @len bytes at @at. */
static void
drop_slots(UprofCodeState *state, const UprofValue *at, unsigned len)
{
    for (unsigned i = 0; i < state->n_slots;) {
        UprofValue slot = state->slots[i].at;
        const int64_t distance = (int64_t)slot.offset[slot.n_loads] - at->offset[at->n_loads];
        slot.offset[slot.n_loads] = at->offset[at->n_loads];
        if (uprof_value_is_same(&slot, at) && distance >= 0 && distance < len)
            state->slots[i] = state->slots[--state->n_slots];
        else
            i++;
    }
}

static void
store_value(UprofCodeState *state, UprofValue at, UprofValue value, unsigned len,
            unsigned word_bytes)
{
    if (at.base == UPROF_VALUE_UNKNOWN)
        return;
    drop_slots(state, &at, len);
    if (is_useful(&value, word_bytes) && state->n_slots < UPROF_CODE_SLOTS)
        state->slots[state->n_slots++] = (UprofCodeSlot){ at, value };
}

static UprofValue
load_value(const UprofCodeState *state, UprofValue at)
{
    for (unsigned i = 0; i < state->n_slots; i++)
        if (uprof_value_is_same(&state->slots[i].at, &at))
            return state->slots[i].value;
    return uprof_value_load(at);
}

/* The stack pointer becomes a new base. Slots that count from an earlier one are lost. */
static void
replace_sp(UprofCodeState *state, unsigned base)
{
    for (unsigned i = 0; i < state->n_slots;)
        if (state->slots[i].at.base == base)
            state->slots[i] = state->slots[--state->n_slots];
        else
            i++;
    for (unsigned reg = 0; reg < UPROF_CODE_REGS; reg++)
        if (state->regs[reg].base == base)
            state->regs[reg] = uprof_value_of(UPROF_VALUE_UNKNOWN);
    state->regs[UPROF_X86_RSP] = uprof_value_of(base);
}

static void
lose_regs(UprofCodeState *state, unsigned writes)
{
    if (writes & BIT(UPROF_X86_RSP))
        replace_sp(state, UPROF_VALUE_OTHER_SP);
    writes &= ~BIT(UPROF_X86_RSP);
    for (unsigned reg = 0; writes >> reg; reg++)
        if (writes >> reg & 1)
            state->regs[reg] = uprof_value_of(UPROF_VALUE_UNKNOWN);
}

static void
set_reg(UprofCodeState *state, unsigned reg, UprofValue value)
{
    if (reg == UPROF_X86_RSP && value.base >= UPROF_VALUE_ZERO)
        replace_sp(state, UPROF_VALUE_OTHER_SP);
    else
        state->regs[reg] = value;
}

static void
push_value(UprofCodeState *state, UprofValue value, unsigned word_bytes)
{
    UprofValue *sp = &state->regs[UPROF_X86_RSP];

    *sp = uprof_value_add(*sp, -(int64_t)word_bytes);
    store_value(state, *sp, value, word_bytes, word_bytes);
}

static void
pop_reg(UprofCodeState *state, unsigned reg, unsigned word_bytes)
{
    UprofValue *sp = &state->regs[UPROF_X86_RSP];
    const UprofValue value = load_value(state, *sp);

    *sp = uprof_value_add(*sp, word_bytes);
    if (reg != UPROF_X86_REG_NONE)
        set_reg(state, reg, value);
}

static UprofValue
get_reg(const UprofCodeState *state, unsigned reg)
{
    return reg == UPROF_X86_REG_NONE ? uprof_value_of(UPROF_VALUE_UNKNOWN) : state->regs[reg];
}

/* A call of the next instruction is no call: 32-bit code finds its own address this way. */
static void
apply_call(UprofCodeState *state, const UprofX86Insn *insn, unsigned word_bytes)
{
    if (insn->kind == UPROF_X86_CALL && insn->value == 0 && insn->len == CALL_NEXT_BYTES)
        push_value(state, uprof_value_of(UPROF_VALUE_UNKNOWN), word_bytes);
    else
        lose_regs(state, word_bytes == 8 ? CALL_WRITES_64 : CALL_WRITES_32);
}

/* A frame pointer leads to the frames of callers. */
static bool
leads_to_stack(const UprofCodeState *state, unsigned reg)
{
    const UprofValue value = get_reg(state, reg);

    return reg == UPROF_X86_RSP || reg == UPROF_X86_RBP || value.base == UPROF_X86_RSP ||
           value.base == UPROF_X86_RBP || value.base == UPROF_VALUE_ROUNDED_SP;
}

/* Returns: the origin after @insn of a stack pointer that is the start's before */
static UprofSpOrigin
find_origin(const UprofCodeState *state, const UprofX86Insn *insn)
{
    const bool is_to_sp = insn->to == UPROF_X86_RSP;

    if (insn->may_keep_sp)
        return UPROF_SP_DOUBTFUL;
    switch (insn->kind) {
    case UPROF_X86_SET:
        return is_to_sp ? UPROF_SP_FRESH : UPROF_SP_OF_START;
    case UPROF_X86_LOAD:
        if (!is_to_sp)
            return UPROF_SP_OF_START;
        return leads_to_stack(state, insn->from) ? UPROF_SP_DOUBTFUL : UPROF_SP_FRESH;
    case UPROF_X86_ADD:
        if (is_to_sp && insn->from != UPROF_X86_RSP)
            return leads_to_stack(state, insn->from) ? UPROF_SP_DOUBTFUL : UPROF_SP_FRESH;
        return !is_to_sp && insn->from == UPROF_X86_RSP ? UPROF_SP_DOUBTFUL : UPROF_SP_OF_START;
    case UPROF_X86_STORE:
    case UPROF_X86_PUSH:
        return insn->from == UPROF_X86_RSP ? UPROF_SP_DOUBTFUL : UPROF_SP_OF_START;
    case UPROF_X86_LEAVE:
    case UPROF_X86_CALL:
    case UPROF_X86_CALL_ANY:
        return UPROF_SP_DOUBTFUL;
    default:
        if (!(insn->writes & BIT(UPROF_X86_RSP)))
            return UPROF_SP_OF_START;
        return insn->is_new_sp ? UPROF_SP_FRESH : UPROF_SP_DOUBTFUL;
    }
}

void
uprof_code_state_apply(UprofCodeState *state, const UprofX86Insn *insn, unsigned word_bytes)
{
    const UprofValue from = get_reg(state, insn->from);

    if (state->sp_origin == UPROF_SP_OF_START)
        state->sp_origin = (uint8_t)find_origin(state, insn);
    state->compared = 0;
    lose_regs(state, insn->writes);
    switch (insn->kind) {
    case UPROF_X86_SET:
        set_reg(state, insn->to,
                uprof_value_of(insn->value == 0 ? UPROF_VALUE_ZERO : UPROF_VALUE_UNKNOWN));
        break;
    case UPROF_X86_ADD:
        set_reg(state, insn->to, uprof_value_add(from, insn->value));
        break;
    case UPROF_X86_LOAD:
        set_reg(state, insn->to, load_value(state, uprof_value_add(from, insn->value)));
        break;
    case UPROF_X86_STORE:
        store_value(state, uprof_value_add(state->regs[insn->to], insn->value), from,
                    insn->len_stored, word_bytes);
        break;
    case UPROF_X86_PUSH:
        push_value(state, from, word_bytes);
        break;
    case UPROF_X86_POP:
        pop_reg(state, insn->to, word_bytes);
        break;
    case UPROF_X86_LEAVE:
        set_reg(state, UPROF_X86_RSP, state->regs[UPROF_X86_RBP]);
        pop_reg(state, UPROF_X86_RBP, word_bytes);
        break;
    case UPROF_X86_ALIGN_SP:
        replace_sp(state, UPROF_VALUE_ROUNDED_SP);
        break;
    case UPROF_X86_COMPARE_SP:
        state->compared = (uint8_t)(insn->from + 1);
        break;
    case UPROF_X86_CALL:
    case UPROF_X86_CALL_ANY:
        apply_call(state, insn, word_bytes);
        break;
    default:
        break;
    }
}
