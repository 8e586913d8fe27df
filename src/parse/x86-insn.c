/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/x86-insn.h"

enum {
    SP = UPROF_X86_INSN_SP,
    FP = UPROF_X86_INSN_FP,
    NO_BASE = 0xff,
    REX_B = 1,
    REX_R = 4,
    REX_W = 8,
};

/*
 * Two tables for each opcode map, in the order of the opcodes, 16 in a row: the bytes that follow
 * the opcode, and the effect of the instruction on registers and on the flow of control.
 */

/** Form: the bytes that follow an opcode */
typedef enum {
    FORM_NONE = '.',     /* nothing */
    FORM_INVALID = '-',  /* there is no such instruction */
    FORM_PREFIX = 'P',   /* a prefix or an escape */
    FORM_ONLY_32 = '3',  /* valid in 32-bit code only; nothing, but a byte for AAM and AAD */
    FORM_MODRM = 'M',    /* a ModR/M byte */
    FORM_MODRM_8 = 'b',  /* a ModR/M byte and an immediate of 8 bits */
    FORM_MODRM_Z = 'z',  /* a ModR/M byte and an immediate like FORM_Z */
    FORM_TEST = 'T',     /* a ModR/M byte; TEST, by its register field, has an immediate too */
    FORM_8 = 'B',        /* an immediate of 8 bits */
    FORM_16 = 'W',       /* an immediate of 16 bits */
    FORM_Z = 'Z',        /* an immediate of 16 or 32 bits, by operand size */
    FORM_V = 'V',        /* like FORM_Z, but of 64 bits with REX.W */
    FORM_ENTER = 'X',    /* immediates of 16 and 8 bits */
    FORM_DISTANCE = 'J', /* a distance: 32 bits in 64-bit code, else like FORM_Z */
    FORM_ADDRESS = 'O',  /* an address, by address size */
    FORM_FAR = 'F',      /* a far pointer; valid in 32-bit code only */
} Form;

/**
 * Effect: the changes that an instruction makes
 *
 * "Byte" effects write 8 bits of a register.
 */
typedef enum {
    EFFECT_NONE = '.', /* changes neither pointer, and the next instruction follows */
    WRITE_REG = 'r',   /* writes the register of ModR/M's register field */
    WRITE_RM = 'm',    /* writes the operand of ModR/M, a register or memory */
    WRITE_BOTH = 'x',  /* writes both of them */
    WRITE_REG_BYTE = 'R',
    WRITE_RM_BYTE = 'M',
    WRITE_BOTH_BYTES = 'X',
    WRITE_LOW = 'l', /* writes the register that the low three bits of the opcode name */
    WRITE_LOW_BYTE = 'L',
    SUBTRACT = '0', /* SUB and XOR, which make a register zero */
    PUSH_LOW = 'p', /* pushes the register of the low three bits */
    POP_LOW = 'q',
    PUSH_OTHER = 'P', /* pushes flags, a segment register or an immediate */
    POP_OTHER = 'Q',
    LOSE_SP = 's', /* moves the stack pointer by an amount that is not decoded */
    LEAVE = 'v',
    CALL = 'C',
    JUMP = 'J',
    JUMP_FAR = 'F',
    BRANCH = 'B',
    RETURN = 'E',  /* the next instruction is not run */
    SPECIAL = '*', /* see apply_special_effect() */
} Effect;

/* clang-format off */
static const char one_byte_forms[256] =
    /*  0123456789abcdef */
    "MMMMBZ33MMMMBZ3P" /* 0 */
    "MMMMBZ33MMMMBZ33" /* 1 */
    "MMMMBZP3MMMMBZP3" /* 2 */
    "MMMMBZP3MMMMBZP3" /* 3 */
    "................" /* 4 */
    "................" /* 5 */
    "33PMPPPPZzBb...." /* 6 */
    "BBBBBBBBBBBBBBBB" /* 7 */
    "bzbbMMMMMMMMMMMM" /* 8 */
    "..........F....." /* 9 */
    "OOOO....BZ......" /* a */
    "BBBBBBBBVVVVVVVV" /* b */
    "bbW.PPbzX.W..B3." /* c */
    "MMMM33-.MMMMMMMM" /* d */
    "BBBBBBBBJJFB...." /* e */
    "P.PP..TT......MM" /* f */;

/* Rows 0 to 3 are ADD, OR, ADC, SBB, AND, SUB, XOR and CMP, and segments in 32-bit code. */
static const char one_byte_effects[256] =
    /*  0123456789abcdef */
    "MmRr..PQMmRr..P." /* 0 */
    "MmRr..PQMmRr..PQ" /* 1 */
    "MmRr....M0R0...." /* 2 */
    "M0R0............" /* 3 */
    "llllllllllllllll" /* 4: INC and DEC, in 32-bit code */
    "ppppppppqqqqqqqq" /* 5: PUSH, POP */
    "*s.r....PrPr...." /* 6: PUSHA, POPA, MOVSXD, PUSH, IMUL */
    "BBBBBBBBBBBBBBBB" /* 7 */
    "****..XxM*R*.*.*" /* 8: arithmetic, TEST, XCHG, MOV, LEA, POP */
    ".lllllll....PQ.." /* 9: XCHG, PUSHF, POPF */
    "................" /* a */
    "LLLLLLLLllllllll" /* b: MOV */
    "MmEE..MmsvEE...E" /* c: shifts, RET, MOV, ENTER, LEAVE, IRET */
    "MmMm............" /* d: shifts */
    "BBBB....CJFJ...." /* e: LOOP, JRCXZ, CALL, JMP */
    "......**......M*" /* f: NOT, NEG; INC, DEC, CALL, JMP, PUSH */;

static const char two_byte_forms[256] =
    /*  0123456789abcdef */
    "MMMM-.....-.-M.b" /* 0 */
    "MMMMMMMMMMMMMMMM" /* 1 */
    "MMMM----MMMMMMMM" /* 2 */
    "......-.P-P-----" /* 3 */
    "MMMMMMMMMMMMMMMM" /* 4 */
    "MMMMMMMMMMMMMMMM" /* 5 */
    "MMMMMMMMMMMMMMMM" /* 6 */
    "bbbbMMM.MMMMMMMM" /* 7 */
    "JJJJJJJJJJJJJJJJ" /* 8 */
    "MMMMMMMMMMMMMMMM" /* 9 */
    "...MbM--...MbMMM" /* a */
    "MMMMMMMMMMbMMMMM" /* b */
    "MMbMbbbM........" /* c */
    "MMMMMMMMMMMMMMMM" /* d */
    "MMMMMMMMMMMMMMMM" /* e */
    "MMMMMMMMMMMMMMMM" /* f */;

static const char two_byte_effects[256] =
    /*  0123456789abcdef */
    "mmrr...E...E...." /* 0: SLDT, SMSW, LAR, LSL, SYSRET, UD2 */
    "..............m." /* 1: RDSSP */
    "mm..........rr.." /* 2: MOV of control and debug registers, CVTT, CVT */
    ".....E.........." /* 3: SYSEXIT */
    "rrrrrrrrrrrrrrrr" /* 4: CMOV */
    "r..............." /* 5: MOVMSK */
    "................" /* 6 */
    "..............m." /* 7: MOVD */
    "BBBBBBBBBBBBBBBB" /* 8 */
    "MMMMMMMMMMMMMMMM" /* 9: SET */
    "PQ..mm..PQ.mmmmr" /* a: FS and GS, SHLD, BTS, SHRD, RDFSBASE, IMUL */
    "Mm.m..rrr.mmrrrr" /* b: CMPXCHG, BTR, MOVZX, POPCNT, BTC, BSF, BSR, MOVSX */
    "Xx...r.mllllllll" /* c: XADD, PEXTRW, RDRAND, BSWAP */
    ".......r........" /* d: PMOVMSKB */
    "................" /* e */
    "................" /* f */;
/* clang-format on */

/* The opcode maps. All opcodes of 0F 38 have one form, and all opcodes of 0F 3A another one. */
typedef enum { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER } Map;

/** Decoder: an instruction, as far as it is decoded */
typedef struct {
    UprofSlice code; /* borrowed */
    size_t at;       /* of the next byte in @code */
    bool is_64bit;
    bool is_vector; /* VEX, EVEX */
    bool has_evex;
    bool has_16bit_operands;
    bool has_other_addresses; /* of the other address size, by prefix 67 */
    uint8_t second;           /* VEX.vvvv: another source; some instructions write the register */
    uint8_t rex;
    Map map;
    uint8_t opcode;
    uint8_t mode, reg, rm; /* fields of ModR/M, with the bits of REX */
    uint8_t base;          /* a memory operand is this register + @disp; NO_BASE: any other sum */
    int32_t disp;
    int64_t immediate;
} Decoder;

static bool
take_byte(Decoder *decoder, uint8_t *byte)
{
    if (decoder->at >= decoder->code.len || decoder->at >= UPROF_X86_INSN_BYTES_MAX)
        return false;
    *byte = ((const uint8_t *)decoder->code.data)[decoder->at++];
    return true;
}

/* Takes a signed number of @len bytes. */
static bool
take_number(Decoder *decoder, unsigned len, int64_t *value)
{
    uint64_t number = 0;
    uint8_t byte;

    for (unsigned i = 0; i < len; i++) {
        if (!take_byte(decoder, &byte))
            return false;
        number |= (uint64_t)byte << (8 * i);
    }
    if (len > 0 && len < sizeof(number) && number >> (8 * len - 1))
        number |= UINT64_MAX << (8 * len);
    *value = (int64_t)number;
    return true;
}

/* Takes all prefixes. @byte: the first byte after them */
static bool
take_prefixes(Decoder *decoder, uint8_t *byte)
{
    for (;;) {
        if (!take_byte(decoder, byte))
            return false;
        switch (*byte) {
        case 0x66:
            decoder->has_16bit_operands = true;
            break;
        case 0x67:
            decoder->has_other_addresses = true;
            break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0x64:
        case 0x65:
        case 0xf0:
        case 0xf2:
        case 0xf3:
            break;
        default:
            if (!decoder->is_64bit || (*byte & 0xf0) != 0x40)
                return true;
            decoder->rex = *byte;
            return take_byte(decoder, byte);
        }
    }
}

static bool
take_vex(Decoder *decoder, uint8_t escape)
{
    uint8_t map = 1, byte;

    if (escape != 0xc5) {
        if (!take_byte(decoder, &map))
            return false;
        decoder->rex = (uint8_t)((map & 0x80 ? 0 : REX_R) | (map & 0x20 ? 0 : REX_B));
        map &= escape == 0x62 ? 7 : 31;
    }
    decoder->is_vector = true;
    decoder->has_evex = escape == 0x62;
    decoder->map = map == 1 ? MAP_0F : map == 2 ? MAP_0F38 : map == 3 ? MAP_0F3A : MAP_OTHER;
    /* the prefix inverts this register number, and the upper bits of the other register numbers */
    if (map == 0 || !take_byte(decoder, &byte))
        return false;
    decoder->second = ~byte >> 3 & 15;
    if (escape == 0xc5)
        decoder->rex = byte & 0x80 ? 0 : REX_R;
    /* the last byte of EVEX says nothing about general registers */
    if (decoder->has_evex && !take_byte(decoder, &byte))
        return false;
    return take_byte(decoder, &decoder->opcode);
}

static bool
is_vector_escape(uint8_t byte)
{
    return byte == 0xc4 || byte == 0xc5 || byte == 0x62;
}

/*
 * In 32-bit code the bytes that begin VEX and EVEX are also LES, LDS and BOUND. Those have
 * only memory operands, so a ModR/M byte that would name a register means VEX or EVEX.
 */
static bool
is_vex(const Decoder *decoder, uint8_t byte)
{
    if (!is_vector_escape(byte))
        return false;
    return decoder->is_64bit || (decoder->at < decoder->code.len &&
                                 ((const uint8_t *)decoder->code.data)[decoder->at] >= 0xc0);
}

static bool
take_opcode(Decoder *decoder)
{
    uint8_t byte;

    if (!take_prefixes(decoder, &byte))
        return false;
    decoder->opcode = byte;
    if (is_vex(decoder, byte))
        return take_vex(decoder, byte);
    if (byte != 0x0f)
        return true;
    decoder->map = MAP_0F;
    if (!take_byte(decoder, &decoder->opcode))
        return false;
    if (decoder->opcode != 0x38 && decoder->opcode != 0x3a)
        return true;
    decoder->map = decoder->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
    return take_byte(decoder, &decoder->opcode);
}

static bool
take_modrm(Decoder *decoder)
{
    uint8_t byte, sib, base;
    bool has_index = false;
    int64_t disp = 0;

    if (!take_byte(decoder, &byte))
        return false;
    decoder->mode = byte >> 6;
    decoder->reg = (byte >> 3 & 7) | (decoder->rex & REX_R ? 8 : 0);
    decoder->rm = (byte & 7) | (decoder->rex & REX_B ? 8 : 0);
    decoder->base = NO_BASE;
    if (decoder->mode == 3)
        return true;
    /* 16-bit addresses have another encoding, which is not supported */
    if (decoder->has_other_addresses && !decoder->is_64bit)
        return false;
    base = byte & 7;
    if (base == 4) {
        if (!take_byte(decoder, &sib))
            return false;
        base = sib & 7;
        has_index = (sib >> 3 & 7) != 4;
    }
    const bool is_absolute = decoder->mode == 0 && base == 5;
    const unsigned disp_bytes = decoder->mode == 1 ? 1 : decoder->mode == 2 || is_absolute ? 4 : 0;
    if (!take_number(decoder, disp_bytes, &disp))
        return false;
    if (!is_absolute && !has_index && !(decoder->rex & REX_B))
        decoder->base = base;
    decoder->disp = (int32_t)disp;
    return true;
}

static Form
find_form(const Decoder *decoder)
{
    switch (decoder->map) {
    case MAP_ONE:
        return one_byte_forms[decoder->opcode];
    case MAP_0F:
        return two_byte_forms[decoder->opcode];
    case MAP_0F3A:
        return FORM_MODRM_8;
    default:
        return FORM_MODRM;
    }
}

static bool
has_modrm(Form form)
{
    return form == FORM_MODRM || form == FORM_MODRM_8 || form == FORM_MODRM_Z || form == FORM_TEST;
}

static bool
is_only_in_32bit(Form form)
{
    return form == FORM_ONLY_32 || form == FORM_FAR;
}

/* F6 and F7 have an immediate if they are TEST. @z: bytes of a FORM_Z */
static unsigned
count_test_bytes(const Decoder *decoder, unsigned z)
{
    return (decoder->reg & 7) > 1 ? 0 : decoder->opcode == 0xf6 ? 1 : z;
}

/* Returns: bytes of the immediate */
static unsigned
count_immediate_bytes(const Decoder *decoder, Form form)
{
    const unsigned z = decoder->has_16bit_operands ? 2 : 4;

    switch (form) {
    case FORM_8:
    case FORM_MODRM_8:
        return 1;
    case FORM_16:
        return 2;
    case FORM_ENTER:
        return 3;
    case FORM_Z:
    case FORM_MODRM_Z:
        return z;
    case FORM_DISTANCE:
        return decoder->is_64bit ? 4 : z;
    case FORM_V:
        return decoder->rex & REX_W ? 8 : z;
    case FORM_ADDRESS:
        return (decoder->is_64bit ? 8 : 4) / (decoder->has_other_addresses ? 2 : 1);
    case FORM_FAR:
        return z + 2;
    case FORM_TEST:
        return count_test_bytes(decoder, z);
    case FORM_ONLY_32:
        return decoder->opcode == 0xd4 || decoder->opcode == 0xd5; /* AAM, AAD */
    default:
        return 0;
    }
}

static bool
take_operands(Decoder *decoder)
{
    const Form form = find_form(decoder);

    if (form == FORM_INVALID || (is_only_in_32bit(form) && decoder->is_64bit))
        return false;
    /* the escapes of VEX and EVEX are LES, LDS and BOUND in 32-bit code */
    if (form == FORM_PREFIX)
        return is_vector_escape(decoder->opcode) && take_modrm(decoder);
    if (has_modrm(form) && !take_modrm(decoder))
        return false;
    return take_number(decoder, count_immediate_bytes(decoder, form), &decoder->immediate);
}

/* Returns: the effect on the two pointers of a write to register @reg */
static UprofX86Kind
write_reg(unsigned reg)
{
    return reg == SP ? UPROF_X86_SP_LOST : reg == FP ? UPROF_X86_FP_LOST : UPROF_X86_OTHER;
}

static UprofX86Kind
write_rm(const Decoder *decoder)
{
    return decoder->mode == 3 ? write_reg(decoder->rm) : UPROF_X86_OTHER;
}

/* Byte registers 4 and 5 are parts of SP and FP with REX, and AH and CH without. */
static UprofX86Kind
write_byte_reg(const Decoder *decoder, unsigned reg)
{
    return decoder->rex ? write_reg(reg) : UPROF_X86_OTHER;
}

static UprofX86Kind
write_byte_rm(const Decoder *decoder)
{
    return decoder->mode == 3 ? write_byte_reg(decoder, decoder->rm) : UPROF_X86_OTHER;
}

/* Returns: @one if @one changes a pointer, else @other */
static UprofX86Kind
choose_change(UprofX86Kind one, UprofX86Kind other)
{
    return one != UPROF_X86_OTHER ? one : other;
}

static bool
is_full_width(const Decoder *decoder)
{
    return decoder->is_64bit ? decoder->rex & REX_W : !decoder->has_16bit_operands;
}

/* An operand of 16 bits moves the stack pointer by 2 bytes, which no caller expects. */
static UprofX86Kind
check_stack_width(const Decoder *decoder, UprofX86Kind kind)
{
    return decoder->has_16bit_operands ? UPROF_X86_SP_LOST : kind;
}

/* Register @to becomes @from. */
static UprofX86Kind
move_reg(const Decoder *decoder, unsigned to, unsigned from)
{
    if (is_full_width(decoder) && to == FP && from == SP)
        return UPROF_X86_FP_FROM_SP;
    if (is_full_width(decoder) && to == SP && from == FP)
        return UPROF_X86_SP_FROM_FP;
    return write_reg(to);
}

/* 89: register to operand */
static UprofX86Kind
store_reg(const Decoder *decoder, UprofX86Insn *insn)
{
    if (decoder->mode == 3)
        return move_reg(decoder, decoder->rm, decoder->reg);
    if (decoder->reg != FP || decoder->base != SP || !is_full_width(decoder))
        return UPROF_X86_OTHER;
    insn->value = decoder->disp;
    return UPROF_X86_SAVE_FP;
}

/* 80 to 83: the register field names the operation */
static UprofX86Kind
apply_group_80(const Decoder *decoder, UprofX86Insn *insn)
{
    enum { ADD = 0, SUB = 5, CMP = 7 };
    const unsigned operation = decoder->reg & 7;
    const bool is_byte = (decoder->opcode & 1) == 0;

    if (operation == CMP)
        return UPROF_X86_OTHER;
    if (is_byte)
        return write_byte_rm(decoder);
    if (decoder->mode != 3 || decoder->rm != SP || !is_full_width(decoder) ||
        (operation != ADD && operation != SUB))
        return write_rm(decoder);
    insn->value = (int32_t)(operation == ADD ? decoder->immediate : -decoder->immediate);
    return UPROF_X86_MOVE_SP;
}

static UprofX86Kind
load_address(const Decoder *decoder, UprofX86Insn *insn)
{
    insn->value = decoder->disp;
    if (is_full_width(decoder) && !decoder->has_other_addresses) {
        if (decoder->reg == SP && decoder->base == SP)
            return UPROF_X86_MOVE_SP;
        if (decoder->reg == SP && decoder->base == FP)
            return UPROF_X86_SP_FROM_FP;
        if (decoder->reg == FP && decoder->base == SP)
            return UPROF_X86_FP_FROM_SP;
    }
    return write_reg(decoder->reg);
}

static UprofX86Kind
pop_rm(const Decoder *decoder, UprofX86Insn *insn)
{
    insn->reg = decoder->mode == 3 ? decoder->rm : UPROF_X86_REG_NONE;
    return insn->reg == SP ? UPROF_X86_SP_LOST : check_stack_width(decoder, UPROF_X86_POP);
}

/* F6 and F7: of TEST, NOT, NEG and the multiplications only NOT and NEG write the operand. */
static UprofX86Kind
apply_group_f6(const Decoder *decoder)
{
    enum { NOT = 2, NEG = 3 };
    const unsigned operation = decoder->reg & 7;

    if (operation != NOT && operation != NEG)
        return UPROF_X86_OTHER;
    return decoder->opcode == 0xf6 ? write_byte_rm(decoder) : write_rm(decoder);
}

/* FF: the register field names the operation */
static UprofX86Kind
apply_group_ff(const Decoder *decoder, UprofX86Insn *insn)
{
    switch (decoder->reg & 7) {
    case 0: /* INC */
    case 1: /* DEC */
        return write_rm(decoder);
    case 2:
    case 3:
        return UPROF_X86_CALL;
    case 4:
    case 5:
        return UPROF_X86_JUMP_ANY;
    case 6:
        insn->reg = decoder->mode == 3 ? decoder->rm : UPROF_X86_REG_NONE;
        return check_stack_width(decoder, UPROF_X86_PUSH);
    default:
        return UPROF_X86_OTHER;
    }
}

/* One-byte opcodes whose effect depends on more than the opcode. */
static UprofX86Kind
apply_special_effect(const Decoder *decoder, UprofX86Insn *insn)
{
    switch (decoder->opcode) {
    case 0x60: /* PUSHA */
        insn->value = -8 * 4;
        return check_stack_width(decoder, UPROF_X86_MOVE_SP);
    case 0x80:
    case 0x81:
    case 0x82:
    case 0x83:
        return apply_group_80(decoder, insn);
    case 0x89:
        return store_reg(decoder, insn);
    case 0x8b:
        return decoder->mode == 3 ? move_reg(decoder, decoder->reg, decoder->rm)
                                  : write_reg(decoder->reg);
    case 0x8d:
        return load_address(decoder, insn);
    case 0x8f:
        return pop_rm(decoder, insn);
    case 0xf6:
    case 0xf7:
        return apply_group_f6(decoder);
    case 0xff:
        return apply_group_ff(decoder, insn);
    default:
        g_assert_not_reached();
    }
}

static UprofX86Kind
apply_subtraction(const Decoder *decoder)
{
    const bool is_to_reg = decoder->opcode & 2;

    if (decoder->mode == 3 && decoder->reg == FP && decoder->rm == FP &&
        !decoder->has_16bit_operands)
        return UPROF_X86_ZERO_FP;
    return is_to_reg ? write_reg(decoder->reg) : write_rm(decoder);
}

static UprofX86Kind
apply_effect(const Decoder *decoder, Effect effect, UprofX86Insn *insn)
{
    const uint8_t low = (uint8_t)((decoder->opcode & 7) | (decoder->rex & REX_B ? 8 : 0));

    switch (effect) {
    case EFFECT_NONE:
        return UPROF_X86_OTHER;
    case WRITE_REG:
        return write_reg(decoder->reg);
    case WRITE_RM:
        return write_rm(decoder);
    case WRITE_BOTH:
        return choose_change(write_reg(decoder->reg), write_rm(decoder));
    case WRITE_REG_BYTE:
        return write_byte_reg(decoder, decoder->reg);
    case WRITE_RM_BYTE:
        return write_byte_rm(decoder);
    case WRITE_BOTH_BYTES:
        return choose_change(write_byte_reg(decoder, decoder->reg), write_byte_rm(decoder));
    case WRITE_LOW:
        return write_reg(low);
    case WRITE_LOW_BYTE:
        return write_byte_reg(decoder, low);
    case SUBTRACT:
        return apply_subtraction(decoder);
    case PUSH_LOW:
        insn->reg = low;
        return check_stack_width(decoder, UPROF_X86_PUSH);
    case POP_LOW:
        insn->reg = low;
        return low == SP ? UPROF_X86_SP_LOST : check_stack_width(decoder, UPROF_X86_POP);
    case PUSH_OTHER:
        return check_stack_width(decoder, UPROF_X86_PUSH);
    case POP_OTHER:
        return check_stack_width(decoder, UPROF_X86_POP);
    case LOSE_SP:
        return UPROF_X86_SP_LOST;
    case LEAVE:
        return UPROF_X86_LEAVE;
    case CALL:
        return UPROF_X86_CALL;
    case JUMP:
        return UPROF_X86_JUMP;
    case JUMP_FAR:
        return UPROF_X86_JUMP_ANY;
    case BRANCH:
        return UPROF_X86_BRANCH;
    case RETURN:
        return UPROF_X86_RETURN;
    case SPECIAL:
        return apply_special_effect(decoder, insn);
    }
    g_assert_not_reached();
}

/*
 * Opcodes of the other maps, and of vector instructions, that can write a general register. Most of
 * them write the register of one of three fields. The decoder does not decide which field.
 */
static bool
writes_general_reg(const Decoder *decoder)
{
    const uint8_t opcode = decoder->opcode;

    switch (decoder->map) {
    case MAP_0F:
        switch (opcode) {
        case 0x50: /* VMOVMSK */
        case 0x92: /* KMOV */
        case 0x93:
        case 0xc5: /* VPEXTRW */
        case 0xd7: /* VPMOVMSKB */
            return true;
        default:
            break;
        }
        G_GNUC_FALLTHROUGH;
    case MAP_OTHER: /* half precision; VMOVD, VMOVW, and conversions to integers */
        return opcode == 0x2c || opcode == 0x2d || opcode == 0x78 || opcode == 0x79 ||
               opcode == 0x7e;
    case MAP_0F38: /* MOVBE, CRC32, ADX, and the instructions of BMI with three operands */
        return opcode >= 0xf0;
    case MAP_0F3A: /* PEXTR, EXTRACTPS, RORX */
        return (opcode >= 0x14 && opcode <= 0x17) || opcode == 0xf0;
    default:
        return false;
    }
}

static UprofX86Kind
classify_rare_insn(const Decoder *decoder)
{
    if (!writes_general_reg(decoder))
        return UPROF_X86_OTHER;
    return choose_change(choose_change(write_reg(decoder->reg), write_rm(decoder)),
                         write_reg(decoder->second));
}

bool
uprof_x86_insn(UprofSlice code, unsigned word_bytes, UprofX86Insn *insn)
{
    Decoder decoder = { .code = code, .is_64bit = word_bytes == 8 };

    if (!take_opcode(&decoder) || !take_operands(&decoder))
        return false;
    *insn = (UprofX86Insn){ .len = (uint8_t)decoder.at, .reg = UPROF_X86_REG_NONE };
    if (decoder.is_vector || decoder.map > MAP_0F) {
        insn->kind = classify_rare_insn(&decoder);
        return true;
    }
    const char *effects = decoder.map == MAP_ONE ? one_byte_effects : two_byte_effects;
    insn->value = (int32_t)decoder.immediate;
    insn->kind = apply_effect(&decoder, effects[decoder.opcode], insn);
    return true;
}
