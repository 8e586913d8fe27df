/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/x86-insn.h"

#include <Zydis/Zydis.h>

enum { INT_SYSCALL = 0x80 };

/** Decoded: one instruction, as Zydis shows it */
typedef struct {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    unsigned word_bytes;
} Decoded;

/* Returns: DWARF number of the general register that contains @reg, or %UPROF_X86_REG_NONE */
static uint8_t
find_reg(ZydisRegister reg)
{
    /* by the numbers that instructions use */
    static const uint8_t dwarf[] = { UPROF_X86_RAX, UPROF_X86_RCX, UPROF_X86_RDX, UPROF_X86_RBX,
                                     UPROF_X86_RSP, UPROF_X86_RBP, UPROF_X86_RSI, UPROF_X86_RDI };
    const ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

    if (wide < ZYDIS_REGISTER_RAX || wide > ZYDIS_REGISTER_R15)
        return UPROF_X86_REG_NONE;
    const unsigned number = (unsigned)(wide - ZYDIS_REGISTER_RAX);
    return number < G_N_ELEMENTS(dwarf) ? dwarf[number] : (uint8_t)number;
}

static uint16_t
reg_bit(uint8_t reg)
{
    return reg == UPROF_X86_REG_NONE ? 0 : (uint16_t)(1u << reg);
}

/* Returns: the register if the code names it as @operand, and it has the mode's width */
static uint8_t
word_reg(const Decoded *decoded, const ZydisDecodedOperand *operand)
{
    if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
        operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
        operand->size != decoded->word_bytes * 8)
        return UPROF_X86_REG_NONE;
    return find_reg(operand->reg.value);
}

/* Returns: the base if @operand is memory at a register of the mode's width and a constant */
static uint8_t
memory_base(const Decoded *decoded, const ZydisDecodedOperand *operand)
{
    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.index != ZYDIS_REGISTER_NONE ||
        operand->mem.segment == ZYDIS_REGISTER_FS || operand->mem.segment == ZYDIS_REGISTER_GS ||
        decoded->insn.address_width != decoded->word_bytes * 8)
        return UPROF_X86_REG_NONE;
    return find_reg(operand->mem.base);
}

/* SYSCALL writes R11 in 64-bit code only, but Zydis says so for all code. */
static uint16_t
find_writes(const Decoded *decoded)
{
    uint16_t writes = 0;

    for (unsigned i = 0; i < decoded->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &decoded->operands[i];
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
            writes |= reg_bit(find_reg(operand->reg.value));
    }
    return decoded->word_bytes == 4 ? writes & 0xff : writes;
}

/* @to gets a new value: it is no unknown value any more */
static void
set_result(UprofX86Insn *insn, UprofX86Kind kind, uint8_t to, uint8_t from, int64_t value)
{
    insn->kind = kind;
    insn->to = to;
    insn->from = from;
    insn->value = value;
    if (kind != UPROF_X86_STORE)
        insn->writes &= (uint16_t)~reg_bit(to);
}

/* Stores of other widths, and of unknown values, too */
static void
apply_store(const Decoded *decoded, UprofX86Insn *insn)
{
    const ZydisDecodedOperand *to = &decoded->operands[0];
    const uint8_t base = memory_base(decoded, to);

    if (base == UPROF_X86_REG_NONE || to->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
        !(to->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
        return;
    set_result(insn, UPROF_X86_STORE, base, UPROF_X86_REG_NONE, to->mem.disp.value);
    insn->len_stored = (uint8_t)MIN(to->size / 8, UINT8_MAX);
}

static void
apply_mov(const Decoded *decoded, UprofX86Insn *insn)
{
    const ZydisDecodedOperand *to = &decoded->operands[0], *from = &decoded->operands[1];
    const uint8_t to_reg = word_reg(decoded, to), from_reg = word_reg(decoded, from);
    const uint8_t base = memory_base(decoded, from);

    if (to_reg != UPROF_X86_REG_NONE && from_reg != UPROF_X86_REG_NONE) {
        set_result(insn, UPROF_X86_ADD, to_reg, from_reg, 0);
    } else if (to_reg != UPROF_X86_REG_NONE && base != UPROF_X86_REG_NONE) {
        set_result(insn, UPROF_X86_LOAD, to_reg, base, from->mem.disp.value);
    } else if (to->type == ZYDIS_OPERAND_TYPE_REGISTER && to->size >= 32 &&
               from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
               find_reg(to->reg.value) != UPROF_X86_REG_NONE) {
        set_result(insn, UPROF_X86_SET, find_reg(to->reg.value), UPROF_X86_REG_NONE,
                   from->imm.value.s);
    } else {
        apply_store(decoded, insn);
        if (insn->kind == UPROF_X86_STORE)
            insn->from = from_reg;
    }
}

static void
apply_lea(const Decoded *decoded, UprofX86Insn *insn)
{
    const ZydisDecodedOperand *from = &decoded->operands[1];
    const uint8_t to = word_reg(decoded, &decoded->operands[0]);
    ZydisRegister base = from->mem.base;

    if (from->mem.index != ZYDIS_REGISTER_NONE) {
        if (base != ZYDIS_REGISTER_NONE || from->mem.scale != 1)
            return;
        base = from->mem.index;
    }
    if (to == UPROF_X86_REG_NONE || find_reg(base) == UPROF_X86_REG_NONE ||
        decoded->insn.address_width != decoded->word_bytes * 8)
        return;
    if (find_reg(base) == to && from->mem.disp.value == 0) {
        insn->kind = UPROF_X86_NOP; /* fills space in 32-bit code */
        insn->writes = 0;
    } else
        set_result(insn, UPROF_X86_ADD, to, find_reg(base), from->mem.disp.value);
}

static void
apply_sum(const Decoded *decoded, UprofX86Insn *insn, int sign)
{
    const ZydisDecodedOperand *from = &decoded->operands[1];
    const uint8_t reg = word_reg(decoded, &decoded->operands[0]);

    if (reg != UPROF_X86_REG_NONE && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        set_result(insn, UPROF_X86_ADD, reg, reg, sign * from->imm.value.s);
    else
        apply_store(decoded, insn);
}

/* A register minus itself, or with itself by XOR, is 0. */
static void
apply_difference(const Decoded *decoded, UprofX86Insn *insn)
{
    const ZydisDecodedOperand *to = &decoded->operands[0], *from = &decoded->operands[1];

    if (to->type == ZYDIS_OPERAND_TYPE_REGISTER && from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
        to->reg.value == from->reg.value && to->size >= 32 &&
        find_reg(to->reg.value) != UPROF_X86_REG_NONE)
        set_result(insn, UPROF_X86_SET, find_reg(to->reg.value), UPROF_X86_REG_NONE, 0);
    else if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_SUB)
        apply_sum(decoded, insn, -1);
    else
        apply_store(decoded, insn);
}

static void
apply_and(const Decoded *decoded, UprofX86Insn *insn)
{
    if (word_reg(decoded, &decoded->operands[0]) == UPROF_X86_RSP)
        set_result(insn, UPROF_X86_ALIGN_SP, UPROF_X86_RSP, UPROF_X86_REG_NONE, 0);
    else
        apply_store(decoded, insn);
}

static void
apply_cmp(const Decoded *decoded, UprofX86Insn *insn)
{
    const uint8_t one = word_reg(decoded, &decoded->operands[0]);
    const uint8_t other = word_reg(decoded, &decoded->operands[1]);

    if (one == UPROF_X86_REG_NONE || other == UPROF_X86_REG_NONE)
        return;
    if (one == UPROF_X86_RSP || other == UPROF_X86_RSP)
        set_result(insn, UPROF_X86_COMPARE_SP, UPROF_X86_REG_NONE,
                   one == UPROF_X86_RSP ? other : one, 0);
}

/* An operand of 16 bits moves the stack pointer by 2 bytes, which no caller expects. */
static bool
is_word_wide(const Decoded *decoded)
{
    return decoded->insn.operand_width == decoded->word_bytes * 8;
}

static void
apply_push(const Decoded *decoded, UprofX86Insn *insn)
{
    if (!is_word_wide(decoded))
        return;
    insn->writes = 0;
    set_result(insn, UPROF_X86_PUSH, UPROF_X86_REG_NONE, word_reg(decoded, &decoded->operands[0]),
               0);
}

static void
apply_pop(const Decoded *decoded, UprofX86Insn *insn)
{
    const uint8_t to = word_reg(decoded, &decoded->operands[0]);

    if (!is_word_wide(decoded) || to == UPROF_X86_RSP)
        return;
    insn->writes = 0;
    set_result(insn, UPROF_X86_POP, to, UPROF_X86_REG_NONE, 0);
}

/* @near: with a distance. @any: to any other place */
static void
apply_transfer(const Decoded *decoded, UprofX86Insn *insn, UprofX86Kind near, UprofX86Kind any)
{
    const ZydisDecodedOperand *to = &decoded->operands[0];

    insn->writes = 0;
    insn->kind = any;
    if (to->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        insn->kind = near;
        insn->value = to->imm.value.s;
    } else if (any == UPROF_X86_JUMP_ANY && to->type == ZYDIS_OPERAND_TYPE_MEMORY) {
        if (to->mem.index != ZYDIS_REGISTER_NONE)
            insn->kind = UPROF_X86_JUMP_TABLE;
        else if (to->mem.base == ZYDIS_REGISTER_RIP || to->mem.base == ZYDIS_REGISTER_NONE)
            insn->kind = UPROF_X86_JUMP_FIXED;
    }
}

static void
apply_return(const Decoded *decoded, UprofX86Insn *insn)
{
    const ZydisDecodedOperand *bytes = &decoded->operands[0];

    insn->writes = 0;
    insn->kind = UPROF_X86_RETURN;
    if (bytes->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
        insn->value = (int64_t)bytes->imm.value.u;
}

/* The kernel writes its answer to RAX. */
static void
apply_syscall(UprofX86Insn *insn)
{
    insn->kind = UPROF_X86_SYSCALL;
    insn->writes |= reg_bit(UPROF_X86_RAX);
}

static void
apply_rare(const Decoded *decoded, UprofX86Insn *insn)
{
    const ZydisDecodedOperand *first = &decoded->operands[0];

    switch (decoded->insn.mnemonic) {
    case ZYDIS_MNEMONIC_PUSHA:
    case ZYDIS_MNEMONIC_PUSHAD:
        if (is_word_wide(decoded))
            set_result(insn, UPROF_X86_ADD, UPROF_X86_RSP, UPROF_X86_RSP, -8 * 4);
        break;
    case ZYDIS_MNEMONIC_INT:
        if (first->imm.value.u == INT_SYSCALL)
            apply_syscall(insn);
        break;
    default:
        if (decoded->insn.meta.category == ZYDIS_CATEGORY_COND_BR &&
            first->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            insn->kind = UPROF_X86_BRANCH;
            insn->value = first->imm.value.s;
            insn->is_unequal = decoded->insn.mnemonic == ZYDIS_MNEMONIC_JNZ;
            break;
        }
        apply_store(decoded, insn);
    }
}

static bool
is_at_stack(const ZydisDecodedOperand *operand)
{
    const uint8_t base = find_reg(operand->mem.base), index = find_reg(operand->mem.index);

    return base == UPROF_X86_RSP || base == UPROF_X86_RBP || index == UPROF_X86_RBP;
}

/* Does the code name the stack pointer as an operand that it reads, or sums up an address with it?
 */
static bool
may_keep_sp(const Decoded *decoded)
{
    for (unsigned i = 0; i < decoded->insn.operand_count; i++) {
        const ZydisDecodedOperand *operand = &decoded->operands[i];
        if (operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
            continue;
        if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
            (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
            find_reg(operand->reg.value) == UPROF_X86_RSP)
            return true;
        if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_LEA &&
            operand->type == ZYDIS_OPERAND_TYPE_MEMORY && is_at_stack(operand))
            return true;
    }
    return false;
}

static bool
is_new_sp(const Decoded *decoded)
{
    return (decoded->insn.mnemonic == ZYDIS_MNEMONIC_MOV ||
            decoded->insn.mnemonic == ZYDIS_MNEMONIC_LEA) &&
           word_reg(decoded, &decoded->operands[0]) == UPROF_X86_RSP &&
           decoded->operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
           !is_at_stack(&decoded->operands[1]);
}

static void
apply_flow(const Decoded *decoded, UprofX86Insn *insn)
{
    switch (decoded->insn.mnemonic) {
    case ZYDIS_MNEMONIC_CALL:
        apply_transfer(decoded, insn, UPROF_X86_CALL, UPROF_X86_CALL_ANY);
        break;
    case ZYDIS_MNEMONIC_JMP:
        apply_transfer(decoded, insn, UPROF_X86_JUMP, UPROF_X86_JUMP_ANY);
        break;
    case ZYDIS_MNEMONIC_RET:
        apply_return(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_SYSCALL:
    case ZYDIS_MNEMONIC_SYSENTER:
        apply_syscall(insn);
        break;
    case ZYDIS_MNEMONIC_HLT:
        insn->kind = UPROF_X86_HALT;
        break;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
        insn->kind = UPROF_X86_STOP;
        break;
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
        insn->kind = is_word_wide(decoded) ? UPROF_X86_IRET : UPROF_X86_STOP;
        insn->writes = 0;
        break;
    default:
        apply_rare(decoded, insn);
    }
}

static void
apply_insn(const Decoded *decoded, UprofX86Insn *insn)
{
    switch (decoded->insn.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
        insn->kind = UPROF_X86_NOP;
        insn->writes = 0;
        break;
    case ZYDIS_MNEMONIC_ENDBR32:
    case ZYDIS_MNEMONIC_ENDBR64:
        insn->kind = UPROF_X86_MARK;
        break;
    case ZYDIS_MNEMONIC_MOV:
        apply_mov(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_LEA:
        apply_lea(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_ADD:
        apply_sum(decoded, insn, 1);
        break;
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_XOR:
        apply_difference(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_AND:
        apply_and(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_CMP:
        apply_cmp(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_PUSHF:
    case ZYDIS_MNEMONIC_PUSHFD:
    case ZYDIS_MNEMONIC_PUSHFQ:
        apply_push(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFD:
    case ZYDIS_MNEMONIC_POPFQ:
        apply_pop(decoded, insn);
        break;
    case ZYDIS_MNEMONIC_LEAVE:
        insn->kind = UPROF_X86_LEAVE;
        insn->writes = 0;
        break;
    default:
        apply_flow(decoded, insn);
    }
}

bool
uprof_x86_insn(UprofSlice code, unsigned word_bytes, UprofX86Insn *insn)
{
    Decoded decoded; /* Zydis writes all operands */
    ZydisDecoder decoder;

    decoded.word_bytes = word_bytes;
    ZydisDecoderInit(
        &decoder, word_bytes == 8 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
        word_bytes == 8 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
    if (code.len == 0 || ZYAN_FAILED(ZydisDecoderDecodeFull(
                             &decoder, code.data, MIN(code.len, (size_t)UPROF_X86_INSN_BYTES_MAX),
                             &decoded.insn, decoded.operands)))
        return false;
    *insn = (UprofX86Insn){ .len = decoded.insn.length,
                            .to = UPROF_X86_REG_NONE,
                            .from = UPROF_X86_REG_NONE,
                            .writes = find_writes(&decoded) };
    apply_insn(&decoded, insn);
    if (insn->kind == UPROF_X86_OTHER ||
        (insn->kind == UPROF_X86_STORE && insn->from == UPROF_X86_REG_NONE))
        insn->may_keep_sp = may_keep_sp(&decoded);
    insn->is_new_sp = insn->kind == UPROF_X86_OTHER && is_new_sp(&decoded);
    return true;
}
