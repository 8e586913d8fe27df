/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <string.h>
#include <unistd.h>

#include "../../../src/parse/cfi-table-priv.h"
#include "../../../src/unwind/cfi-step-priv.h"
#include "symbol-elf.h"
#include "uprof/unwind.h"

/*
 * Each case has a function of FUNCTION_LEN bytes with one rule. There are holes between the
 * functions. The window is at STACK, and the word at STACK + n has the value WORD + n.
 */
enum {
    CODE = 0x1000,
    CODE_LEN = 0x2000,
    FUNCTION_LEN = 16,
    HOLE_LEN = 16,
    STACK = 0x10000,
    WINDOW_LEN = 0x400,
    ZERO_AT = 0x380, /* the word at this offset is 0 */
    SP = STACK + 0x100,
    FP = STACK + 0x200,
    RBX = STACK + 0x300,
    WORD = 0x200000,
};

#define PROGRAM(text)                                                                              \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
#define BIT(reg) (UINT64_C(1) << (reg))
#define USER 3
#define S(n) (STACK + (n))
#define W(n) (WORD + (n))
#define RBX_BIT BIT(UPROF_X86_RBX)
#define RBP_BIT BIT(UPROF_X86_RBP)

/* clang-format off */
/* By default, the CFA is RSP + 8, and the return address is at CFA - 8. */
static const struct {
    const char *name;
    UprofSlice program;
    /* 0: the default of init_fixture() */
    uint64_t sp, fp, unknown;
    uint8_t privilege;
    bool is_return;
    UprofStep answer;
    /* of the caller */
    uint64_t pc, caller_sp, caller_fp, rbx, caller_unknown;
} cases[] = {
    { "nothing-saved",   PROGRAM(""), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, 0 },
    { "after-push",      PROGRAM("\x0e\x10\x86\x02"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x108), S(0x110), W(0x100), RBX, 0 },
    { "two-saved",       PROGRAM("\x0e\x18\x86\x02\x83\x03"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x110), S(0x118), W(0x108), W(0x100), 0 },
    { "frame-pointer",   PROGRAM("\x0c\x06\x10\x86\x02"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x208), S(0x210), W(0x200), RBX, 0 },
    { "other-base",      PROGRAM("\x0c\x03\x10"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x308), S(0x310), FP, RBX, 0 },
    { "unknown-base",    PROGRAM("\x0c\x03\x10"), 0, 0, RBX_BIT, 0, true, UPROF_STEP_PASS, 0, 0, 0, 0, 0 },
    { "unknown-is-restored", PROGRAM("\x0e\x10\x83\x02"), 0, 0, RBX_BIT, 0, true, UPROF_STEP_OK, W(0x108), S(0x110), FP, W(0x100), 0 },
    { "unknown-stays",   PROGRAM(""), 0, 0, RBX_BIT, 0, true, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, RBX_BIT },
    { "undefined",       PROGRAM("\x07\x03"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, RBX_BIT },
    { "undefined-sp",    PROGRAM("\x07\x07"), 0, 0, 0, 0, false, UPROF_STEP_PASS, 0, 0, 0, 0, 0 },
    { "register",        PROGRAM("\x09\x06\x03"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), RBX, RBX, 0 },
    { "swapped",         PROGRAM("\x09\x06\x03\x09\x03\x06"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), RBX, FP, 0 },
    { "unknown-register", PROGRAM("\x09\x06\x03"), 0, 0, RBX_BIT, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, RBX_BIT | RBP_BIT },
    { "return-in-register", PROGRAM("\x0e\x00\x09\x10\x03"), 0, 0, 0, 0, false, UPROF_STEP_OK, RBX, SP, FP, RBX, 0 },
    { "return-in-unknown", PROGRAM("\x09\x10\x03"), 0, 0, RBX_BIT, 0, false, UPROF_STEP_PASS, 0, 0, 0, 0, 0 },
    { "sp-at-offset",    PROGRAM("\x0e\x10\x87\x02"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x108), W(0x100), FP, RBX, 0 },
    { "sp-by-offset",    PROGRAM("\x15\x07\x7e"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x118), FP, RBX, 0 },
    { "end",             PROGRAM("\x07\x10"), 0, 0, 0, 0, false, UPROF_STEP_BASE, 0, 0, 0, 0, 0 },
    { "return-to-zero",  PROGRAM(""), S(ZERO_AT), 0, 0, 0, false, UPROF_STEP_BASE, 0, 0, 0, 0, 0 },
    { "last-word",       PROGRAM(""), S(0x3f8), 0, 0, 0, false, UPROF_STEP_OK, W(0x3f8), S(0x400), FP, RBX, 0 },
    { "cut-in-word",     PROGRAM(""), S(0x3fc), 0, 0, 0, false, UPROF_STEP_CUT, 0, 0, 0, 0, 0 },
    { "after-window",          PROGRAM(""), S(0x400), 0, 0, 0, false, UPROF_STEP_CUT, 0, 0, 0, 0, 0 },
    { "large-frame",     PROGRAM("\x0e\x88\x80\x40"), 0, 0, 0, 0, false, UPROF_STEP_CUT, 0, 0, 0, 0, 0 },
    { "sp-outside",  PROGRAM(""), UINT64_MAX - 7, 0, 0, 0, false, UPROF_STEP_CUT, 0, 0, 0, 0, 0 },
    { "saved-is-cut",    PROGRAM("\x11\x03\x80\x7d"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, RBX_BIT },
    { "fp-below",        PROGRAM("\x0c\x06\x10"), 0, S(0x80), 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
    { "fp-at-sp",        PROGRAM("\x0c\x06\x10"), 0, SP - 0x10, 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
    { "fp-wild",         PROGRAM("\x0c\x06\x10"), 0, UINT64_C(0xdeadbeefdeadbee8), 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
    { "fp-highest",      PROGRAM("\x0c\x06\x10"), 0, UINT64_MAX - 7, 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
    { "fp-cut",          PROGRAM("\x0c\x06\x10"), 0, S(WINDOW_LEN), 0, 0, false, UPROF_STEP_CUT, 0, 0, 0, 0, 0 },

    /* RBX was just popped, but the rule still says that it is saved, now at SP - 8 */
    { "popped-in-user",  PROGRAM("\x83\x02"), 0, 0, 0, USER, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, W(0xf8), 0 },
    { "popped-in-kernel", PROGRAM("\x83\x02"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, 0 },
    { "popped-and-called", PROGRAM("\x83\x02"), 0, 0, 0, USER, true, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, 0 },
    { "popped-below-window", PROGRAM("\x83\x02"), S(0), 0, 0, USER, false, UPROF_STEP_OK, W(0), S(8), FP, RBX, 0 },
    { "popped-unknown",  PROGRAM("\x83\x02"), 0, 0, RBX_BIT, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, RBX_BIT },

    { "cfa-expression",  PROGRAM("\x0f\x02\x77\x10"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x108), S(0x110), FP, RBX, 0 },
    { "cfa-deref",       PROGRAM("\x0f\x09\x77\x00\x06\x0c\x00\x00\x1f\x00\x1c"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0xf8), S(0x100), FP, RBX, 0 },
    { "cfa-deref-cut",   PROGRAM("\x0f\x04\x77\x80\x06\x06"), 0, 0, 0, 0, false, UPROF_STEP_CUT, 0, 0, 0, 0, 0 },
    { "cfa-unknown",     PROGRAM("\x0f\x02\x73\x10"), 0, 0, RBX_BIT, 0, true, UPROF_STEP_PASS, 0, 0, 0, 0, 0 },
    { "cfa-vector",      PROGRAM("\x0f\x03\x92\x11\x10"), 0, 0, 0, 0, false, UPROF_STEP_PASS, 0, 0, 0, 0, 0 },
    { "cfa-bad",         PROGRAM("\x0f\x01\x22"), 0, 0, 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
    { "cfa-by-pc",       PROGRAM("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, 0 },
    { "at-expression",   PROGRAM("\x10\x03\x02\x23\x10"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, W(0x118), 0 },
    { "is-expression",   PROGRAM("\x16\x03\x02\x23\x10"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, S(0x118), 0 },
    { "bad-expression",  PROGRAM("\x16\x03\x01\x22"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x100), S(0x108), FP, RBX, RBX_BIT },
    { "return-at-expression", PROGRAM("\x10\x10\x02\x23\x10"), 0, 0, 0, 0, false, UPROF_STEP_OK, W(0x118), S(0x108), FP, RBX, 0 },
    { "return-by-bad",   PROGRAM("\x10\x10\x01\x22"), 0, 0, 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
    { "sp-at-bad",       PROGRAM("\x10\x07\x01\x22"), 0, 0, 0, 0, false, UPROF_STEP_LOST, 0, 0, 0, 0, 0 },
};
/* clang-format on */

enum { SIGNAL_CASE = G_N_ELEMENTS(cases) };

typedef struct {
    UprofNames *names;
    UprofSym *sym;
    UprofSnapshot *snapshot;
    UprofUnwindContext context;
    UprofCursor cursor;
} Fixture;

static uint64_t
function_at(size_t i)
{
    return CODE + i * (FUNCTION_LEN + HOLE_LEN);
}

static void
put_u32(GByteArray *section, uint64_t value)
{
    const uint32_t raw = GUINT32_TO_LE((uint32_t)value);

    g_byte_array_append(section, (const guint8 *)&raw, sizeof(raw));
}

/* Returns: the offset of the CIE in @section */
static guint
put_cie(GByteArray *section, const char *letters, guint len)
{
    static const uint8_t rest[] = "\1\x78\x10\1\3\x0c\7\x08\x90\1";
    const guint at = section->len;

    put_u32(section, 4 + 1 + len + sizeof(rest) - 1);
    put_u32(section, 0);
    g_byte_array_append(section, (const guint8 *)"\1", 1);
    g_byte_array_append(section, (const guint8 *)letters, len);
    g_byte_array_append(section, rest, sizeof(rest) - 1);
    return at;
}

static void
put_fde(GByteArray *section, guint cie, uint64_t start, UprofSlice program)
{
    put_u32(section, 4 + 4 + 4 + 1 + program.len);
    put_u32(section, section->len - cie);
    put_u32(section, start);
    put_u32(section, FUNCTION_LEN);
    g_byte_array_append(section, (const guint8 *)"", 1);
    if (program.len > 0)
        g_byte_array_append(section, program.data, (guint)program.len);
}

static void
add_image(Fixture *fixture)
{
    static const uint8_t text[CODE_LEN];
    static const ElfSymbol symbols[] = { { "main", CODE, 0x10, true } };
    g_autoptr(GByteArray) section = g_byte_array_new();
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;

    const guint cie = put_cie(section, "zR", 3), signal_cie = put_cie(section, "zRS", 4);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        put_fde(section, cie, function_at(i), cases[i].program);
    put_fde(section, signal_cie, function_at(SIGNAL_CASE), (UprofSlice){ NULL, 0 });
    const ElfPlan plan = { .text_gva = CODE,
                           .text = text,
                           .text_len = sizeof(text),
                           .eh_frame_gva = 0x8000,
                           .eh_frame = section->data,
                           .eh_frame_len = section->len,
                           .symbols = symbols,
                           .n_symbols = G_N_ELEMENTS(symbols) };
    close(g_file_open_tmp("uprof-test-XXXXXX", &path, &error));
    g_assert_no_error(error);
    symbol_elf_write(&plan, path);
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    unlink(path);
}

static void
init_fixture(Fixture *fixture)
{
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->context = (UprofUnwindContext){ .snapshot = fixture->snapshot, .sym = fixture->sym };
    fixture->snapshot->n_windows = 1;
    fixture->snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_LEN };
    for (unsigned at = 0; at < WINDOW_LEN; at += 8) {
        const uint64_t word = GUINT64_TO_LE(at == ZERO_AT ? 0 : (uint64_t)WORD + at);
        memcpy(fixture->snapshot->bytes + at, &word, sizeof(word));
    }
    fixture->cursor = (UprofCursor){ .regs = { .sp = SP, .fp = FP, .word_bytes = 8 } };
    fixture->cursor.regs.reg[UPROF_X86_RBX] = RBX;
    /* these are ignored: fp and sp have members of their own */
    fixture->cursor.regs.reg[UPROF_X86_RBP] = 0x11;
    fixture->cursor.regs.reg[UPROF_X86_RSP] = 0x22;
    add_image(fixture);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    g_free(fixture->snapshot);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    UprofCursor *cursor = &fixture.cursor;
    cursor->regs.pc = function_at(i) + 8;
    cursor->regs.privilege = cases[i].privilege;
    cursor->is_return = cases[i].is_return;
    cursor->unknown = cases[i].unknown;
    if (cases[i].sp)
        cursor->regs.sp = cases[i].sp;
    if (cases[i].fp)
        cursor->regs.fp = cases[i].fp;
    const UprofCursor before = *cursor;
    g_assert_cmpint(uprof_cfi_step(&fixture.context, cursor), ==, cases[i].answer);
    if (cases[i].answer != UPROF_STEP_OK) {
        g_assert_cmpmem(cursor, sizeof(*cursor), &before, sizeof(before));
        return;
    }
    g_assert_cmphex(cursor->regs.pc, ==, cases[i].pc);
    g_assert_cmphex(cursor->regs.sp, ==, cases[i].caller_sp);
    g_assert_cmphex(cursor->regs.fp, ==, cases[i].caller_fp);
    g_assert_cmphex(cursor->regs.reg[UPROF_X86_RBX], ==, cases[i].rbx);
    g_assert_cmphex(cursor->unknown, ==, cases[i].caller_unknown);
    g_assert_true(cursor->is_return);
}

/* clang-format off */
static const struct {
    const char *name;
    size_t function;
    int at; /* offset of the pc in it */
    bool is_return;
    uint8_t word_bytes;
    UprofStep answer;
    bool caller_is_return;
} positions[] = {
    { "first-byte",       0, 0,  false, 8, UPROF_STEP_OK,   true },
    { "last-byte",        0, 15, false, 8, UPROF_STEP_OK,   true },
    { "after",           0, 16, false, 8, UPROF_STEP_PASS, false },
    { "before",           1, -1, false, 8, UPROF_STEP_PASS, false },
    { "call-at-the-end",  0, 16, true,  8, UPROF_STEP_OK,   true },
    { "return-to-start",  1, 0,  true,  8, UPROF_STEP_PASS, false },
    { "call-before",      1, 1,  true,  8, UPROF_STEP_OK,   true },
    { "signal",           SIGNAL_CASE, 4, false, 8, UPROF_STEP_OK, false },
    { "signal-called",    SIGNAL_CASE, 4, true,  8, UPROF_STEP_OK, false },
    { "signal-at-start",  SIGNAL_CASE, 0, true,  8, UPROF_STEP_OK, false },
    { "signal-behind",    SIGNAL_CASE, 16, false, 8, UPROF_STEP_OK, false },
    { "32-bit",           0, 0,  false, 4, UPROF_STEP_PASS, false },
    { "16-bit",           0, 0,  false, 2, UPROF_STEP_PASS, false },
};
/* clang-format on */

static void
test_position(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    fixture.cursor.regs.pc =
        function_at(positions[i].function) + (uint64_t)(int64_t)positions[i].at;
    fixture.cursor.regs.word_bytes = positions[i].word_bytes;
    fixture.cursor.is_return = positions[i].is_return;
    g_assert_cmpint(uprof_cfi_step(&fixture.context, &fixture.cursor), ==, positions[i].answer);
    if (positions[i].answer == UPROF_STEP_OK)
        g_assert_true(fixture.cursor.is_return == positions[i].caller_is_return);
}

static void
test_nowhere(void)
{
    static const uint64_t pcs[] = { 0, 1, 0x80000000, UINT64_MAX };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    for (size_t i = 0; i < 2 * G_N_ELEMENTS(pcs); i++) {
        fixture.cursor.regs.pc = pcs[i / 2];
        fixture.cursor.is_return = i % 2;
        g_assert_cmpint(uprof_cfi_step(&fixture.context, &fixture.cursor), ==, UPROF_STEP_PASS);
    }
}

/* Random registers and stacks, with the rules of libc, which has rules of each kind. */
static void
test_random(void)
{
    enum { ROUNDS = 100000 };
    g_auto(Fixture) fixture;
    g_autoptr(GError) error = NULL;
    unsigned n_answers[UPROF_STEP_LOST + 1] = { 0 };
    UprofSymSource source;
    Dl_info libc;

    init_fixture(&fixture);
    g_assert_cmpint(dladdr((void *)gnu_get_libc_version, &libc), !=, 0);
    g_assert_true(uprof_sym_add_file(fixture.sym, libc.dli_fname, false, &error));
    g_assert_no_error(error);
    uprof_sym_source(fixture.sym, 1, &source);
    g_assert_nonnull(source.cfi);
    const size_t n_rows = uprof_cfi_summary(source.cfi).n_rows;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const UprofCfiRule *rule;
        UprofCursor cursor = { .regs = { .word_bytes = 8 } };
        uint64_t pc;

        /* each row comes at least once, because some answers are rare */
        const size_t row =
            round < n_rows ? round : (size_t)g_test_rand_int_range(0, (gint32)n_rows);
        uprof_cfi_row(source.cfi, row, &pc, &rule);
        for (unsigned i = 0; i < UPROF_X86_N_REGS; i++)
            cursor.regs.reg[i] = STACK + (uint64_t)g_test_rand_int_range(-64, WINDOW_LEN + 64);
        cursor.regs.pc = pc;
        cursor.regs.sp = cursor.regs.reg[UPROF_X86_RSP];
        cursor.regs.fp =
            round % 3 ? cursor.regs.reg[UPROF_X86_RBP] : (uint64_t)g_test_rand_int() << 32;
        cursor.regs.privilege = round % 2 ? USER : 0;
        cursor.unknown = round % 4 ? 0 : (uint32_t)g_test_rand_int() & 0xff7f;
        cursor.is_return = round % 5 == 0;
        const UprofCursor before = cursor;
        const UprofStep answer = uprof_cfi_step(&fixture.context, &cursor);
        g_assert_cmpint(answer, <=, UPROF_STEP_LOST);
        n_answers[MIN(answer, UPROF_STEP_LOST)]++;
        if (answer != UPROF_STEP_OK)
            g_assert_cmpmem(&cursor, sizeof(cursor), &before, sizeof(before));
    }
    for (unsigned i = 0; i <= UPROF_STEP_LOST; i++)
        g_assert_cmpuint(n_answers[i], >, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/cfi-step/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(positions); i++) {
        g_autofree char *path = g_strdup_printf("/cfi-step/position/%s", positions[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_position);
    }
    g_test_add_func("/cfi-step/nowhere", test_nowhere);
    g_test_add_func("/cfi-step/random", test_random);
    return g_test_run();
}
