/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-rule-priv.h"

unsigned
uprof_code_saved_reg(unsigned i, unsigned word_bytes)
{
    static const uint8_t wide[] = { UPROF_X86_RBX,    UPROF_X86_RBP,    UPROF_X86_R8 + 4,
                                    UPROF_X86_R8 + 5, UPROF_X86_R8 + 6, UPROF_X86_R15 };
    static const uint8_t narrow[] = { UPROF_X86_RBX, UPROF_X86_RBP, UPROF_X86_RSI, UPROF_X86_RDI };

    if (word_bytes == 4)
        return i < G_N_ELEMENTS(narrow) ? narrow[i] : UPROF_X86_REG_NONE;
    return i < G_N_ELEMENTS(wide) ? wide[i] : UPROF_X86_REG_NONE;
}

/* A return address that was moved there from another slot is read from the other one, because it
 * has not been moved yet. */
static UprofValue
find_origin(const UprofCodeState *state, UprofValue slot)
{
    for (unsigned i = 0; i < state->n_slots; i++) {
        UprofValue value = state->slots[i].value;
        if (!uprof_value_is_same(&state->slots[i].at, &slot))
            continue;
        if (value.base < UPROF_CODE_REGS && value.n_loads > 0 && value.offset[value.n_loads] == 0) {
            value.n_loads--;
            return value;
        }
        return slot;
    }
    return slot;
}

bool
uprof_code_rule_at_exit(const UprofCodeState *state, unsigned word_bytes, UprofCodeRule *rule)
{
    *rule = (UprofCodeRule){ .slot = find_origin(state, state->regs[UPROF_X86_RSP]) };
    if (rule->slot.base >= UPROF_CODE_REGS ||
        (uprof_value_is_offset(&rule->slot, UPROF_X86_RSP) && rule->slot.offset[0] < 0))
        return false;
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++) {
        const unsigned reg = uprof_code_saved_reg(i, word_bytes);
        rule->saved[i] =
            reg == UPROF_X86_REG_NONE ? uprof_value_of(UPROF_VALUE_UNKNOWN) : state->regs[reg];
    }
    return true;
}

/*
 * Returns: a register whose value is @base plus a constant; the frame pointer if @has_record, else
 * the stack pointer comes first
 */
static unsigned
find_pointer(const UprofCodeState *state, unsigned base, unsigned word_bytes)
{
    const UprofValue *fp = &state->regs[UPROF_X86_RBP];

    if (uprof_value_is_offset(fp, base) &&
        (base != UPROF_X86_RSP || fp->offset[0] == -(int32_t)word_bytes))
        return UPROF_X86_RBP;
    if (uprof_value_is_offset(&state->regs[UPROF_X86_RSP], base))
        return UPROF_X86_RSP;
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++) {
        const unsigned reg = uprof_code_saved_reg(i, word_bytes);
        if (reg != UPROF_X86_REG_NONE && uprof_value_is_offset(&state->regs[reg], base))
            return reg;
    }
    return UPROF_X86_REG_NONE;
}

/* Is the slot still part of the frame? Popped slots may be overwritten. */
static bool
is_in_frame(const UprofCodeState *state, const UprofValue *slot)
{
    const UprofValue *sp = &state->regs[UPROF_X86_RSP];

    return !uprof_value_is_offset(sp, slot->base) || slot->offset[0] >= sp->offset[0];
}

/*
 * Returns: the caller's value of @reg. A slot comes before the register itself, because code
 * behind a jump through a table may have changed the register.
 * @from_start: the start's stack pointer. @rounded, @from_rounded: a register that counts from the
 * rounded stack pointer, and what to add to it
 */
static UprofValue
find_saved(const UprofCodeState *state, unsigned reg, UprofValue from_start,
           UprofValue from_rounded)
{
    UprofValue best = uprof_value_is_reg(&state->regs[reg], reg)
                          ? uprof_value_of(reg)
                          : uprof_value_of(UPROF_VALUE_UNKNOWN);
    int32_t highest = INT32_MIN;

    for (unsigned i = 0; i < state->n_slots; i++) {
        const UprofCodeSlot *slot = &state->slots[i];
        const bool is_rounded = slot->at.base == UPROF_VALUE_ROUNDED_SP;
        if (!uprof_value_is_reg(&slot->value, reg) || slot->at.n_loads > 0 ||
            (!is_rounded && (slot->at.base != UPROF_X86_RSP || slot->at.offset[0] >= 0)) ||
            !is_in_frame(state, &slot->at) || slot->at.offset[0] <= highest)
            continue;
        highest = slot->at.offset[0];
        best = uprof_value_load(
            uprof_value_add(is_rounded ? from_rounded : from_start, slot->at.offset[0]));
    }
    return best;
}

/* The value of a slot that holds the start's stack pointer plus a constant: the stack pointer was
 * rounded, and the old one was saved. */
static UprofValue
find_start_in_slot(const UprofCodeState *state, UprofValue from_rounded)
{
    for (unsigned i = 0; i < state->n_slots; i++) {
        const UprofCodeSlot *slot = &state->slots[i];
        if (uprof_value_is_offset(&slot->at, UPROF_VALUE_ROUNDED_SP) &&
            uprof_value_is_offset(&slot->value, UPROF_X86_RSP))
            return uprof_value_add(
                uprof_value_load(uprof_value_add(from_rounded, slot->at.offset[0])),
                -(int64_t)slot->value.offset[0]);
    }
    return uprof_value_of(UPROF_VALUE_UNKNOWN);
}

bool
uprof_code_rule_inside(const UprofCodeState *state, unsigned word_bytes, UprofCodeRule *rule)
{
    const unsigned start = find_pointer(state, UPROF_X86_RSP, word_bytes);
    const unsigned rounded = find_pointer(state, UPROF_VALUE_ROUNDED_SP, word_bytes);
    UprofValue from_start = uprof_value_of(UPROF_VALUE_UNKNOWN), from_rounded = from_start;

    if (rounded != UPROF_X86_REG_NONE)
        from_rounded =
            uprof_value_add(uprof_value_of(rounded), -(int64_t)state->regs[rounded].offset[0]);
    if (start != UPROF_X86_REG_NONE)
        from_start = uprof_value_add(uprof_value_of(start), -(int64_t)state->regs[start].offset[0]);
    else if (rounded != UPROF_X86_REG_NONE)
        from_start = find_start_in_slot(state, from_rounded);
    *rule = (UprofCodeRule){ .slot = from_start };
    if (from_start.base == UPROF_VALUE_UNKNOWN)
        return false;
    for (unsigned i = 0; i < UPROF_CODE_SAVED_MAX; i++) {
        const unsigned reg = uprof_code_saved_reg(i, word_bytes);
        rule->saved[i] = reg == UPROF_X86_REG_NONE
                             ? uprof_value_of(UPROF_VALUE_UNKNOWN)
                             : find_saved(state, reg, from_start, from_rounded);
    }
    return true;
}
