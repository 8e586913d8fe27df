/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/x86-insn.h"

#include <string.h>

enum {
    SP = UPROF_X86_INSN_SP,
    FP = UPROF_X86_INSN_FP,
    NO_BASE = 0xff,
    REX_B = 1,
    REX_R = 4,
    REX_W = 8,
};

/* What follows an opcode: M, a ModR/M byte; B, W and Z, an immediate of 8, 16, or
 * 16 or 32 bits by operand size; J, a jump's distance like Z; V, like Z, but of 64
 * bits with REX.W; O, an address; F, a far pointer; T, ModR/M, and an immediate
 * by its register field (TEST); P, a prefix or an escape; '.', nothing; '-', there
 * is no such instruction; '3', only in 32-bit code, with nothing. Letters in small
 * are ModR/M and that. */
static const char one_byte[256] =
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

static const char two_bytes[256] = "MMMM-.....-.-M.b" /* 0 */
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

/* The opcode maps; those behind 0F 38 and 0F 3A are as regular as VEX's. */
typedef enum { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A, MAP_OTHER } Map;

/**
 * Decoder: what is known of the instruction so far
 * @base: register that a memory operand adds @disp to, and nothing else
 */
typedef struct {
    UprofSlice code;
    size_t at;
    bool is_64bit;
    bool is_vector; /* VEX, EVEX */
    bool has_evex;
    bool has_16bit_operands, has_other_addresses;
    uint8_t second; /* of a vector instruction: its other source, which is a result of some */
    uint8_t rex;
    Map map;
    uint8_t opcode;
    bool has_modrm;
    uint8_t mode, reg, rm;
    uint8_t base;
    int32_t disp;
    int64_t immediate;
} Decoder;

static bool
take(Decoder *decoder, uint8_t *byte)
{
    if (decoder->at >= decoder->code.len || decoder->at >= UPROF_X86_INSN_BYTES_MAX)
        return false;
    *byte = ((const uint8_t *)decoder->code.data)[decoder->at++];
    return true;
}

/* A signed number. */
static bool
take_number(Decoder *decoder, unsigned len, int64_t *value)
{
    uint64_t number = 0;
    uint8_t byte;

    for (unsigned i = 0; i < len; i++) {
        if (!take(decoder, &byte))
            return false;
        number |= (uint64_t)byte << (8 * i);
    }
    if (len > 0 && len < sizeof(number) && number >> (8 * len - 1))
        number |= UINT64_MAX << (8 * len);
    *value = (int64_t)number;
    return true;
}

/* Behind the prefixes, of which the last byte read was not one. */
static bool
take_prefixes(Decoder *decoder, uint8_t *byte)
{
    for (;;) {
        if (!take(decoder, byte))
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
            return take(decoder, byte);
        }
    }
}

static bool
take_vex(Decoder *decoder, uint8_t escape)
{
    uint8_t map = 1, byte;

    if (escape != 0xc5) {
        if (!take(decoder, &map))
            return false;
        decoder->rex = (uint8_t)((map & 0x80 ? 0 : REX_R) | (map & 0x20 ? 0 : REX_B));
        map &= escape == 0x62 ? 7 : 31;
    }
    decoder->is_vector = true;
    decoder->has_evex = escape == 0x62;
    decoder->map = map == 1 ? MAP_0F : map == 2 ? MAP_0F38 : map == 3 ? MAP_0F3A : MAP_OTHER;
    /* the register is stored with its bits the other way round, as are the upper ones of others */
    if (map == 0 || !take(decoder, &byte))
        return false;
    decoder->second = ~byte >> 3 & 15;
    if (escape == 0xc5)
        decoder->rex = byte & 0x80 ? 0 : REX_R;
    /* the last of EVEX's three bytes says nothing about general registers */
    if (decoder->has_evex && !take(decoder, &byte))
        return false;
    return take(decoder, &decoder->opcode);
}

/* C4, C5 and 62 are VEX and EVEX in 64-bit code, or where a ModR/M byte would name registers. */
static bool
is_vex(const Decoder *decoder, uint8_t byte)
{
    if (byte != 0xc4 && byte != 0xc5 && byte != 0x62)
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
    if (!take(decoder, &decoder->opcode))
        return false;
    if (decoder->opcode != 0x38 && decoder->opcode != 0x3a)
        return true;
    decoder->map = decoder->opcode == 0x38 ? MAP_0F38 : MAP_0F3A;
    return take(decoder, &decoder->opcode);
}

static bool
take_modrm(Decoder *decoder)
{
    uint8_t byte, sib, base;
    bool has_index = false;
    int64_t disp = 0;

    if (!take(decoder, &byte))
        return false;
    decoder->has_modrm = true;
    decoder->mode = byte >> 6;
    decoder->reg = (byte >> 3 & 7) | (decoder->rex & REX_R ? 8 : 0);
    decoder->rm = (byte & 7) | (decoder->rex & REX_B ? 8 : 0);
    decoder->base = NO_BASE;
    if (decoder->mode == 3)
        return true;
    /* 16-bit addresses are of another form */
    if (decoder->has_other_addresses && !decoder->is_64bit)
        return false;
    base = byte & 7;
    if (base == 4) {
        if (!take(decoder, &sib))
            return false;
        base = sib & 7;
        has_index = (sib >> 3 & 7) != 4;
    }
    const bool is_absolute = decoder->mode == 0 && base == 5;
    if (!take_number(decoder,
                     decoder->mode == 1                  ? 1
                     : decoder->mode == 2 || is_absolute ? 4
                                                         : 0,
                     &disp))
        return false;
    if (!is_absolute && !has_index && !(decoder->rex & REX_B))
        decoder->base = base;
    decoder->disp = (int32_t)disp;
    return true;
}

static char
find_form(const Decoder *decoder)
{
    switch (decoder->map) {
    case MAP_ONE:
        return one_byte[decoder->opcode];
    case MAP_0F:
        return two_bytes[decoder->opcode];
    case MAP_0F3A:
        return 'b';
    default:
        return 'M';
    }
}

/* F6 and F7 have an immediate if they are TEST. */
static unsigned
test_bytes(const Decoder *decoder, unsigned z)
{
    return (decoder->reg & 7) > 1 ? 0 : decoder->opcode == 0xf6 ? 1 : z;
}

static bool
take_operands(Decoder *decoder)
{
    const unsigned z = decoder->has_16bit_operands ? 2 : 4;
    const unsigned address = (decoder->is_64bit ? 8 : 4) / (decoder->has_other_addresses ? 2 : 1);
    const char form = find_form(decoder);
    unsigned len = 0;

    if (strchr("MTbz", form) && !take_modrm(decoder))
        return false;
    switch (form) {
    case 'M':
    case '.':
        break;
    case 'b':
    case 'B':
        len = 1;
        break;
    case 'W':
        len = 2;
        break;
    case 'X':
        len = 3; /* ENTER */
        break;
    case 'z':
    case 'Z':
        len = z;
        break;
    case 'J':
        len = decoder->is_64bit ? 4 : z;
        break;
    case 'V':
        len = decoder->rex & REX_W ? 8 : z;
        break;
    case 'O':
        len = address;
        break;
    case 'F':
        if (decoder->is_64bit)
            return false;
        len = z + 2;
        break;
    case 'T':
        len = test_bytes(decoder, z);
        break;
    case '3':
        if (decoder->is_64bit)
            return false;
        /* AAM, AAD */
        len = decoder->opcode == 0xd4 || decoder->opcode == 0xd5;
        break;
    case 'P':
        /* an escape that is an instruction of its own in 32-bit code: LES, LDS, BOUND */
        return strchr("\xc4\xc5\x62", decoder->opcode) && take_modrm(decoder);
    default:
        return false;
    }
    return take_number(decoder, len, &decoder->immediate);
}

/* Returns: what becomes of it when register @reg is written */
static UprofX86Kind
lose(unsigned reg)
{
    return reg == SP ? UPROF_X86_SP_LOST : reg == FP ? UPROF_X86_FP_LOST : UPROF_X86_OTHER;
}

/* ... when the operand is, which may be memory. */
static UprofX86Kind
lose_operand(const Decoder *decoder)
{
    return decoder->mode == 3 ? lose(decoder->rm) : UPROF_X86_OTHER;
}

static bool
is_whole_word(const Decoder *decoder)
{
    return decoder->is_64bit ? decoder->rex & REX_W : !decoder->has_16bit_operands;
}

/* Register @to becomes @from; both whole. */
static UprofX86Kind
move(const Decoder *decoder, unsigned to, unsigned from)
{
    if (!is_whole_word(decoder))
        return lose(to);
    if (to == FP && from == SP)
        return UPROF_X86_FP_FROM_SP;
    if (to == SP && from == FP)
        return UPROF_X86_SP_FROM_FP;
    return lose(to);
}

/* 80 to 83: arithmetics with an immediate, by the register field */
static UprofX86Kind
arithmetics(const Decoder *decoder, int32_t *value)
{
    enum { ADD = 0, SUB = 5, CMP = 7 };
    const unsigned what = decoder->reg & 7;

    if (what == CMP)
        return UPROF_X86_OTHER;
    if (decoder->mode != 3 || decoder->rm != SP || !is_whole_word(decoder) ||
        (what != ADD && what != SUB))
        return lose_operand(decoder);
    *value = (int32_t)(what == ADD ? decoder->immediate : -decoder->immediate);
    return UPROF_X86_MOVE_SP;
}

static UprofX86Kind
load_address(const Decoder *decoder, int32_t *value)
{
    *value = decoder->disp;
    if (is_whole_word(decoder) && !decoder->has_other_addresses) {
        if (decoder->reg == SP && decoder->base == SP)
            return UPROF_X86_MOVE_SP;
        if (decoder->reg == SP && decoder->base == FP)
            return UPROF_X86_SP_FROM_FP;
        if (decoder->reg == FP && decoder->base == SP)
            return UPROF_X86_FP_FROM_SP;
    }
    return lose(decoder->reg);
}

/* FF: by the register field */
static UprofX86Kind
group_ff(const Decoder *decoder, uint8_t *reg)
{
    switch (decoder->reg & 7) {
    case 0: /* INC */
    case 1: /* DEC */
        return lose_operand(decoder);
    case 2:
    case 3:
        return UPROF_X86_CALL;
    case 4:
    case 5:
        return UPROF_X86_JUMP_ANY;
    case 6:
        *reg = decoder->mode == 3 ? decoder->rm : UPROF_X86_REG_NONE;
        return UPROF_X86_PUSH;
    default:
        return UPROF_X86_OTHER;
    }
}

static UprofX86Kind
pushed(const Decoder *decoder, UprofX86Kind kind)
{
    return decoder->has_16bit_operands ? UPROF_X86_SP_LOST : kind;
}

/* Of eight bits: 4 and 5 are parts of the pointers only with REX, else of RAX and RCX. */
static UprofX86Kind
lose_byte(const Decoder *decoder, unsigned reg)
{
    return decoder->rex ? lose(reg) : UPROF_X86_OTHER;
}

static UprofX86Kind
lose_byte_operand(const Decoder *decoder)
{
    return decoder->mode == 3 ? lose_byte(decoder, decoder->rm) : UPROF_X86_OTHER;
}

/* The worse of two. */
static UprofX86Kind
either(UprofX86Kind one, UprofX86Kind other)
{
    return one != UPROF_X86_OTHER ? one : other;
}

/* The first half of an eighth of the map: ADD, OR, ... XOR, CMP in four forms */
static UprofX86Kind
arithmetic_forms(const Decoder *decoder)
{
    enum { SUB = 5, XOR = 6, CMP = 7 };
    const unsigned what = decoder->opcode >> 3;
    const bool is_byte = (decoder->opcode & 1) == 0, to_reg = decoder->opcode & 2;

    if (what == CMP)
        return UPROF_X86_OTHER;
    if (is_byte)
        return to_reg ? lose_byte(decoder, decoder->reg) : lose_byte_operand(decoder);
    if ((what == XOR || what == SUB) && decoder->mode == 3 && decoder->reg == FP &&
        decoder->rm == FP && !decoder->has_16bit_operands)
        return UPROF_X86_ZERO_FP;
    return to_reg ? lose(decoder->reg) : lose_operand(decoder);
}

static UprofX86Kind
classify_one_byte(const Decoder *decoder, UprofX86Insn *insn)
{
    const uint8_t opcode = decoder->opcode;
    const uint8_t low = (uint8_t)((opcode & 7) | (decoder->rex & REX_B ? 8 : 0));

    insn->value = (int32_t)decoder->immediate;
    if (opcode < 0x40 && (opcode & 7) < 4)
        return arithmetic_forms(decoder);
    if (opcode < 0x40)
        /* segments, in 32-bit code */
        return (opcode & 7) == 6 ? pushed(decoder, UPROF_X86_PUSH)
               : (opcode & 7) == 7
                   ? opcode < 0x20 ? pushed(decoder, UPROF_X86_POP) : UPROF_X86_OTHER
                   : UPROF_X86_OTHER;
    switch (opcode & 0xf8) {
    case 0x40: /* INC and DEC, in 32-bit code */
    case 0x48:
        return lose(opcode & 7);
    case 0x50:
        insn->reg = low;
        return pushed(decoder, UPROF_X86_PUSH);
    case 0x58:
        insn->reg = low;
        return low == SP ? UPROF_X86_SP_LOST : pushed(decoder, UPROF_X86_POP);
    case 0x70:
    case 0x78:
        return UPROF_X86_BRANCH;
    case 0xb0:
        return lose_byte(decoder, low);
    case 0xb8:
        return lose(low);
    case 0x90:
        return opcode == 0x90 ? UPROF_X86_OTHER : lose(low);
    default:
        break;
    }
    switch (opcode) {
    case 0x60: /* PUSHA */
        insn->value = -8 * 4;
        return pushed(decoder, UPROF_X86_MOVE_SP);
    case 0x61: /* POPA, which restores the frame pointer as well as all others */
        return UPROF_X86_SP_LOST;
    case 0x63:
    case 0x69:
    case 0x6b:
        return lose(decoder->reg);
    case 0x68:
    case 0x6a:
    case 0x9c: /* PUSHF */
        return pushed(decoder, UPROF_X86_PUSH);
    case 0x9d: /* POPF */
        return pushed(decoder, UPROF_X86_POP);
    case 0x81:
    case 0x83:
        return arithmetics(decoder, &insn->value);
    case 0x87: /* XCHG */
        return either(lose(decoder->reg), lose_operand(decoder));
    case 0x89:
        if (decoder->mode == 3) {
            insn->value = 0;
            return move(decoder, decoder->rm, decoder->reg);
        }
        if (decoder->reg != FP || decoder->base != SP || !is_whole_word(decoder))
            return UPROF_X86_OTHER;
        insn->value = decoder->disp;
        return UPROF_X86_SAVE_FP;
    case 0x8b:
        insn->value = 0;
        return decoder->mode == 3 ? move(decoder, decoder->reg, decoder->rm) : lose(decoder->reg);
    case 0x8d:
        return load_address(decoder, &insn->value);
    case 0x8f:
        insn->reg = decoder->mode == 3 ? decoder->rm : UPROF_X86_REG_NONE;
        return insn->reg == SP ? UPROF_X86_SP_LOST : pushed(decoder, UPROF_X86_POP);
    case 0x80: /* arithmetics, by the register field; 7 is CMP */
    case 0x82:
        return (decoder->reg & 7) == 7 ? UPROF_X86_OTHER : lose_byte_operand(decoder);
    case 0x86: /* XCHG */
        return either(lose_byte(decoder, decoder->reg), lose_byte_operand(decoder));
    case 0x88:
    case 0xc0:
    case 0xc6:
    case 0xd0:
    case 0xd2:
    case 0xfe:
        return lose_byte_operand(decoder);
    case 0x8a:
        return lose_byte(decoder, decoder->reg);
    case 0xf6:
        return (decoder->reg & 7) == 2 || (decoder->reg & 7) == 3 ? lose_byte_operand(decoder)
                                                                  : UPROF_X86_OTHER;
    case 0xc1:
    case 0xc7:
    case 0xd1:
    case 0xd3:
        return lose_operand(decoder);
    case 0xc2:
    case 0xc3:
    case 0xca:
    case 0xcb:
    case 0xcf:
        return UPROF_X86_RETURN;
    case 0xc8: /* ENTER */
        return UPROF_X86_SP_LOST;
    case 0xc9:
        return UPROF_X86_LEAVE;
    case 0xe0:
    case 0xe1:
    case 0xe2:
    case 0xe3:
        return UPROF_X86_BRANCH;
    case 0xe8:
        return UPROF_X86_CALL;
    case 0xe9:
    case 0xeb:
        return UPROF_X86_JUMP;
    case 0xea:
        return UPROF_X86_JUMP_ANY;
    case 0xf7:
        return (decoder->reg & 7) == 2 || (decoder->reg & 7) == 3 ? lose_operand(decoder)
                                                                  : UPROF_X86_OTHER;
    case 0xff: {
        const UprofX86Kind kind = group_ff(decoder, &insn->reg);
        insn->value = 0;
        return kind == UPROF_X86_PUSH ? pushed(decoder, kind) : kind;
    }
    default:
        return UPROF_X86_OTHER;
    }
}

static UprofX86Kind
classify_0f(const Decoder *decoder, UprofX86Insn *insn)
{
    const uint8_t opcode = decoder->opcode;

    insn->value = (int32_t)decoder->immediate;
    switch (opcode & 0xf0) {
    case 0x40: /* CMOV */
        return lose(decoder->reg);
    case 0x80:
        return UPROF_X86_BRANCH;
    case 0x90: /* SET */
        return lose_byte_operand(decoder);
    default:
        break;
    }
    switch (opcode) {
    case 0x07: /* SYSRET */
    case 0x0b: /* UD2 */
    case 0x35: /* SYSEXIT */
        return UPROF_X86_RETURN;
    case 0x02: /* LAR */
    case 0x03: /* LSL */
    case 0x2c: /* CVTT */
    case 0x2d: /* CVT */
    case 0x50: /* MOVMSK */
    case 0xaf: /* IMUL */
    case 0xb6: /* MOVZX */
    case 0xb7:
    case 0xb8: /* POPCNT */
    case 0xbc: /* BSF */
    case 0xbd: /* BSR */
    case 0xbe: /* MOVSX */
    case 0xbf:
    case 0xd7: /* PMOVMSKB */
        return lose(decoder->reg);
    case 0x20: /* MOV of control and debug registers */
    case 0x21:
    case 0x7e: /* MOVD */
    case 0xa4: /* SHLD */
    case 0xa5:
    case 0xab: /* BTS */
    case 0xac: /* SHRD */
    case 0xad:
    case 0xb1: /* CMPXCHG */
    case 0xb3: /* BTR */
    case 0xba:
    case 0xbb: /* BTC */
        return lose_operand(decoder);
    case 0xc1: /* XADD */
        return either(lose(decoder->reg), lose_operand(decoder));
    case 0xb0: /* CMPXCHG */
        return lose_byte_operand(decoder);
    case 0xc0: /* XADD */
        return either(lose_byte(decoder, decoder->reg), lose_byte_operand(decoder));
    case 0x00: /* SLDT, STR */
    case 0x01: /* SMSW */
    case 0x1e: /* RDSSP */
    case 0xae: /* RDFSBASE, RDGSBASE */
    case 0xc7: /* RDRAND, RDSEED, RDPID */
        return lose_operand(decoder);
    case 0xc5: /* PEXTRW */
        return lose(decoder->reg);
    case 0xa0: /* FS, GS */
    case 0xa8:
        return pushed(decoder, UPROF_X86_PUSH);
    case 0xa1:
    case 0xa9:
        return pushed(decoder, UPROF_X86_POP);
    case 0xcc: /* BSWAP */
    case 0xcd:
        return decoder->rex & REX_B ? UPROF_X86_OTHER : lose(opcode & 7);
    default:
        return UPROF_X86_OTHER;
    }
}

/*
 * Those behind 0F 38 and 0F 3A, and vector instructions: few of them have general
 * registers, and most of these as a result.
 */
static UprofX86Kind
classify_others(const Decoder *decoder)
{
    const uint8_t opcode = decoder->opcode;
    const UprofX86Kind all =
        either(either(lose(decoder->reg), lose_operand(decoder)), lose(decoder->second));

    switch (decoder->map) {
    case MAP_0F: /* KMOV, VMOVMSK, VPEXTRW, VPMOVMSKB, VMOVD, conversions to integers */
        return strchr("\x2c\x2d\x50\x78\x79\x7e\x92\x93\xc5\xd7", opcode) && opcode
                   ? all
                   : UPROF_X86_OTHER;
    case MAP_0F38: /* MOVBE, CRC32, ADX, and what of BMI has three operands */
        return opcode >= 0xf0 ? all : UPROF_X86_OTHER;
    case MAP_0F3A: /* PEXTR, EXTRACTPS, RORX */
        return (opcode >= 0x14 && opcode <= 0x17) || opcode == 0xf0 ? all : UPROF_X86_OTHER;
    case MAP_OTHER: /* of half-precision numbers: conversions to integers, VMOVW */
        return strchr("\x2c\x2d\x78\x79\x7e", opcode) && opcode ? all : UPROF_X86_OTHER;
    default:
        return UPROF_X86_OTHER;
    }
}

bool
uprof_x86_insn(UprofSlice code, unsigned word_bytes, UprofX86Insn *insn)
{
    Decoder decoder = { .code = code, .is_64bit = word_bytes == 8 };

    if (!take_opcode(&decoder) || !take_operands(&decoder))
        return false;
    *insn = (UprofX86Insn){ .len = (uint8_t)decoder.at, .reg = UPROF_X86_REG_NONE };
    if (!decoder.is_vector && decoder.map == MAP_ONE)
        insn->kind = classify_one_byte(&decoder, insn);
    else if (!decoder.is_vector && decoder.map == MAP_0F)
        insn->kind = classify_0f(&decoder, insn);
    else
        insn->kind = classify_others(&decoder);
    return true;
}
