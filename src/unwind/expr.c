/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "expr-priv.h"

/* DWARF 5, table 7.9 */
enum {
    OP_ADDR = 0x03,
    OP_DEREF = 0x06,
    OP_CONST1U = 0x08, /* to CONST8S: 1, 2, 4 and 8 bytes, each unsigned and signed */
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ROT = 0x17,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_BRA = 0x28,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_SKIP = 0x2f,
    OP_LIT0 = 0x30, /* to 31 */
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70, /* to 31 */
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_DEREF_SIZE = 0x94,
    OP_NOP = 0x96,
};

typedef struct {
    const UprofExpr *expr;
    UprofBytes code;
    unsigned n;
    uint64_t stack[UPROF_EXPR_STACK_MAX];
} Machine;

static uint64_t
truncate_to_word(const Machine *machine, uint64_t value)
{
    return machine->expr->word_bytes == 4 ? value & UINT32_MAX : value;
}

static int64_t
to_signed(const Machine *machine, uint64_t value)
{
    return machine->expr->word_bytes == 4 ? (int32_t)value : (int64_t)value;
}

static UprofExprAnswer
push_value(Machine *machine, uint64_t value)
{
    if (machine->n == UPROF_EXPR_STACK_MAX)
        return UPROF_EXPR_BAD;
    machine->stack[machine->n++] = truncate_to_word(machine, value);
    return UPROF_EXPR_OK;
}

static UprofExprAnswer
push_constant(Machine *machine, uint8_t op)
{
    const unsigned width = op == OP_ADDR ? machine->expr->word_bytes : 1U << (op - OP_CONST1U) / 2;
    const bool is_signed = op != OP_ADDR && (op & 1);
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    switch (width) {
    case 1:
        if (!uprof_bytes_u8(&machine->code, &u8))
            return UPROF_EXPR_BAD;
        return push_value(machine, is_signed ? (uint64_t)(int8_t)u8 : u8);
    case 2:
        if (!uprof_bytes_u16(&machine->code, &u16))
            return UPROF_EXPR_BAD;
        return push_value(machine, is_signed ? (uint64_t)(int16_t)u16 : u16);
    case 4:
        if (!uprof_bytes_u32(&machine->code, &u32))
            return UPROF_EXPR_BAD;
        return push_value(machine, is_signed ? (uint64_t)(int32_t)u32 : u32);
    default:
        if (!uprof_bytes_u64(&machine->code, &u64))
            return UPROF_EXPR_BAD;
        return push_value(machine, u64);
    }
}

static UprofExprAnswer
push_register(Machine *machine, uint64_t dwarf)
{
    uint64_t value;
    int64_t offset;

    if (!uprof_bytes_sleb(&machine->code, &offset))
        return UPROF_EXPR_BAD;
    if (!machine->expr->ops->read_reg(machine->expr->data, dwarf, &value))
        return UPROF_EXPR_UNKNOWN;
    return push_value(machine, value + (uint64_t)offset);
}

static UprofExprAnswer
read_top(Machine *machine, uint8_t len)
{
    uint64_t *top = &machine->stack[machine->n - 1];

    if (len < 1 || len > machine->expr->word_bytes)
        return UPROF_EXPR_BAD;
    if (!machine->expr->ops->read_memory(machine->expr->data, *top, len, top))
        return UPROF_EXPR_CUT;
    *top = truncate_to_word(machine, *top);
    return UPROF_EXPR_OK;
}

static UprofExprAnswer
jump_if(Machine *machine, bool is_taken)
{
    uint16_t raw;

    if (!uprof_bytes_u16(&machine->code, &raw))
        return UPROF_EXPR_BAD;
    /* A target before the start wraps around to one far behind the end. */
    const size_t to = machine->code.at + (size_t)(ptrdiff_t)(int16_t)raw;
    if (is_taken && !uprof_bytes_seek(&machine->code, to))
        return UPROF_EXPR_BAD;
    return UPROF_EXPR_OK;
}

/* A division by 0 has no result. The lowest number divided by -1 wraps around. */
static UprofExprAnswer
divide_signed(int64_t a, int64_t b, uint64_t *result)
{
    if (b == 0)
        return UPROF_EXPR_BAD;
    *result = b == -1 ? -(uint64_t)a : (uint64_t)(a / b);
    return UPROF_EXPR_OK;
}

/* Operations on the two topmost values; @b is the upper one. */
static UprofExprAnswer
combine_two(Machine *machine, uint8_t op, uint64_t a, uint64_t b, uint64_t *result)
{
    const int64_t signed_a = to_signed(machine, a), signed_b = to_signed(machine, b);
    const unsigned shift = b & (machine->expr->word_bytes * 8U - 1);

    switch (op) {
    case OP_AND:
        *result = a & b;
        return UPROF_EXPR_OK;
    case OP_DIV:
        return divide_signed(signed_a, signed_b, result);
    case OP_MINUS:
        *result = a - b;
        return UPROF_EXPR_OK;
    case OP_MOD:
        if (b == 0)
            return UPROF_EXPR_BAD;
        *result = a % b;
        return UPROF_EXPR_OK;
    case OP_MUL:
        *result = a * b;
        return UPROF_EXPR_OK;
    case OP_OR:
        *result = a | b;
        return UPROF_EXPR_OK;
    case OP_PLUS:
        *result = a + b;
        return UPROF_EXPR_OK;
    case OP_SHL:
        *result = a << shift;
        return UPROF_EXPR_OK;
    case OP_SHR:
        *result = a >> shift;
        return UPROF_EXPR_OK;
    case OP_SHRA:
        *result = (uint64_t)(signed_a >> shift);
        return UPROF_EXPR_OK;
    case OP_XOR:
        *result = a ^ b;
        return UPROF_EXPR_OK;
    case OP_EQ:
        *result = signed_a == signed_b;
        return UPROF_EXPR_OK;
    case OP_GE:
        *result = signed_a >= signed_b;
        return UPROF_EXPR_OK;
    case OP_GT:
        *result = signed_a > signed_b;
        return UPROF_EXPR_OK;
    case OP_LE:
        *result = signed_a <= signed_b;
        return UPROF_EXPR_OK;
    case OP_LT:
        *result = signed_a < signed_b;
        return UPROF_EXPR_OK;
    case OP_NE:
        *result = signed_a != signed_b;
        return UPROF_EXPR_OK;
    default:
        return UPROF_EXPR_BAD;
    }
}

static UprofExprAnswer
run_binary(Machine *machine, uint8_t op)
{
    uint64_t result;

    if (machine->n < 2)
        return UPROF_EXPR_BAD;
    uint64_t *lower = &machine->stack[machine->n - 2];
    const UprofExprAnswer answer = combine_two(machine, op, lower[0], lower[1], &result);
    if (answer == UPROF_EXPR_OK) {
        machine->n--;
        *lower = truncate_to_word(machine, result);
    }
    return answer;
}

/* Operations that move values. */
static UprofExprAnswer
run_stack(Machine *machine, uint8_t op)
{
    static const uint8_t wanted[] = { [OP_DUP - OP_DUP] = 1,  [OP_DROP - OP_DUP] = 1,
                                      [OP_OVER - OP_DUP] = 2, [OP_PICK - OP_DUP] = 1,
                                      [OP_SWAP - OP_DUP] = 2, [OP_ROT - OP_DUP] = 3 };
    uint8_t i;

    if (machine->n < wanted[op - OP_DUP])
        return UPROF_EXPR_BAD;
    uint64_t *top = &machine->stack[machine->n - 1];
    switch (op) {
    case OP_DUP:
        return push_value(machine, top[0]);
    case OP_DROP:
        machine->n--;
        return UPROF_EXPR_OK;
    case OP_OVER:
        return push_value(machine, top[-1]);
    case OP_PICK:
        if (!uprof_bytes_u8(&machine->code, &i) || i >= machine->n)
            return UPROF_EXPR_BAD;
        return push_value(machine, machine->stack[machine->n - 1 - i]);
    case OP_SWAP: {
        const uint64_t upper = top[0];
        top[0] = top[-1];
        top[-1] = upper;
        return UPROF_EXPR_OK;
    }
    default: { /* OP_ROT: the top value goes below the next two */
        const uint64_t upper = top[0];
        top[0] = top[-1];
        top[-1] = top[-2];
        top[-2] = upper;
        return UPROF_EXPR_OK;
    }
    }
}

/* Operations on the topmost value. */
static UprofExprAnswer
run_unary(Machine *machine, uint8_t op)
{
    uint64_t number;
    uint8_t len;

    if (machine->n < 1)
        return UPROF_EXPR_BAD;
    uint64_t *top = &machine->stack[machine->n - 1];
    switch (op) {
    case OP_DEREF:
        return read_top(machine, machine->expr->word_bytes);
    case OP_DEREF_SIZE:
        return uprof_bytes_u8(&machine->code, &len) ? read_top(machine, len) : UPROF_EXPR_BAD;
    case OP_ABS:
        *top = truncate_to_word(machine, to_signed(machine, *top) < 0 ? -*top : *top);
        return UPROF_EXPR_OK;
    case OP_NEG:
        *top = truncate_to_word(machine, -*top);
        return UPROF_EXPR_OK;
    case OP_NOT:
        *top = truncate_to_word(machine, ~*top);
        return UPROF_EXPR_OK;
    case OP_PLUS_UCONST:
        if (!uprof_bytes_uleb(&machine->code, &number))
            return UPROF_EXPR_BAD;
        *top = truncate_to_word(machine, *top + number);
        return UPROF_EXPR_OK;
    default: /* OP_BRA */
        machine->n--;
        return jump_if(machine, *top != 0);
    }
}

static UprofExprAnswer
run_operation(Machine *machine, uint8_t op)
{
    uint64_t number;
    int64_t signed_number;

    if (op >= OP_LIT0 && op <= OP_LIT31)
        return push_value(machine, op - OP_LIT0);
    if (op >= OP_BREG0 && op <= OP_BREG31)
        return push_register(machine, op - OP_BREG0);
    if (op == OP_ADDR || (op >= OP_CONST1U && op <= OP_CONST8S))
        return push_constant(machine, op);
    if (op >= OP_DUP && op <= OP_ROT)
        return run_stack(machine, op);

    switch (op) {
    case OP_NOP:
        return UPROF_EXPR_OK;
    case OP_CONSTU:
        return uprof_bytes_uleb(&machine->code, &number) ? push_value(machine, number)
                                                         : UPROF_EXPR_BAD;
    case OP_CONSTS:
        return uprof_bytes_sleb(&machine->code, &signed_number)
                   ? push_value(machine, (uint64_t)signed_number)
                   : UPROF_EXPR_BAD;
    case OP_BREGX:
        return uprof_bytes_uleb(&machine->code, &number) ? push_register(machine, number)
                                                         : UPROF_EXPR_BAD;
    case OP_SKIP:
        return jump_if(machine, true);
    case OP_DEREF:
    case OP_DEREF_SIZE:
    case OP_ABS:
    case OP_NEG:
    case OP_NOT:
    case OP_PLUS_UCONST:
    case OP_BRA:
        return run_unary(machine, op);
    default:
        return run_binary(machine, op);
    }
}

UprofExprAnswer
uprof_expr_run(const UprofExpr *expr, const uint64_t *first, uint64_t *result)
{
    Machine machine = { .expr = expr,
                        .code = { .all = expr->code, .big_endian = expr->big_endian } };
    uint8_t op;

    if (first)
        push_value(&machine, *first);
    for (unsigned i = 0; uprof_bytes_u8(&machine.code, &op); i++) {
        if (i == UPROF_EXPR_STEPS_MAX)
            return UPROF_EXPR_BAD;
        const UprofExprAnswer answer = run_operation(&machine, op);
        if (answer != UPROF_EXPR_OK)
            return answer;
    }
    if (machine.n == 0)
        return UPROF_EXPR_BAD;
    *result = machine.stack[machine.n - 1];
    return UPROF_EXPR_OK;
}
