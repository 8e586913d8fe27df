/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/x86-text.h"

#include <Zydis/Zydis.h>
#include <glib.h>
#include <string.h>

enum {
    INSN_BYTES_MAX = 15,
    MNEMONIC_COLUMNS = 6, /* as objdump */
};

typedef struct {
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    char text[256]; /* as Zydis writes it */
} Decoded;

/* clang-format off */
/* Mnemonics that binutils writes in another way than Zydis */
static const struct {
    ZydisMnemonic mnemonic;
    const char *text;
} renamed[] = {
#define CONDITION(name, text) \
    { ZYDIS_MNEMONIC_J ## name, "j" text }, { ZYDIS_MNEMONIC_SET ## name, "set" text }, \
    { ZYDIS_MNEMONIC_CMOV ## name, "cmov" text }
    CONDITION(Z, "e"), CONDITION(NZ, "ne"), CONDITION(NB, "ae"), CONDITION(NBE, "a"),
    CONDITION(NL, "ge"), CONDITION(NLE, "g"),
#undef CONDITION
    { ZYDIS_MNEMONIC_CBW, "cbtw" }, { ZYDIS_MNEMONIC_CWDE, "cwtl" }, { ZYDIS_MNEMONIC_CDQE, "cltq" },
    { ZYDIS_MNEMONIC_CWD, "cwtd" }, { ZYDIS_MNEMONIC_CDQ, "cltd" }, { ZYDIS_MNEMONIC_CQO, "cqto" },
};
/* clang-format on */

static bool
decode_insn(UprofSlice code, unsigned word_bytes, Decoded *decoded)
{
    ZydisDecoder decoder;

    ZydisDecoderInit(
        &decoder, word_bytes == 8 ? ZYDIS_MACHINE_MODE_LONG_64 : ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
        word_bytes == 8 ? ZYDIS_STACK_WIDTH_64 : ZYDIS_STACK_WIDTH_32);
    return code.len > 0 && ZYAN_SUCCESS(ZydisDecoderDecodeFull(
                               &decoder, code.data, MIN(code.len, (size_t)INSN_BYTES_MAX),
                               &decoded->insn, decoded->operands));
}

static bool
is_long_nop(const Decoded *decoded)
{
    return decoded->insn.mnemonic == ZYDIS_MNEMONIC_NOP &&
           decoded->operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY;
}

static bool
is_shift_by_one(const Decoded *decoded)
{
    return decoded->insn.operand_count_visible == 2 &&
           decoded->operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
           decoded->operands[1].visibility == ZYDIS_OPERAND_VISIBILITY_IMPLICIT;
}

/* Only the letter says the size of a sole operand in memory, but Zydis leaves the letter out. */
static bool
needs_letter(const Decoded *decoded)
{
    static const ZydisMnemonic mnemonics[] = {
        ZYDIS_MNEMONIC_INC, ZYDIS_MNEMONIC_DEC, ZYDIS_MNEMONIC_NEG,  ZYDIS_MNEMONIC_NOT,
        ZYDIS_MNEMONIC_MUL, ZYDIS_MNEMONIC_DIV, ZYDIS_MNEMONIC_IMUL, ZYDIS_MNEMONIC_IDIV,
        ZYDIS_MNEMONIC_SHL, ZYDIS_MNEMONIC_SHR, ZYDIS_MNEMONIC_SAR,  ZYDIS_MNEMONIC_ROL,
        ZYDIS_MNEMONIC_ROR, ZYDIS_MNEMONIC_RCL, ZYDIS_MNEMONIC_RCR,
    };

    if (decoded->insn.operand_count_visible != 1 ||
        decoded->operands[0].type != ZYDIS_OPERAND_TYPE_MEMORY)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(mnemonics); i++)
        if (mnemonics[i] == decoded->insn.mnemonic)
            return true;
    return false;
}

/* The name of a vector register says the size, so that the mnemonic has no letter. */
static bool
has_vector(const Decoded *decoded)
{
    for (unsigned i = 0; i < decoded->insn.operand_count_visible; i++)
        if (decoded->operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            ZydisRegisterGetClass(decoded->operands[i].reg.value) == ZYDIS_REGCLASS_XMM)
            return decoded->insn.mnemonic != ZYDIS_MNEMONIC_CVTSI2SD &&
                   decoded->insn.mnemonic != ZYDIS_MNEMONIC_CVTSI2SS;
    return false;
}

static bool
format_insn(Decoded *decoded, uint64_t address)
{
    static const struct {
        ZydisFormatterProperty property;
        ZyanUPointer value;
    } style[] = {
        { ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE },
        { ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE },
        { ZYDIS_FORMATTER_PROP_IMM_SIGNEDNESS, ZYDIS_SIGNEDNESS_UNSIGNED },
        { ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED },
        { ZYDIS_FORMATTER_PROP_ADDR_PADDING_RELATIVE, ZYDIS_PADDING_DISABLED },
        { ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED },
        { ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED },
    };
    ZydisFormatter formatter;

    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
    for (size_t i = 0; i < G_N_ELEMENTS(style); i++)
        ZydisFormatterSetProperty(&formatter, style[i].property, style[i].value);
    if (is_long_nop(decoded) || is_shift_by_one(decoded))
        decoded->insn.operand_count_visible = 1; /* as in binutils */
    return ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
        &formatter, &decoded->insn, decoded->operands, decoded->insn.operand_count_visible,
        decoded->text, sizeof(decoded->text), address, NULL));
}

/* Returns: the letter of AT&T syntax for the operand's size */
static char
find_letter(const ZydisDecodedOperand *operand)
{
    return operand->size == 8 ? 'b' : operand->size == 16 ? 'w' : operand->size == 32 ? 'l' : 'q';
}

/*
 * @word: as Zydis writes it, with a letter for the size
 * @len: of @word
 */
static void
append_mnemonic(GString *out, const Decoded *decoded, const char *word, size_t len)
{
    const char *name = ZydisMnemonicGetString(decoded->insn.mnemonic);
    const ZydisDecodedOperand *operands = decoded->operands;
    const ZydisMnemonic mnemonic = decoded->insn.mnemonic;

    if (mnemonic == ZYDIS_MNEMONIC_MOVZX || mnemonic == ZYDIS_MNEMONIC_MOVSX ||
        mnemonic == ZYDIS_MNEMONIC_MOVSXD) {
        g_string_append_printf(out, "mov%c%c%c", mnemonic == ZYDIS_MNEMONIC_MOVZX ? 'z' : 's',
                               find_letter(&operands[1]), find_letter(&operands[0]));
        return;
    }
    if (is_long_nop(decoded) || needs_letter(decoded)) {
        g_string_append_printf(out, "%s%c", name, find_letter(&operands[0]));
        return;
    }
    if (has_vector(decoded)) {
        g_string_append(out, name);
        return;
    }
    if (mnemonic == ZYDIS_MNEMONIC_MOV && decoded->insn.raw.imm[0].size == 64) {
        g_string_append(out, "movabs");
        return;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(renamed); i++) {
        if (renamed[i].mnemonic == mnemonic) {
            g_string_append(out, renamed[i].text);
            return;
        }
    }
    g_string_append_len(out, word, (gssize)len);
}

/* The target of an indirect call or jump begins with a star. */
static void
append_operands(GString *out, const Decoded *decoded, const char *operands)
{
    if (decoded->insn.mnemonic == ZYDIS_MNEMONIC_CALL ||
        decoded->insn.mnemonic == ZYDIS_MNEMONIC_JMP)
        g_string_append_c(out, '*');
    for (const char *at = operands; *at; at++)
        if (!(*at == ' ' && at > operands && at[-1] == ','))
            g_string_append_c(out, *at);
}

static bool
find_target(const Decoded *decoded, uint64_t address, uint64_t *target)
{
    const ZydisDecodedOperand *to = &decoded->operands[0];

    return decoded->insn.operand_count_visible > 0 && to->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
           to->imm.is_relative &&
           ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&decoded->insn, to, address, target));
}

/* Prefixes such as "lock" stay in front of the mnemonic, which then has no blanks behind it. */
static void
rewrite_text(const Decoded *decoded, UprofX86Text *text)
{
    const char *name = ZydisMnemonicGetString(decoded->insn.mnemonic);
    const char *found = name ? strstr(decoded->text, name) : NULL;
    const char *word = found ? found : decoded->text;
    const size_t len = strcspn(word, " ");
    g_autoptr(GString) out = g_string_new_len(decoded->text, (gssize)(word - decoded->text));
    const size_t start = out->len;

    append_mnemonic(out, decoded, word, len);
    if (word[len] == ' ') {
        const size_t wide = out->len - start;
        const size_t blanks = start == 0 && wide < MNEMONIC_COLUMNS ? MNEMONIC_COLUMNS - wide : 0;
        g_string_append_printf(out, "%*s", (int)blanks + 1, "");
        if (text->has_target)
            g_string_append_printf(out, "%" G_GINT64_MODIFIER "x", text->target);
        else
            append_operands(out, decoded, word + len + 1);
    }
    g_strlcpy(text->text, out->str, sizeof(text->text));
}

bool
uprof_x86_text(UprofSlice code, uint64_t address, unsigned word_bytes, UprofX86Text *text)
{
    Decoded decoded; /* Zydis writes all members */

    if (!decode_insn(code, word_bytes, &decoded) || !format_insn(&decoded, address))
        return false;
    *text = (UprofX86Text){ .len = decoded.insn.length };
    text->has_target = find_target(&decoded, address, &text->target);
    rewrite_text(&decoded, text);
    return true;
}
