/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "code-value-priv.h"

UprofValue
uprof_value_of(unsigned base)
{
    return (UprofValue){ .base = (uint8_t)base };
}

UprofValue
uprof_value_add(UprofValue value, int64_t offset)
{
    const int64_t sum = (int64_t)value.offset[value.n_loads] + offset;

    if (offset == 0 || value.base == UPROF_VALUE_UNKNOWN)
        return value;
    if (value.base == UPROF_VALUE_ZERO || offset < INT32_MIN || offset > INT32_MAX ||
        sum < INT32_MIN || sum > INT32_MAX)
        return uprof_value_of(UPROF_VALUE_UNKNOWN);
    value.offset[value.n_loads] = (int32_t)sum;
    return value;
}

UprofValue
uprof_value_load(UprofValue value)
{
    if (value.base == UPROF_VALUE_UNKNOWN || value.base == UPROF_VALUE_ZERO ||
        value.n_loads == UPROF_VALUE_LOADS_MAX)
        return uprof_value_of(UPROF_VALUE_UNKNOWN);
    value.n_loads++;
    return value;
}

bool
uprof_value_is_same(const UprofValue *one, const UprofValue *other)
{
    if (one->base != other->base || one->n_loads != other->n_loads ||
        one->base == UPROF_VALUE_UNKNOWN)
        return false;
    for (unsigned i = 0; i <= one->n_loads; i++)
        if (one->offset[i] != other->offset[i])
            return false;
    return true;
}

bool
uprof_value_is_offset(const UprofValue *value, unsigned base)
{
    return value->base == base && value->n_loads == 0;
}

bool
uprof_value_is_reg(const UprofValue *value, unsigned reg)
{
    return uprof_value_is_offset(value, reg) && value->offset[0] == 0;
}

uint64_t
uprof_value_hash(const UprofValue *value)
{
    uint64_t hash = value->base * 131u + value->n_loads * 17u;

    if (value->base == UPROF_VALUE_UNKNOWN)
        return 5;
    for (unsigned i = 0; i <= value->n_loads; i++) {
        hash = (hash ^ (uint32_t)value->offset[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 31;
    }
    return hash;
}

/* Code leaves unchanged a register whose value nothing knows: such a register has no value. */
static bool
read_reg(const UprofCursor *cursor, unsigned reg, uint64_t *value)
{
    const UprofRegs *regs = &cursor->regs;

    if (reg >= UPROF_X86_RIP || (reg != UPROF_X86_RSP && cursor->unknown >> reg & 1))
        return false;
    *value = reg == UPROF_X86_RSP ? regs->sp : reg == UPROF_X86_RBP ? regs->fp : regs->reg[reg];
    return true;
}

UprofEvaluation
uprof_value_find(const UprofUnwindContext *context, const UprofCursor *cursor,
                 const UprofValue *value, uint64_t *result)
{
    const uint64_t mask = cursor->regs.word_bytes == 4 ? UINT32_MAX : UINT64_MAX;
    uint64_t at;

    if (!read_reg(cursor, value->base, &at))
        return UPROF_NOT_EVALUATED;
    for (unsigned i = 0; i < value->n_loads; i++)
        if (!uprof_unwind_read_word(context, &cursor->regs,
                                    (at + (uint64_t)(int64_t)value->offset[i]) & mask, &at))
            return UPROF_NOT_COPIED;
    *result = (at + (uint64_t)(int64_t)value->offset[value->n_loads]) & mask;
    return UPROF_EVALUATED;
}
