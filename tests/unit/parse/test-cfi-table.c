/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#include "../../../src/parse/cfi-table-priv.h"
#include "uprof/error.h"

/*
 * Handwritten sections. There is code at TEXT and at FAR. The usual FDE describes FUNCTION_LEN
 * bytes at TEXT. .eh_frame is loaded at EH, .debug_frame is not loaded.
 */
enum {
    TEXT = 0x1000,
    TEXT_LEN = 0x1000,
    FAR = 0x5000,
    FAR_LEN = 0x100,
    EH = 0x8000,
    FUNCTION_LEN = 0x40,

    PCREL_SDATA4 = 0x1b,
    ABS_UDATA4 = 0x03,
};

#define BYTES(text)                                                                                \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define SLICE(text) ((UprofSlice)BYTES(text))

/* CFA is RSP + 8, the return address at CFA - 8 */
#define START "\x0c\x07\x08\x90\x01"
#define AT_START "1000 RSP+8 RIP@-8"
#define THEN " | "
#define AT_END " | 1040 none"

typedef struct {
    bool is_debug;
    bool is_long; /* 64-bit DWARF */
    bool is_32;   /* an image of i386 */
    uint8_t version;
    const char *letters;
    UprofSlice letter_data;
    UprofSlice program;
    uint8_t encoding; /* as the letters say */
} CiePlan;

static const CiePlan usual = {
    .version = 1,
    .letters = "zR",
    .letter_data = BYTES("\x1b"),
    .program = BYTES(START),
    .encoding = PCREL_SDATA4,
};

static void
put(GByteArray *section, unsigned width, uint64_t value)
{
    const uint64_t bytes = GUINT64_TO_LE(value);

    g_byte_array_append(section, (const guint8 *)&bytes, width);
}

static void
put_slice(GByteArray *section, UprofSlice bytes)
{
    if (bytes.len > 0)
        g_byte_array_append(section, bytes.data, (guint)bytes.len);
}

/* Returns: offset of the entry; end_entry() fills in its length */
static size_t
begin_entry(GByteArray *section, const CiePlan *plan)
{
    const size_t at = section->len;

    put(section, 4, plan->is_long ? UINT32_MAX : 0);
    if (plan->is_long)
        put(section, 8, 0);
    return at;
}

static void
end_entry(GByteArray *section, const CiePlan *plan, size_t at)
{
    const size_t len_at = at + (plan->is_long ? 4 : 0), len_bytes = plan->is_long ? 8 : 4;
    const uint64_t len = GUINT64_TO_LE(section->len - len_at - len_bytes);

    memcpy(section->data + len_at, &len, len_bytes);
}

static size_t
put_cie(GByteArray *section, const CiePlan *plan)
{
    const size_t at = begin_entry(section, plan);
    const unsigned word = plan->is_32 ? 4 : 8;

    if (plan->is_debug)
        put(section, plan->is_long ? 8 : 4, UINT64_MAX);
    else
        put(section, 4, 0);
    put(section, 1, plan->version);
    g_byte_array_append(section, (const guint8 *)plan->letters, (guint)strlen(plan->letters) + 1);
    if (plan->version == 4)
        put(section, 2, word);
    if (strcmp(plan->letters, "eh") == 0)
        put(section, word, 0x1234);
    put(section, 1, 1);                         /* code alignment */
    put(section, 1, plan->is_32 ? 0x7c : 0x78); /* data alignment: -4 or -8 */
    put(section, 1, plan->is_32 ? 8 : 16);
    if (plan->letters[0] == 'z') {
        put(section, 1, plan->letter_data.len);
        put_slice(section, plan->letter_data);
    }
    put_slice(section, plan->program);
    end_entry(section, plan, at);
    return at;
}

static void
put_fde(GByteArray *section, const CiePlan *plan, size_t cie, uint64_t start, uint64_t len,
        UprofSlice program)
{
    const size_t at = begin_entry(section, plan);
    const unsigned id_bytes = plan->is_debug && plan->is_long ? 8 : 4;
    const uint8_t format = plan->encoding & 7;
    const unsigned width = format == 0 ? (plan->is_32 ? 4 : 8) : 1U << (format - 1);

    put(section, id_bytes, plan->is_debug ? cie : section->len - cie);
    put(section, width, (plan->encoding & 0x10) ? start - (EH + section->len) : start);
    put(section, width, len);
    if (plan->letters[0] == 'z')
        put(section, 1, 0);
    put_slice(section, program);
    end_entry(section, plan, at);
}

static UprofCfi *
compile(const GByteArray *eh, const GByteArray *debug, bool is_32, GError **error)
{
    const UprofElfRange texts[] = { { TEXT, TEXT_LEN, { NULL, 0 } },
                                    { FAR, FAR_LEN, { NULL, 0 } } };
    g_autoptr(GArray) text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    UprofElfImage image = {
        .word_bytes = is_32 ? 4 : 8,
        .machine = is_32 ? EM_386 : EM_X86_64,
        .text = text,
    };

    g_array_append_vals(text, texts, G_N_ELEMENTS(texts));
    if (eh)
        image.eh_frame = (UprofElfRange){ EH, eh->len, { eh->data, eh->len } };
    if (debug)
        image.debug_frame = (UprofElfRange){ 0, debug->len, { debug->data, debug->len } };
    return uprof_cfi_compile(&image, "app", error);
}

static void
append_value(GString *out, const UprofArch *arch, unsigned how, int32_t value)
{
    switch (how) {
    case UPROF_CFI_UNDEFINED:
        g_string_append(out, "?");
        break;
    case UPROF_CFI_AT_OFFSET:
        g_string_append_printf(out, "@%d", value);
        break;
    case UPROF_CFI_OFFSET:
        g_string_append_printf(out, "=%d", value);
        break;
    case UPROF_CFI_REGISTER:
        g_string_append_printf(out, "=%s", arch->reg_names[value]);
        break;
    case UPROF_CFI_AT_EXPRESSION:
        g_string_append_printf(out, "@e%d", value);
        break;
    case UPROF_CFI_EXPRESSION:
        g_string_append_printf(out, "=e%d", value);
        break;
    default:
        g_assert_not_reached();
    }
}

static void
append_rule(GString *out, const UprofCfi *cfi, const UprofCfiRule *rule)
{
    const UprofArch *arch = uprof_cfi_arch(cfi);

    if (!rule) {
        g_string_append(out, " none");
        return;
    }
    if (rule->flags & UPROF_CFI_SIGNAL)
        g_string_append(out, " signal");
    if (rule->flags & UPROF_CFI_END) {
        g_string_append(out, " end");
        return;
    }
    if (rule->flags & UPROF_CFI_SWITCHED) {
        g_string_append(out, " switched");
        return;
    }
    if (rule->cfa_how == UPROF_CFI_EXPRESSION)
        g_string_append_printf(out, " e%d", rule->cfa_value);
    else
        g_string_append_printf(out, " %s%+d", arch->reg_names[rule->cfa_reg], rule->cfa_value);
    for (unsigned i = 0; i < rule->n_saved; i++) {
        const UprofCfiSaved *saved = &uprof_cfi_saved(cfi, rule)[i];

        g_string_append_printf(out, " %s", arch->reg_names[saved->reg]);
        append_value(out, arch, saved->how, saved->value);
    }
}

/* Prints the complete table like "1000 RSP+8 RIP@-8 | 1040 none", and finds each row by address. */
static char *
format_table(const UprofCfi *cfi)
{
    GString *out = g_string_new(NULL);
    const UprofCfiRule *rule, *before = NULL;
    uint64_t pc;

    for (size_t i = 0; uprof_cfi_row(cfi, i, &pc, &rule); i++) {
        g_string_append_printf(out, "%s%" G_GINT64_MODIFIER "x", i > 0 ? THEN : "", pc);
        append_rule(out, cfi, rule);
        g_assert_true(uprof_cfi_find(cfi, pc) == rule);
        g_assert_true(uprof_cfi_find(cfi, pc - 1) == before);
        before = rule;
    }
    g_assert_null(before);
    g_assert_null(uprof_cfi_find(cfi, 0));
    g_assert_null(uprof_cfi_find(cfi, UINT64_MAX));
    return g_string_free(out, FALSE);
}

/* clang-format off */

/* Programs of an FDE, which run after the program of the usual CIE. */
static const struct {
    const char *name;
    UprofSlice program;
    const char *rows; /* NULL: dropped */
} programs[] = {
    { "none",               BYTES(""), AT_START AT_END },
    { "nops",               BYTES("\0\0\0"), AT_START AT_END },
    { "advance",            BYTES("\x41\x0e\x10"), AT_START " | 1001 RSP+16 RIP@-8" AT_END },
    { "advance-in-vain",    BYTES("\x41\x41\x41"), AT_START AT_END },
    { "advance-1",          BYTES("\x02\x20\x0e\x10"), AT_START " | 1020 RSP+16 RIP@-8" AT_END },
    { "advance-2",          BYTES("\x03\x20\x00\x0e\x10"), AT_START " | 1020 RSP+16 RIP@-8" AT_END },
    { "advance-4",          BYTES("\x04\x20\x00\x00\x00\x0e\x10"), AT_START " | 1020 RSP+16 RIP@-8" AT_END },
    { "advance-8",          BYTES("\x1d\x20\0\0\0\0\0\0\0\x0e\x10"), AT_START " | 1020 RSP+16 RIP@-8" AT_END },
    { "advance-to-end",     BYTES("\x02\x40\x0e\x10"), AT_START AT_END },
    { "advance-far",        BYTES("\x04\xff\xff\xff\xff\x0e\x10"), AT_START AT_END },
    { "advance-around",     BYTES("\x1d\xff\xff\xff\xff\xff\xff\xff\xff\x0e\x10"), NULL },
    { "set-loc",            BYTES("\x01\xf4\x8f\xff\xff\x0e\x10"), AT_START " | 101c RSP+16 RIP@-8" AT_END },
    { "set-loc-back",       BYTES("\x42\x01\xd7\x8f\xff\xff"), NULL },
    { "two-changes-at-one", BYTES("\x41\x0e\x10\x86\x02"), AT_START " | 1001 RSP+16 RBP@-16 RIP@-8" AT_END },
    { "def-cfa",            BYTES("\x41\x0c\x06\x10"), AT_START " | 1001 RBP+16 RIP@-8" AT_END },
    { "def-cfa-sf",         BYTES("\x41\x12\x06\x7e"), AT_START " | 1001 RBP+16 RIP@-8" AT_END },
    { "def-cfa-register",   BYTES("\x41\x0d\x06"), AT_START " | 1001 RBP+8 RIP@-8" AT_END },
    { "def-cfa-offset-sf",  BYTES("\x41\x13\x7d"), AT_START " | 1001 RSP+24 RIP@-8" AT_END },
    { "def-cfa-expression", BYTES("\x41\x0f\x02\x77\x08\x41\x0c\x07\x08"), AT_START " | 1001 e0 RIP@-8 | 1002 RSP+8 RIP@-8" AT_END },
    { "offset-of-expression", BYTES("\x41\x0f\x02\x77\x08\x0e\x08"), NULL },
    { "register-of-expression", BYTES("\x41\x0f\x02\x77\x08\x0d\x07"), NULL },
    { "offset",             BYTES("\x41\x83\x03\x42\x8c\x04"), AT_START " | 1001 RSP+8 RBX@-24 RIP@-8 | 1003 RSP+8 RBX@-24 R12@-32 RIP@-8" AT_END },
    { "offset-extended",    BYTES("\x41\x05\x0f\x02"), AT_START " | 1001 RSP+8 R15@-16 RIP@-8" AT_END },
    { "offset-extended-sf", BYTES("\x41\x11\x0f\x7e"), AT_START " | 1001 RSP+8 R15@16 RIP@-8" AT_END },
    { "negative-offset",    BYTES("\x41\x2f\x0f\x02"), AT_START " | 1001 RSP+8 R15@16 RIP@-8" AT_END },
    { "val-offset",         BYTES("\x41\x14\x07\x02"), AT_START " | 1001 RSP+8 RSP=-16 RIP@-8" AT_END },
    { "val-offset-sf",      BYTES("\x41\x15\x07\x7e"), AT_START " | 1001 RSP+8 RSP=16 RIP@-8" AT_END },
    { "expression",         BYTES("\x41\x10\x06\x02\x77\x08"), AT_START " | 1001 RSP+8 RBP@e0 RIP@-8" AT_END },
    { "val-expression",     BYTES("\x41\x16\x06\x02\x77\x08"), AT_START " | 1001 RSP+8 RBP=e0 RIP@-8" AT_END },
    { "expressions",        BYTES("\x41\x10\x06\x02\x77\x08\x41\x10\x06\x01\x30\x41\x10\x06\x02\x77\x08"),
      AT_START " | 1001 RSP+8 RBP@e0 RIP@-8 | 1002 RSP+8 RBP@e1 RIP@-8 | 1003 RSP+8 RBP@e0 RIP@-8" AT_END },
    { "register",           BYTES("\x41\x09\x06\x03"), AT_START " | 1001 RSP+8 RBP=RBX RIP@-8" AT_END },
    { "register-unknown",   BYTES("\x41\x09\x06\x21"), AT_START " | 1001 RSP+8 RBP? RIP@-8" AT_END },
    { "undefined",          BYTES("\x41\x07\x06"), AT_START " | 1001 RSP+8 RBP? RIP@-8" AT_END },
    { "undefined-return",   BYTES("\x41\x07\x10"), AT_START " | 1001 end" AT_END },
    { "same-value",         BYTES("\x41\x83\x03\x41\x08\x03"), AT_START " | 1001 RSP+8 RBX@-24 RIP@-8 | 1002 RSP+8 RIP@-8" AT_END },
    { "same-return",        BYTES("\x41\x08\x10"), AT_START " | 1001 none" },
    { "restore",            BYTES("\x41\x83\x03\x41\xc3"), AT_START " | 1001 RSP+8 RBX@-24 RIP@-8 | 1002 RSP+8 RIP@-8" AT_END },
    { "restore-return",     BYTES("\x41\x90\x03\x41\xd0"), AT_START " | 1001 RSP+8 RIP@-24 | 1002 RSP+8 RIP@-8" AT_END },
    { "restore-extended",   BYTES("\x41\x83\x03\x41\x06\x03"), AT_START " | 1001 RSP+8 RBX@-24 RIP@-8 | 1002 RSP+8 RIP@-8" AT_END },
    { "remember",           BYTES("\x41\x0e\x10\x83\x02\x41\x0a\x0e\x08\xc3\x41\x0b"),
      AT_START " | 1001 RSP+16 RBX@-16 RIP@-8 | 1002 RSP+8 RIP@-8 | 1003 RSP+16 RBX@-16 RIP@-8" AT_END },
    { "remember-16",        BYTES("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"), AT_START AT_END },
    { "remember-17",        BYTES("\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"), NULL },
    { "nothing-remembered", BYTES("\x0b"), NULL },
    { "args-size",          BYTES("\x41\x2e\x90\x01\x0e\x10"), AT_START " | 1001 RSP+16 RIP@-8" AT_END },
    { "negate-ra-state",    BYTES("\x41\x2d\x2c\x0e\x10"), AT_START " | 1001 RSP+16 RIP@-8" AT_END },
    { "vector-register",    BYTES("\x41\x05\x11\x04\x0e\x10"), AT_START " | 1001 RSP+16 RIP@-8" AT_END },
    { "vector-base",        BYTES("\x41\x0d\x11"), NULL },
    { "huge-register",      BYTES("\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"), AT_START AT_END },
    { "huge-offset",        BYTES("\x86\xff\xff\xff\xff\xff\xff\xff\xff\x0f"), NULL },
    { "large-offset",       BYTES("\x86\xff\xff\xff\x7f"), "1000 RSP+8 RBP@-2147483640 RIP@-8" AT_END },
    { "too-large-offset",   BYTES("\x86\xff\xff\xff\xff\x01"), NULL },
    { "huge-cfa-offset",    BYTES("\x0e\xff\xff\xff\xff\x0f"), NULL },
    { "unknown",            BYTES("\x41\x3f"), NULL },
    { "unknown-but-late",   BYTES("\x02\x50\x3f"), NULL },
    { "cut-in-advance",     BYTES("\x04\x01\x02\x03"), NULL },
    { "cut-in-register",    BYTES("\x05\x80"), NULL },
    { "cut-in-offset",      BYTES("\x05\x03"), NULL },
    { "cut-in-cfa",         BYTES("\x0c\x07"), NULL },
    { "cut-in-expression",  BYTES("\x0f\x03\x77\x08"), NULL },
    { "huge-expression",    BYTES("\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), NULL },
};

/* CIEs, each with an FDE that has an empty program. */
static const struct {
    const char *name;
    CiePlan plan;
    const char *rows; /* NULL: dropped */
} cies[] = {
    { "usual",           { .version = 1, .letters = "zR", .letter_data = BYTES("\x1b"), .program = BYTES(START), .encoding = 0x1b }, AT_START AT_END },
    { "no-letters",      { .version = 1, .letters = "", .program = BYTES(START) }, AT_START AT_END },
    { "version-3",       { .version = 3, .letters = "", .program = BYTES(START) }, AT_START AT_END },
    { "version-4",       { .version = 4, .letters = "", .program = BYTES(START) }, AT_START AT_END },
    { "version-2",       { .version = 2, .letters = "", .program = BYTES(START) }, NULL },
    { "version-5",       { .version = 5, .letters = "", .program = BYTES(START) }, NULL },
    { "long",            { .version = 1, .letters = "", .program = BYTES(START), .is_long = true }, AT_START AT_END },
    { "debug",           { .version = 1, .letters = "", .program = BYTES(START), .is_debug = true }, AT_START AT_END },
    { "debug-3",         { .version = 3, .letters = "", .program = BYTES(START), .is_debug = true }, AT_START AT_END },
    { "debug-4",         { .version = 4, .letters = "", .program = BYTES(START), .is_debug = true }, AT_START AT_END },
    { "debug-long",      { .version = 4, .letters = "", .program = BYTES(START), .is_debug = true, .is_long = true }, AT_START AT_END },
    { "eh",              { .version = 1, .letters = "eh", .program = BYTES(START) }, AT_START AT_END },
    { "signal",          { .version = 1, .letters = "zRS", .letter_data = BYTES("\x1b"), .program = BYTES(START), .encoding = 0x1b }, "1000 signal RSP+8 RIP@-8" AT_END },
    { "language",        { .version = 1, .letters = "zPLR", .letter_data = BYTES("\x9b\1\2\3\4\x1b\x1b"), .program = BYTES(START), .encoding = 0x1b }, AT_START AT_END },
    { "no-personality",  { .version = 1, .letters = "zPR", .letter_data = BYTES("\xff\x1b"), .program = BYTES(START), .encoding = 0x1b }, AT_START AT_END },
    { "aligned-personality", { .version = 1, .letters = "zPR", .letter_data = BYTES("\x50\1\2\3\4\x1b"), .program = BYTES(START), .encoding = 0x1b }, NULL },
    { "odd-personality", { .version = 1, .letters = "zPR", .letter_data = BYTES("\x0d\1\2\3\4\x1b"), .program = BYTES(START), .encoding = 0x1b }, NULL },
    { "keys",            { .version = 1, .letters = "zRBG", .letter_data = BYTES("\x1b"), .program = BYTES(START), .encoding = 0x1b }, AT_START AT_END },
    { "more-data",       { .version = 1, .letters = "zR", .letter_data = BYTES("\x1bmore"), .program = BYTES(START), .encoding = 0x1b }, AT_START AT_END },
    { "unknown-letter",  { .version = 1, .letters = "zRx", .letter_data = BYTES("\x1b"), .program = BYTES(START), .encoding = 0x1b }, NULL },
    { "letters-alone",   { .version = 1, .letters = "R", .program = BYTES(START) }, NULL },
    { "no-data",         { .version = 1, .letters = "zR", .letter_data = BYTES(""), .program = BYTES(""), .encoding = 0x1b }, NULL },
    { "no-language",     { .version = 1, .letters = "zL", .letter_data = BYTES(""), .program = BYTES("") }, NULL },
    { "absolute",        { .version = 1, .letters = "zR", .letter_data = BYTES("\0"), .program = BYTES(START) }, AT_START AT_END },
    { "udata2",          { .version = 1, .letters = "zR", .letter_data = BYTES("\2"), .program = BYTES(START), .encoding = 0x02 }, AT_START AT_END },
    { "udata4",          { .version = 1, .letters = "zR", .letter_data = BYTES("\3"), .program = BYTES(START), .encoding = 0x03 }, AT_START AT_END },
    { "udata8",          { .version = 1, .letters = "zR", .letter_data = BYTES("\4"), .program = BYTES(START), .encoding = 0x04 }, AT_START AT_END },
    { "sdata2",          { .version = 1, .letters = "zR", .letter_data = BYTES("\x0a"), .program = BYTES(START), .encoding = 0x0a }, AT_START AT_END },
    { "sdata8",          { .version = 1, .letters = "zR", .letter_data = BYTES("\x0c"), .program = BYTES(START), .encoding = 0x0c }, AT_START AT_END },
    { "pcrel",           { .version = 1, .letters = "zR", .letter_data = BYTES("\x10"), .program = BYTES(START), .encoding = 0x10 }, AT_START AT_END },
    { "pcrel-sdata2",    { .version = 1, .letters = "zR", .letter_data = BYTES("\x1a"), .program = BYTES(START), .encoding = 0x1a }, AT_START AT_END },
    { "pcrel-sdata8",    { .version = 1, .letters = "zR", .letter_data = BYTES("\x1c"), .program = BYTES(START), .encoding = 0x1c }, AT_START AT_END },
    { "textrel",         { .version = 1, .letters = "zR", .letter_data = BYTES("\x2b"), .program = BYTES(START), .encoding = 0x2b }, NULL },
    { "datarel",         { .version = 1, .letters = "zR", .letter_data = BYTES("\x3b"), .program = BYTES(START), .encoding = 0x3b }, NULL },
    { "aligned",         { .version = 1, .letters = "zR", .letter_data = BYTES("\x50"), .program = BYTES(START), .encoding = 0x50 }, NULL },
    { "indirect",        { .version = 1, .letters = "zR", .letter_data = BYTES("\x9b"), .program = BYTES(START), .encoding = 0x9b }, NULL },
    { "omitted",         { .version = 1, .letters = "zR", .letter_data = BYTES("\xff"), .program = BYTES(START), .encoding = 0x0b }, NULL },
    { "32-bit",          { .version = 1, .letters = "zR", .letter_data = BYTES("\x1b"), .program = BYTES("\x0c\x04\x04\x88\x01\x85\x02"), .encoding = 0x1b, .is_32 = true },
      "1000 ESP+4 EBP@-8 EIP@-4" AT_END },
    { "32-bit-absolute", { .version = 1, .letters = "", .program = BYTES("\x0c\x04\x04\x88\x01"), .is_32 = true }, "1000 ESP+4 EIP@-4" AT_END },
    { "advance",         { .version = 1, .letters = "", .program = BYTES(START "\x41") }, NULL },
    { "restore",         { .version = 1, .letters = "", .program = BYTES(START "\xc3") }, NULL },
    { "unknown-opcode",  { .version = 1, .letters = "", .program = BYTES(START "\x3f") }, NULL },
    { "no-cfa",          { .version = 1, .letters = "", .program = BYTES("\x90\x01") }, "" },
    { "no-return",       { .version = 1, .letters = "", .program = BYTES("\x0c\x07\x08") }, "" },
    { "root",            { .version = 1, .letters = "", .program = BYTES("\x07\x10") }, "1000 end" AT_END },
};

/* FDEs of the usual CIE whose ranges overlap, are empty or lie outside of the code. */
static const struct {
    const char *name;
    struct {
        uint64_t start, len;
        const char *program;
        bool is_debug;
    } fdes[4];
    const char *rows;
    unsigned n_fdes, n_dead;
} layouts[] = {
    { "nothing",         { { 0 } }, "", 0, 0 },
    { "unsorted",        { { 0x1100, 16, "\x0e\x10" }, { 0x1000, 16, "" } },
      "1000 RSP+8 RIP@-8 | 1010 none | 1100 RSP+16 RIP@-8 | 1110 none", 2, 0 },
    { "touching",        { { 0x1000, 16, "" }, { 0x1010, 16, "\x0e\x10" } },
      "1000 RSP+8 RIP@-8 | 1010 RSP+16 RIP@-8 | 1020 none", 2, 0 },
    { "touching-alike",  { { 0x1000, 16, "" }, { 0x1010, 16, "" } }, "1000 RSP+8 RIP@-8 | 1020 none", 2, 0 },
    { "overlapping",     { { 0x1000, 16, "" }, { 0x1008, 16, "\x0e\x10\x44\x0e\x18\x48\x0e\x20" } },
      "1000 RSP+8 RIP@-8 | 1010 RSP+24 RIP@-8 | 1014 RSP+32 RIP@-8 | 1018 none", 2, 0 },
    { "inside",          { { 0x1000, 64, "" }, { 0x1010, 16, "\x0e\x10" } }, AT_START AT_END, 1, 0 },
    { "twice",           { { 0x1000, 64, "" }, { 0x1000, 64, "\x0e\x10" } }, AT_START AT_END, 1, 0 },
    { "second-longer",   { { 0x1000, 16, "" }, { 0x1000, 32, "\x0e\x10" } },
      "1000 RSP+8 RIP@-8 | 1010 RSP+16 RIP@-8 | 1020 none", 2, 0 },
    { "empty",           { { 0x1000, 0, "" } }, "", 0, 1 },
    { "no-code",         { { 0x3000, 16, "" }, { 0x10, 16, "" } }, "", 0, 2 },
    { "left-out",        { { 0, 16, "" } }, "", 0, 1 },
    { "beyond-the-code", { { 0x1ff0, 0x7fffffff, "" } }, "1ff0 RSP+8 RIP@-8 | 2000 none", 1, 0 },
    { "negative-length", { { 0x1000, UINT32_MAX, "" } }, "1000 RSP+8 RIP@-8 | 2000 none", 1, 0 },
    { "far",             { { 0x1000, 64, "" }, { 0x5000, 16, "" } }, AT_START AT_END " | 5000 RSP+8 RIP@-8 | 5010 none", 2, 0 },
    { "both-sections",   { { 0x1000, 64, "" }, { 0x1040, 64, "\x0e\x10", true } },
      AT_START " | 1040 RSP+16 RIP@-8 | 1080 none", 2, 0 },
    { "eh-wins",         { { 0x1010, 16, "" }, { 0x1000, 64, "\x0e\x10\x02\x28\x0e\x18", true } },
      "1000 RSP+16 RIP@-8 | 1010 RSP+8 RIP@-8 | 1020 RSP+16 RIP@-8 | 1028 RSP+24 RIP@-8 | 1040 none", 2, 0 },
    { "debug-fills-bad", { { 0x1000, 64, "\x3f" }, { 0x1000, 64, "\x0e\x10", true } }, "1000 RSP+16 RIP@-8" AT_END, 1, 0 },
    { "bad-between",     { { 0x1000, 16, "" }, { 0x1010, 16, "\x41\x0e\x18\x41\x3f" }, { 0x1020, 16, "" } },
      "1000 RSP+8 RIP@-8 | 1010 none | 1020 RSP+8 RIP@-8 | 1030 none", 2, 0 },
    { "bad-alike",       { { 0x1000, 16, "" }, { 0x1010, 16, "\x41\x3f" } }, "1000 RSP+8 RIP@-8 | 1010 none", 1, 0 },
};

/* Bytes that are not a list of entries. */
static const struct {
    const char *name;
    UprofSlice eh;
    const char *error; /* NULL: a table without rows */
} brokens[] = {
    { "empty",          BYTES(""), NULL },
    { "end-mark",       BYTES("\0\0\0\0"), NULL },
    { "end-marks",      BYTES("\0\0\0\0\0\0\0\0"), NULL },
    { "three-bytes",    BYTES("\0\0\0"), "app byte 0: truncated entry" },
    { "beyond",         BYTES("\x05\0\0\0\0\0\0\0"), "app byte 4: entry ends beyond its section" },
    { "huge",           BYTES("\xef\xff\xff\xff\0\0\0\0"), "app byte 4: entry ends beyond its section" },
    { "reserved",       BYTES("\xf0\xff\xff\xff\0\0\0\0"), "app byte 4: bad length of an entry" },
    { "long-cut",       BYTES("\xff\xff\xff\xff\0\0\0\0"), "app byte 4: truncated entry" },
    { "long-huge",      BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "app byte 12: entry ends beyond its section" },
    { "no-id",          BYTES("\2\0\0\0\0\0"), "app byte 6: truncated entry" },
    { "only-id",        BYTES("\4\0\0\0\0\0\0\0"), NULL },
    { "fde-alone",      BYTES("\4\0\0\0\4\0\0\0"), NULL },
    { "own-cie",        BYTES("\x0c\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0"), NULL },
    { "cie-in-front",   BYTES("\x0c\0\0\0\xff\xff\xff\x7f\0\0\0\0\0\0\0\0"), NULL },
    { "no-end-of-letters", BYTES("\x0c\0\0\0\0\0\0\0\1zzzzzzz"), NULL },
    { "many-letters",   BYTES("\x0c\0\0\0\0\0\0\0\1zRRRR\0\1"), NULL },
};
/* clang-format on */

static void
test_program(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) section = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    put_fde(section, &usual, put_cie(section, &usual), TEXT, FUNCTION_LEN, programs[i].program);
    g_autoptr(UprofCfi) cfi = compile(section, NULL, false, &error);
    g_assert_no_error(error);
    g_autofree char *rows = format_table(cfi);
    const UprofCfiSummary summary = uprof_cfi_summary(cfi);
    g_assert_cmpstr(rows, ==, programs[i].rows ? programs[i].rows : "");
    g_assert_cmpuint(summary.n_fdes, ==, programs[i].rows ? 1 : 0);
    g_assert_cmpuint(summary.n_dropped, ==, programs[i].rows ? 0 : 1);
    g_assert_cmpuint(summary.n_dead, ==, 0);
}

static void
test_cie(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const CiePlan *plan = &cies[i].plan;
    g_autoptr(GByteArray) section = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    /* the FDE uses the second CIE, whose offset is not 0 */
    put_cie(section, plan);
    put_fde(section, plan, put_cie(section, plan), TEXT, FUNCTION_LEN, SLICE(""));
    if (!plan->is_debug)
        put(section, 4, 0);
    g_autoptr(UprofCfi) cfi = compile(plan->is_debug ? NULL : section,
                                      plan->is_debug ? section : NULL, plan->is_32, &error);
    g_assert_no_error(error);
    g_autofree char *rows = format_table(cfi);
    g_assert_cmpstr(rows, ==, cies[i].rows ? cies[i].rows : "");
    g_assert_cmpuint(uprof_cfi_summary(cfi).n_dropped, ==, cies[i].rows ? 0 : 1);
}

static void
test_layout(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const CiePlan debug_plan = {
        .is_debug = true, .version = 3, .letters = "", .program = BYTES(START)
    };
    g_autoptr(GByteArray) eh = g_byte_array_new(), debug = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    const size_t cie = put_cie(eh, &usual), debug_cie = put_cie(debug, &debug_plan);
    for (unsigned j = 0; j < G_N_ELEMENTS(layouts[i].fdes) && layouts[i].fdes[j].program; j++) {
        const char *program = layouts[i].fdes[j].program;
        const UprofSlice bytes = { program, strlen(program) };
        const bool is_debug = layouts[i].fdes[j].is_debug;
        put_fde(is_debug ? debug : eh, is_debug ? &debug_plan : &usual, is_debug ? debug_cie : cie,
                layouts[i].fdes[j].start, layouts[i].fdes[j].len, bytes);
    }
    g_autoptr(UprofCfi) cfi = compile(eh, debug, false, &error);
    g_assert_no_error(error);
    g_autofree char *rows = format_table(cfi);
    const UprofCfiSummary summary = uprof_cfi_summary(cfi);
    g_assert_cmpstr(rows, ==, layouts[i].rows);
    g_assert_cmpuint(summary.n_fdes, ==, layouts[i].n_fdes);
    g_assert_cmpuint(summary.n_dead, ==, layouts[i].n_dead);
}

static void
test_broken(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GByteArray) section = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    put_slice(section, brokens[i].eh);
    g_autoptr(UprofCfi) cfi = compile(section, NULL, false, &error);
    if (brokens[i].error) {
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
        g_assert_cmpstr(error->message, ==, brokens[i].error);
        g_assert_null(cfi);
        return;
    }
    g_assert_no_error(error);
    g_assert_cmpuint(uprof_cfi_summary(cfi).n_rows, ==, 0);
}

/* Every prefix of a section is refused or compiled, and never read beyond its end. */
static void
test_prefixes(void)
{
    const CiePlan plan = { .version = 1,
                           .letters = "zPLR",
                           .letter_data = BYTES("\x9b\1\2\3\4\x1b\x1b"),
                           .program = BYTES(START),
                           .encoding = PCREL_SDATA4 };
    g_autoptr(GByteArray) section = g_byte_array_new();

    put_fde(section, &plan, put_cie(section, &plan), TEXT, FUNCTION_LEN,
            SLICE("\x41\x0f\x02\x77\x08\x0a\x41\x0b"));
    for (guint len = 0; len < section->len; len++) {
        g_autoptr(GByteArray) prefix = g_byte_array_new();
        g_autoptr(GError) error = NULL;

        g_byte_array_append(prefix, section->data, len);
        g_autoptr(UprofCfi) cfi = compile(prefix, NULL, false, &error);
        g_assert_true(!cfi == !!error);
    }
}

static void
test_expression(void)
{
    const CiePlan plan = { .version = 1,
                           .letters = "",
                           .program = BYTES("\x0f\x03\x77\x08\x06\x16\x10\x02\x70\x08") };
    g_autoptr(GByteArray) section = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    put_fde(section, &plan, put_cie(section, &plan), TEXT, FUNCTION_LEN, SLICE(""));
    g_autoptr(UprofCfi) cfi = compile(section, NULL, false, &error);
    g_assert_no_error(error);
    const UprofCfiRule *rule = uprof_cfi_find(cfi, TEXT);
    const UprofSlice cfa = uprof_cfi_expression(cfi, rule->cfa_value);
    g_assert_cmpmem(cfa.data, cfa.len, "\x77\x08\x06", 3);
    const UprofSlice pc = uprof_cfi_expression(cfi, uprof_cfi_saved(cfi, rule)->value);
    g_assert_cmpmem(pc.data, pc.len, "\x70\x08", 2);
    g_assert_true((const guint8 *)pc.data > section->data &&
                  (const guint8 *)pc.data < section->data + section->len);
}

/* Sizes of frames of a Go program: they fill the gaps of .eh_frame. */
static void
test_frame_sizes(void)
{
    static const UprofFrameSize sizes[] = {
        { TEXT, 0, UPROF_FRAME_CALLED },          { TEXT + 4, 24, UPROF_FRAME_CALLED },
        { TEXT + 0x10, 0, UPROF_FRAME_NONE },     { TEXT + 0x20, 0, UPROF_FRAME_ROOT },
        { TEXT + 0x30, 0, UPROF_FRAME_SWITCHED }, { TEXT + 0x40, 0, UPROF_FRAME_NONE },
    };
    g_autoptr(GArray) frames = g_array_new(FALSE, FALSE, sizeof(UprofFrameSize));
    g_autoptr(GArray) text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    const UprofElfImage image = {
        .word_bytes = 8, .machine = EM_X86_64, .text = text, .frames = frames
    };

    g_array_append_vals(frames, sizes, G_N_ELEMENTS(sizes));
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile(&image, "app", NULL);
    g_autofree char *table = format_table(cfi);
    g_assert_cmpstr(table, ==,
                    "1000 RSP+8 RIP@-8 | 1004 RSP+32 RBP@-16 RIP@-8 | 1010 none | 1020 end | "
                    "1030 switched | 1040 none");
    g_assert_cmpuint(uprof_cfi_find(cfi, TEXT + 4)->reach, ==, 16);
}

static void
test_machines(void)
{
    g_autoptr(GArray) text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    const UprofElfImage images[] = {
        { .word_bytes = 8, .machine = EM_S390, .big_endian = true, .text = text },
        { .word_bytes = 4, .machine = EM_X86_64, .text = text },
        { .word_bytes = 8, .machine = EM_X86_64, .big_endian = true, .text = text },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(images); i++) {
        g_autoptr(GError) error = NULL;

        g_assert_null(uprof_cfi_compile(&images[i], "app", &error));
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED);
    }
}

/* Functions whose starts are @apart bytes apart. */
static UprofCfi *
compile_apart(unsigned n, uint64_t apart, GError **error)
{
    const CiePlan plan = { .version = 1, .letters = "", .program = BYTES(START) };
    g_autoptr(GArray) text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    g_autoptr(GByteArray) section = g_byte_array_new();

    const size_t cie = put_cie(section, &plan);
    for (unsigned i = 0; i < n; i++) {
        const UprofElfRange range = { TEXT + i * apart, FUNCTION_LEN, { NULL, 0 } };
        g_array_append_val(text, range);
        put_fde(section, &plan, cie, range.start, FUNCTION_LEN, SLICE("\x41\x0e\x10"));
    }
    const UprofElfImage image = { .word_bytes = 8,
                                  .machine = EM_X86_64,
                                  .text = text,
                                  .eh_frame = {
                                      0, section->len, { section->data, section->len } } };
    UprofCfi *cfi = uprof_cfi_compile(&image, "app", error);
    for (unsigned i = 0; cfi && i < n; i++) {
        const uint64_t pc = TEXT + i * apart;
        g_assert_null(uprof_cfi_find(cfi, pc - 1));
        g_assert_cmpint(uprof_cfi_find(cfi, pc)->cfa_value, ==, 8);
        g_assert_cmpint(uprof_cfi_find(cfi, pc + 1)->cfa_value, ==, 16);
        g_assert_cmpint(uprof_cfi_find(cfi, pc + FUNCTION_LEN - 1)->cfa_value, ==, 16);
        g_assert_null(uprof_cfi_find(cfi, pc + FUNCTION_LEN));
    }
    return cfi;
}

/* A kernel has some code at its load address, and most code at the top of the address space. */
static void
test_far_apart(void)
{
    static const uint64_t aparts[] = { 0x80,      0x1000,      0x100000,       0xfff000,
                                       0x2000000, 0x100000000, 0x7fffffff0000, UINT64_C(1) << 60 };

    for (size_t i = 0; i < G_N_ELEMENTS(aparts); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofCfi) cfi = compile_apart(8, aparts[i], &error);

        g_assert_no_error(error);
        g_autofree char *rows = format_table(cfi);
        g_assert_true(g_str_has_suffix(rows, "none"));
    }
}

static void
test_too_far_apart(void)
{
    g_autoptr(GError) error = NULL, other_error = NULL;

    g_assert_null(compile_apart(UPROF_CFI_REGIONS_MAX + 1, 0x100000000, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_null(compile_apart(400, 0xff0000, &other_error));
    g_assert_error(other_error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(other_error->message, ==, "app: unwind tables of more than 4 GiB of code");
}

/* Code beyond the highest number of rules has no rule. */
static void
test_rules_limit(void)
{
    enum { FDES = 36, ROWS = 2000 };
    const CiePlan plan = { .version = 1, .letters = "", .program = BYTES(START) };
    g_autoptr(GByteArray) section = g_byte_array_new();
    g_autoptr(GArray) text = g_array_new(FALSE, FALSE, sizeof(UprofElfRange));
    const UprofElfRange range = { TEXT, FDES * ROWS, { NULL, 0 } };
    g_autoptr(GError) error = NULL;

    g_array_append_val(text, range);
    const size_t cie = put_cie(section, &plan);
    for (unsigned i = 0; i < FDES; i++) {
        g_autoptr(GByteArray) program = g_byte_array_new();
        for (unsigned j = 0; j < ROWS; j++) {
            const unsigned offset = i * ROWS + j;
            put(program, 1, 0x0e);
            put(program, 1, 0x80 | (offset & 0x7f));
            put(program, 1, 0x80 | (offset >> 7 & 0x7f));
            put(program, 1, offset >> 14);
            put(program, 1, 0x41);
        }
        put_fde(section, &plan, cie, TEXT + i * ROWS, ROWS,
                (UprofSlice){ program->data, program->len });
    }
    const UprofElfImage image = { .word_bytes = 8,
                                  .machine = EM_X86_64,
                                  .text = text,
                                  .eh_frame = {
                                      0, section->len, { section->data, section->len } } };
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile(&image, "app", &error);
    g_assert_no_error(error);
    g_assert_cmpuint(uprof_cfi_summary(cfi).n_rules, ==, UPROF_CFI_RULES_MAX);
    for (unsigned i = 0; i < FDES * ROWS; i++) {
        const UprofCfiRule *rule = uprof_cfi_find(cfi, TEXT + i);
        if (i < UPROF_CFI_RULES_MAX)
            g_assert_cmpint(rule->cfa_value, ==, (int)i);
        else
            g_assert_null(rule);
    }
}

/* Compares the tables with an independent reader: `readelf --debug-dump=frames-interp`. */

enum { WORDS_MAX = 32, VALUE_LEN = 32 };

/* The words of a line, borrowed from its text. */
typedef struct {
    unsigned n;
    char *word[WORDS_MAX];
} Words;

typedef struct {
    const UprofCfi *cfi;
    GHashTable *cies; /* text of a CIE's offset -> its columns and its row */
    Words columns;    /* of the rows that follow */
    Words row;        /* is compared when its end is known; empty if there is none */
    const char *cie;  /* offset of the CIE that is read; NULL in an FDE */
    uint64_t start, end;
    uint64_t row_start;
    GHashTable *ends; /* addresses at which FDEs end and start */
    GHashTable *starts;
    size_t n_rows, n_fdes;
} Reading;

static uint64_t
parse_hex(const char *text)
{
    return g_ascii_strtoull(text, NULL, 16);
}

static int
find_reg(const UprofArch *arch, const char *name)
{
    for (unsigned i = 0; i < arch->n_regs; i++)
        if (arch->reg_names[i] && g_ascii_strcasecmp(arch->reg_names[i], name) == 0)
            return (int)i;
    return strcmp(name, "ra") == 0 ? arch->pc : -1;
}

static bool
is_value(const UprofCfi *cfi, const UprofCfiSaved *saved, const char *text)
{
    char value[VALUE_LEN];

    switch (saved->how) {
    case UPROF_CFI_AT_OFFSET:
        g_snprintf(value, sizeof(value), "c%+d", saved->value);
        break;
    case UPROF_CFI_OFFSET:
        g_snprintf(value, sizeof(value), "v%+d", saved->value);
        break;
    case UPROF_CFI_REGISTER:
        return find_reg(uprof_cfi_arch(cfi), text) == saved->value;
    case UPROF_CFI_AT_EXPRESSION:
        return strcmp(text, "exp") == 0;
    case UPROF_CFI_EXPRESSION:
        return strcmp(text, "vexp") == 0;
    default:
        return strcmp(text, "u") == 0;
    }
    return strcmp(text, value) == 0;
}

static bool
is_cfa(const UprofCfi *cfi, const UprofCfiRule *rule, const char *text)
{
    const char *reg = uprof_cfi_arch(cfi)->reg_names[rule->cfa_reg];
    char value[VALUE_LEN];

    if (rule->cfa_how == UPROF_CFI_EXPRESSION)
        return strcmp(text, "exp") == 0;
    g_snprintf(value, sizeof(value), "%s%+d", reg, rule->cfa_value);
    return g_ascii_strcasecmp(text, value) == 0;
}

static const UprofCfiSaved *
find_saved(const UprofCfi *cfi, const UprofCfiRule *rule, int reg)
{
    for (unsigned i = 0; i < rule->n_saved; i++)
        if (uprof_cfi_saved(cfi, rule)[i].reg == reg)
            return &uprof_cfi_saved(cfi, rule)[i];
    return NULL;
}

/* Columns are "LOC", "CFA", and registers. A row has an address, "LOC", and the other values. */
static void
compare_row(const Reading *reading, uint64_t pc)
{
    const Words *columns = &reading->columns, *row = &reading->row;
    const UprofArch *arch = uprof_cfi_arch(reading->cfi);
    const UprofCfiRule *rule = uprof_cfi_find(reading->cfi, pc);
    unsigned n_listed = 0;

    if (!rule)
        g_error("no rule at %" G_GINT64_MODIFIER "x", pc);
    g_assert_cmpuint(columns->n, ==, row->n);
    for (unsigned i = 2; i < columns->n; i++) {
        const int reg = find_reg(arch, columns->word[i]);
        if (reg < 0)
            continue;
        if (rule->flags & UPROF_CFI_END) {
            if (reg == arch->pc)
                g_assert_cmpstr(row->word[i], ==, "u");
            continue;
        }
        const UprofCfiSaved *saved = find_saved(reading->cfi, rule, reg);
        n_listed += saved != NULL;
        if (saved ? !is_value(reading->cfi, saved, row->word[i])
                  : strcmp(row->word[i], "u") != 0 && strcmp(row->word[i], "s") != 0)
            g_error("%s at %" G_GINT64_MODIFIER "x is not %s", columns->word[i], pc, row->word[i]);
    }
    g_assert_cmpuint(n_listed, ==, rule->n_saved);
    if (!(rule->flags & UPROF_CFI_END) && !is_cfa(reading->cfi, rule, row->word[1]))
        g_error("CFA at %" G_GINT64_MODIFIER "x is not %s", pc, row->word[1]);
}

/* Compares the last row, which ends at @end. */
static void
end_row(Reading *reading, uint64_t end)
{
    if (reading->row.n > 0 && !reading->cie && end > reading->row_start) {
        compare_row(reading, reading->row_start);
        compare_row(reading, end - 1);
        reading->n_rows++;
    }
    reading->row.n = 0;
}

static void
begin_fde(Reading *reading, const char *cie_key, const char *range)
{
    const Words *cie = g_hash_table_lookup(reading->cies, cie_key);

    reading->cie = NULL;
    reading->row.n = 0;
    reading->start = parse_hex(range);
    reading->end = parse_hex(strstr(range, "..") + 2);
    reading->row_start = reading->start;
    /* an FDE without rows has the row of its CIE, if the CIE has one */
    if (cie) {
        reading->columns = cie[0];
        reading->row = cie[1];
    }
    if (reading->end == reading->start)
        return;
    reading->n_fdes++;
    g_hash_table_add(reading->starts, g_memdup2(&reading->start, sizeof(reading->start)));
    g_hash_table_add(reading->ends, g_memdup2(&reading->end, sizeof(reading->end)));
}

static Words
split_line(char *line)
{
    Words words = { 0 };

    for (char *word = line; *word;) {
        char *end = word + strcspn(word, " \t");
        const bool is_last = *end == '\0';
        *end = '\0';
        if (*word == '(') { /* the name of a register, which replaces the number before it */
            *strchr(word, ')') = '\0';
            words.word[words.n - 1] = word + 1;
        } else if (*word) {
            g_assert_cmpuint(words.n, <, WORDS_MAX);
            words.word[words.n++] = word;
        }
        word = is_last ? end : end + 1;
    }
    return words;
}

static void
read_line(Reading *reading, char *line)
{
    const Words words = split_line(line);

    if (words.n >= 4 && strcmp(words.word[3], "CIE") == 0) {
        end_row(reading, reading->end);
        reading->cie = words.word[0];
    } else if (words.n >= 6 && strcmp(words.word[3], "FDE") == 0) {
        end_row(reading, reading->end);
        begin_fde(reading, words.word[4] + strlen("cie="), words.word[5] + strlen("pc="));
    } else if (words.n >= 2 && strcmp(words.word[0], "LOC") == 0) {
        reading->columns = words;
        reading->row.n = 0;
    } else if (words.n >= 2 && strlen(words.word[0]) == 16 && g_ascii_isxdigit(line[0])) {
        if (reading->cie) {
            const Words cie[] = { reading->columns, words };
            g_hash_table_insert(reading->cies, (char *)reading->cie, g_memdup2(cie, sizeof(cie)));
            return;
        }
        const uint64_t at = MIN(parse_hex(words.word[0]), reading->end);
        end_row(reading, at);
        reading->row = words;
        reading->row_start = at;
    }
}

static void
clear_reading(Reading *reading)
{
    g_hash_table_unref(reading->cies);
    g_hash_table_unref(reading->starts);
    g_hash_table_unref(reading->ends);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reading, clear_reading)

/* @text: (inout): split into words */
static void
read_all(Reading *reading, char *text)
{
    GHashTableIter iter;
    gpointer end;

    for (char *line = text; *line;) {
        char *next = line + strcspn(line, "\n");
        const bool is_last = *next == '\0';
        *next = '\0';
        read_line(reading, line);
        line = is_last ? next : next + 1;
    }
    end_row(reading, reading->end);

    /* addresses between functions have no rule */
    g_hash_table_iter_init(&iter, reading->ends);
    while (g_hash_table_iter_next(&iter, &end, NULL))
        if (!g_hash_table_contains(reading->starts, end))
            g_assert_null(uprof_cfi_find(reading->cfi, *(const uint64_t *)end));
}

static void
compare_file(const char *path, size_t rows_min)
{
    const char *arguments[] = { "readelf", "--debug-dump=frames-interp,no-follow-links", path,
                                NULL };
    g_autofree char *file = NULL, *text = NULL, *messages = NULL;
    g_auto(UprofElfImage) image = { 0 };
    g_auto(Reading) reading = {
        .cies = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free),
        .starts = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
        .ends = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
    };
    g_autoptr(GError) error = NULL;
    size_t len;
    int status;

    g_assert_true(g_file_get_contents(path, &file, &len, &error));
    g_assert_true(uprof_elf_parse((UprofSlice){ file, len }, path, &image, &error));
    const gint64 before = g_get_monotonic_time();
    g_autoptr(UprofCfi) cfi = uprof_cfi_compile(&image, path, &error);
    const gint64 us = g_get_monotonic_time() - before;
    g_assert_no_error(error);
    const UprofCfiSummary summary = uprof_cfi_summary(cfi);
    g_setenv("LC_ALL", "C", TRUE);
    g_assert_true(g_spawn_sync(NULL, (char **)arguments, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                               &text, &messages, &status, &error));
    g_assert_no_error(error);
    g_assert_true(g_spawn_check_wait_status(status, &error));

    reading.cfi = cfi;
    read_all(&reading, text);
    g_test_message("%s: %zu FDEs, %zu rows of %zu, %zu rules, %zu expressions, %zu bytes, %d us",
                   path, summary.n_fdes, summary.n_rows, reading.n_rows, summary.n_rules,
                   summary.n_expressions, summary.n_bytes, (int)us);
    g_assert_cmpuint(reading.n_rows, >=, rows_min);
    g_assert_cmpuint(summary.n_dropped, ==, 0);
    g_assert_cmpuint(summary.n_fdes, ==, reading.n_fdes);
}

static int
collect_library(struct dl_phdr_info *info, size_t size, void *data)
{
    if (info->dlpi_name && info->dlpi_name[0] == '/')
        g_ptr_array_add(data, g_strdup(info->dlpi_name));
    return 0;
}

static char **given; /* files, as arguments */

/* Reads the files of the arguments, and the libraries of this process. */
static void
test_readelf(void)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *readelf = g_find_program_in_path("readelf");

#ifndef __x86_64__
    g_test_skip("no tables of this machine are known");
    return;
#endif
    if (!readelf) {
        g_test_skip("there is no readelf");
        return;
    }
    g_ptr_array_add(paths, g_file_read_link("/proc/self/exe", NULL));
    dl_iterate_phdr(collect_library, paths);
    g_assert_cmpuint(paths->len, >=, 3);
    for (char **path = given; *path; path++)
        g_ptr_array_add(paths, g_strdup(*path));
    for (guint i = 0; i < paths->len; i++)
        compare_file(g_ptr_array_index(paths, i), 10);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    given = argv + 1;

    for (size_t i = 0; i < G_N_ELEMENTS(programs); i++) {
        g_autofree char *path = g_strdup_printf("/cfi/program/%s", programs[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_program);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cies); i++) {
        g_autofree char *path = g_strdup_printf("/cfi/cie/%s", cies[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_cie);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++) {
        g_autofree char *path = g_strdup_printf("/cfi/layout/%s", layouts[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_layout);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(brokens); i++) {
        g_autofree char *path = g_strdup_printf("/cfi/broken/%s", brokens[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_broken);
    }
    g_test_add_func("/cfi/prefixes", test_prefixes);
    g_test_add_func("/cfi/expression", test_expression);
    g_test_add_func("/cfi/frame-sizes", test_frame_sizes);
    g_test_add_func("/cfi/machines", test_machines);
    g_test_add_func("/cfi/far-apart", test_far_apart);
    g_test_add_func("/cfi/too-far-apart", test_too_far_apart);
    g_test_add_func("/cfi/rules-limit", test_rules_limit);
    g_test_add_func("/cfi/readelf", test_readelf);
    return g_test_run();
}
