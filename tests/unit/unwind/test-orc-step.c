/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/unwind/unwind-context-priv.h"
#include "../../../src/base/sanitized-priv.h"
#include <string.h>

#include "../../../src/unwind/orc-step-priv.h"
#include "build-orc.h"
#include "linux-guest.h"
#include "memory-guest.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

/*
 * Each function of the kernel has FUNCTION_LEN bytes and one rule. Two stacks are copied, at
 * STACK and at LOW. The word at STACK + n has the value WORD + n, and the word at LOW + n the
 * value LOW_WORD + n.
 */
enum { FUNCTION_LEN = 16, WINDOW_LEN = 0x400, KERNEL_CS = 0x10, USER_CS = 0x33 };

#define TEXT UINT64_C(0xffffffff81000000)
#define TABLE UINT64_C(0xffffffff82400000)
#define STACK UINT64_C(0xffffc90000010000)
#define LOW UINT64_C(0xffffc90000004000)
#define SP (STACK + 0x100)
#define FP (STACK + 0x200)
#define WORD UINT64_C(0x200000)
#define LOW_WORD UINT64_C(0x300000)
#define S(n) (STACK + (n))
#define W(n) (WORD + (n))
#define BIT(reg) (UINT64_C(1) << (reg))
#define VERSION UPROF_ORC_6_4
#define BP_BIT BIT(UPROF_X86_RBP)
#define R10 (UPROF_X86_R8 + 2)
#define R13 (UPROF_X86_R8 + 5)
#define SAVED ~BP_BIT /* unknown registers after a step to a caller: all but the frame pointer */
#define NOTHING UINT64_MAX

/* flags of an ORC entry of Linux 6.4: type, bp register, sp register */
enum {
    CALL = 0x200,
    REGS = 0xb00,
    PARTIAL = 0xc00,
    END = 0x100,
    UNDEFINED = 0,
    BP_SAME = 0,
    BP_CFA = 0x10,
    BP_BP = 0x40,
    BY_DX = 2,
    BY_DI = 3,
    BY_BP = 4,
    BY_SP = 5,
    BY_R10 = 6,
    BY_R13 = 7,
    AT_BP = 8,
    AT_SP = 9,
    BY_AX = 10,
};

/* clang-format off */
static const struct {
    const char *name;
    UprofOrcVersion version; /* 0: Linux 6.4 */
    uint16_t flags;
    int16_t sp_offset, bp_offset;
    struct { uint64_t at, value; } words[3]; /* words of the stacks; value 0: end of the list */
    uint64_t sp, fp, unknown; /* 0: the default of init_fixture() */
    UprofStep answer;
    uint64_t pc, caller_sp, caller_fp, caller_unknown;
    bool is_exact, is_switched;
} cases[] = {
    { "leaf",           0, CALL | BY_SP, 8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x100), S(0x108), FP, SAVED, false, false },
    { "frame",          0, CALL | BP_CFA | BY_SP, 0x30, -0x10, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x128), S(0x130), W(0x120), SAVED, false, false },
    { "by-bp",          0, CALL | BP_CFA | BY_BP, 0x10, -0x10, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x208), S(0x210), W(0x200), SAVED, false, false },
    { "signal",         0, CALL | 0x800 | BY_SP, 8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x100), S(0x108), FP, SAVED, true, false },
    { "ax",             0, CALL | BY_AX, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x138), S(0x140), FP, SAVED, false, false },
    { "dx",             0, CALL | BY_DX, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x148), S(0x150), FP, SAVED, false, false },
    { "di",             0, CALL | BY_DI, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x158), S(0x160), FP, SAVED, false, false },
    { "r10",            0, CALL | BP_BP | BY_R10, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x168), S(0x170), W(0x200), SAVED, false, false },
    { "r13",            0, CALL | BY_R13, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x178), S(0x180), FP, SAVED, false, false },
    { "dx-and-offset",  0, CALL | BY_DX, 8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x150), S(0x158), FP, SAVED, false, false },
    { "r10-unknown",    0, CALL | BY_R10, 0, 0, { { 0 } }, 0, 0, BIT(R10), UPROF_STEP_PASS, 0, 0, 0, 0, false, false },
    { "bp-unknown",     0, CALL | BY_BP, 16, 0, { { 0 } }, 0, 0, BP_BIT, UPROF_STEP_PASS, 0, 0, 0, 0, false, false },
    { "bp-stays-unknown", 0, CALL | BY_SP, 8, 0, { { 0 } }, 0, 0, BP_BIT, UPROF_STEP_OK, W(0x100), S(0x108), FP, NOTHING, false, false },
    { "bp-is-restored", 0, CALL | BP_CFA | BY_SP, 0x10, -0x10, { { 0 } }, 0, 0, BP_BIT, UPROF_STEP_OK, W(0x108), S(0x110), W(0x100), SAVED, false, false },
    { "bp-by-unknown",  0, CALL | BP_BP | BY_SP, 8, 0, { { 0 } }, 0, 0, BP_BIT, UPROF_STEP_OK, W(0x100), S(0x108), FP, NOTHING, false, false },
    { "bp-is-cut",      0, CALL | BP_CFA | BY_SP, 0x10, 0x7ff0, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x108), S(0x110), FP, NOTHING, false, false },
    { "bp-by-wild",     0, CALL | BP_BP | BY_SP, 8, 8, { { 0 } }, 0, UINT64_MAX - 7, 0, UPROF_STEP_OK, W(0x100), S(0x108), UINT64_MAX - 7, NOTHING, false, false },

    { "end",            0, END, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_BASE, 0, 0, 0, 0, false, false },
    { "undefined",      0, UNDEFINED, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_PASS, 0, 0, 0, 0, false, false },
    { "unknown-type",   0, 0x505, 8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_PASS, 0, 0, 0, 0, false, false },
    { "unknown-reg",    0, CALL | 15, 8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_PASS, 0, 0, 0, 0, false, false },

    { "last-word",      0, CALL | BY_SP, 8, 0, { { 0 } }, S(0x3f8), 0, 0, UPROF_STEP_OK, W(0x3f8), S(0x400), FP, SAVED, false, false },
    { "cut",            0, CALL | BY_SP, 8, 0, { { 0 } }, S(0x400), 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "frame-is-cut",   0, CALL | BY_SP, 0x7ff8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "sp-outside", 0, CALL | BY_SP, 8, 0, { { 0 } }, UINT64_MAX - 7, 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "misaligned",     0, CALL | BY_SP, 12, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "downwards",      0, CALL | BY_SP, -8, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "bp-below",       0, CALL | BY_BP, 16, 0, { { 0 } }, 0, S(0x80), 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "bp-far",         0, CALL | BY_BP, 16, 0, { { 0 } }, 0, S(0x20000), 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "bp-highest",     0, CALL | BY_BP, 16, 0, { { 0 } }, 0, UINT64_MAX - 7, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },

    /* to another stack, by the pointer to it in a word of this one */
    { "at-sp",          0, CALL | AT_SP, 0x10, 0, { { S(0x100), LOW + 0x20 } }, 0, 0, 0, UPROF_STEP_OK, LOW_WORD + 0x28, LOW + 0x30, FP, SAVED, false, true },
    { "at-sp-before",   UPROF_ORC_4_14, 0x009, 0x10, 0, { { S(0x110), LOW + 0x20 } }, 0, 0, 0, UPROF_STEP_OK, LOW_WORD + 0x18, LOW + 0x20, FP, SAVED, false, true },
    { "at-bp",          0, CALL | AT_BP, 0x10, 0, { { S(0x210), LOW + 0x20 } }, 0, 0, 0, UPROF_STEP_OK, LOW_WORD + 0x18, LOW + 0x20, FP, SAVED, false, true },
    { "at-bp-near",     0, CALL | BP_BP | AT_BP, -0x28, 0, { { S(0x1d8), S(0x240) } }, 0, 0, 0, UPROF_STEP_OK, W(0x238), S(0x240), W(0x200), SAVED, false, false },
    { "at-bp-to-nowhere", 0, CALL | AT_BP, 0x10, 0, { { S(0x210), 0x1000 } }, 0, 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "bp-on-another",  UPROF_ORC_4_14, 0x014, 0x10, -0x10, { { 0 } }, 0, LOW + 0x20, 0, UPROF_STEP_OK, LOW_WORD + 0x28, LOW + 0x30, LOW_WORD + 0x20, SAVED, false, true },
    { "bp-nowhere",     UPROF_ORC_4_14, 0x014, 0x10, -0x10, { { 0 } }, 0, 0x1000, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "at-sp-cut",      0, CALL | AT_SP, 0x10, 0, { { 0 } }, S(0x400), 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "at-sp-to-nowhere", 0, CALL | AT_SP, 0x10, 0, { { S(0x100), 0x1000 } }, 0, 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "at-sp-misaligned", 0, CALL | AT_SP, 0x10, 0, { { S(0x100), LOW + 1 } }, 0, 0, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "at-bp-unknown",  0, CALL | AT_BP, 0x10, 0, { { 0 } }, 0, 0, BP_BIT, UPROF_STEP_PASS, 0, 0, 0, 0, false, false },

    /* to interrupted code by a pt_regs: complete, or only ip, cs, flags and sp */
    { "regs",           0, REGS | BY_SP, 0, 0, { { S(0x188), KERNEL_CS }, { S(0x198), LOW + 8 } }, 0, 0, NOTHING, UPROF_STEP_OK, W(0x180), LOW + 8, W(0x120), 0, true, true },
    { "regs-above",     0, REGS | BY_SP, 0x40, 0, { { S(0x1c8), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x1c0), W(0x1d8), W(0x160), 0, true, true },
    { "regs-bp-saved",  0, REGS | BP_CFA | BY_SP, 0, 0x50, { { S(0x188), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x180), W(0x198), W(0x150), 0, true, true },
    { "regs-not-signal", 0, 0x300 | BY_SP, 0, 0, { { S(0x188), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x180), W(0x198), W(0x120), 0, false, true },
    { "regs-popped",    0, REGS | BY_SP, -0x20, 0, { { S(0x168), KERNEL_CS } }, 0, 0, BIT(R13), UPROF_STEP_OK, W(0x160), W(0x178), W(0x100), BIT(R13), true, true },
    { "regs-bp-popped", 0, REGS | BY_SP, -0x28, 0, { { S(0x160), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x158), W(0x170), FP, 0, true, true },
    { "regs-bp-popped-unknown", 0, REGS | BY_SP, -0x28, 0, { { S(0x160), KERNEL_CS } }, 0, 0, BP_BIT, UPROF_STEP_OK, W(0x158), W(0x170), FP, BP_BIT, true, true },
    { "regs-all-popped", 0, REGS | BY_SP, -0xa8, 0, { { S(0xe0), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0xd8), W(0xf0), FP, 0, true, true },
    { "regs-too-low",   0, REGS | BY_SP, -0xb0, 0, { { S(0xd8), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "regs-of-user",   0, REGS | BY_SP, 0, 0, { { S(0x188), USER_CS } }, 0, 0, 0, UPROF_STEP_BASE, 0, 0, 0, 0, false, false },
    { "regs-at-sp",     0, REGS | AT_SP, 0, 0, { { S(0x100), LOW }, { LOW + 0x88, KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, LOW_WORD + 0x80, LOW_WORD + 0x98, LOW_WORD + 0x20, 0, true, true },
    { "regs-bad-cs", 0, REGS | BY_SP, 0, 0, { { S(0x188), 0x2b } }, 0, 0, 0, UPROF_STEP_LOST, 0, 0, 0, 0, false, false },
    { "regs-of-xen",    0, REGS | BY_SP, 0, 0, { { S(0x188), 0xe030 } }, 0, 0, 0, UPROF_STEP_OK, W(0x180), W(0x198), W(0x120), 0, true, true },
    { "regs-of-fred",   0, REGS | BY_SP, 0, 0, { { S(0x188), 0x300000010 } }, 0, 0, 0, UPROF_STEP_OK, W(0x180), W(0x198), W(0x120), 0, true, true },
    { "regs-are-cut",   0, REGS | BY_SP, 0, 0, { { 0 } }, S(0x368), 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "regs-fit",       0, REGS | BY_SP, 0, 0, { { S(0x3e8), KERNEL_CS } }, S(0x360), 0, 0, UPROF_STEP_OK, W(0x3e0), W(0x3f8), W(0x380), 0, true, true },
    { "regs-half-below", 0, REGS | AT_SP, 0, 0, { { S(0x100), LOW - 0x20 }, { LOW + 0x68, KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, LOW_WORD + 0x60, LOW_WORD + 0x78, LOW_WORD + 0, BIT(UPROF_X86_R15) | BIT(UPROF_X86_R15 - 1) | BIT(UPROF_X86_R15 - 2) | BIT(UPROF_X86_R15 - 3), true, true },
    { "partial",        0, PARTIAL | BY_SP, 0x10, 0, { { S(0x118), KERNEL_CS }, { S(0x128), LOW + 8 } }, 0, 0, BIT(R13), UPROF_STEP_OK, W(0x110), LOW + 8, FP, BIT(R13), true, true },
    { "partial-popped", 0, PARTIAL | BY_SP, -0x50, 0, { { S(0xb8), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0xb0), W(0xc8), FP, 0, true, true },
    { "partial-by-dx",  0, PARTIAL | BY_DX, 8, 0, { { S(0x160), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x158), W(0x170), FP, 0, true, true },
    { "partial-bp-lost", 0, PARTIAL | BY_SP, 0x10, 0, { { S(0x118), KERNEL_CS } }, 0, 0, BP_BIT, UPROF_STEP_OK, W(0x110), W(0x128), FP, BP_BIT, true, true },
    { "partial-of-user", 0, PARTIAL | BY_SP, 0x10, 0, { { S(0x118), USER_CS } }, 0, 0, 0, UPROF_STEP_BASE, 0, 0, 0, 0, false, false },
    { "partial-of-32",  0, PARTIAL | BY_SP, 0x10, 0, { { S(0x118), 0x23 } }, 0, 0, 0, UPROF_STEP_BASE, 0, 0, 0, 0, false, false },
    { "partial-is-cut", 0, PARTIAL | BY_SP, 0, 0, { { 0 } }, S(0x3e8), 0, 0, UPROF_STEP_CUT, 0, 0, 0, 0, false, false },
    { "old-regs",       UPROF_ORC_4_14, 0x105, 0, 0, { { S(0x188), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x180), W(0x198), W(0x120), 0, true, true },
    { "old-partial",    UPROF_ORC_5_12, 0x205, 0x10, 0, { { S(0x118), KERNEL_CS } }, 0, 0, 0, UPROF_STEP_OK, W(0x110), W(0x128), FP, 0, true, true },
    { "old-end",        UPROF_ORC_4_14, 0x400, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_BASE, 0, 0, 0, 0, false, false },
    { "6.3-end",        UPROF_ORC_6_3, 0x800, 0, 0, { { 0 } }, 0, 0, 0, UPROF_STEP_BASE, 0, 0, 0, 0, false, false },
    { "7.1-frame",      UPROF_ORC_7_1, 0x283, 0x30, -0x10, { { 0 } }, 0, 0, 0, UPROF_STEP_OK, W(0x128), S(0x130), W(0x120), SAVED, false, false },
};
/* clang-format on */

typedef struct {
    MemoryGuest *guest;
    UprofMem *mem;
    UprofNames *names;
    UprofSym *sym;
    UprofSnapshot *snapshot;
    UprofStack *stack;
    UprofUnwindContext context;
    UprofCursor cursor;
} Fixture;

static void
put_word(Fixture *fixture, uint64_t at, uint64_t value)
{
    const uint64_t raw = GUINT64_TO_LE(value);
    const UprofWindow *window = uprof_snapshot_window_at(fixture->snapshot, at);

    g_assert_nonnull(window);
    memcpy(fixture->snapshot->bytes + window->offset + (at - window->gva), &raw, sizeof(raw));
}

static void
init_fixture(Fixture *fixture)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = 0x6000 };
    UprofRegs *regs = &fixture->cursor.regs;

    fixture->guest = memory_guest_open(&plan);
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(uprof_arch_find("x86_64"), fixture->names);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->stack = g_new0(UprofStack, 1);
    fixture->context = (UprofUnwindContext){
        .snapshot = fixture->snapshot, .mem = fixture->mem, .sym = fixture->sym, .max_depth = DEPTH
    };
    fixture->snapshot->n_windows = 2;
    fixture->snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_LEN };
    fixture->snapshot->windows[1] =
        (UprofWindow){ .gva = LOW, .offset = WINDOW_LEN, .len = WINDOW_LEN };
    for (unsigned at = 0; at < WINDOW_LEN; at += 8) {
        put_word(fixture, STACK + at, WORD + at);
        put_word(fixture, LOW + at, LOW_WORD + at);
    }
    fixture->cursor = (UprofCursor){ .regs = { .sp = SP, .fp = FP, .word_bytes = 8 } };
    regs->reg[UPROF_X86_RAX] = S(0x140);
    regs->reg[UPROF_X86_RDX] = S(0x150);
    regs->reg[UPROF_X86_RDI] = S(0x160);
    regs->reg[R10] = S(0x170);
    regs->reg[R13] = S(0x180);
    uprof_mem_begin_sample(fixture->mem, 0, 0);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_mem_free(fixture->mem);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    memory_guest_close(fixture->guest);
    g_free(fixture->snapshot);
    g_free(fixture->stack);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* Adds @n functions that follow each other from TEXT on. */
static void
add_orc_to(UprofSym *sym, OrcLine *lines, unsigned n, UprofOrcVersion version)
{
    g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < n; i++)
        lines[i].pc = TEXT + (uint64_t)i * FUNCTION_LEN;
    build_orc(lines, n, TABLE, ips, entries);
    UprofOrc *orc = uprof_orc_parse((UprofSlice){ ips->data, ips->len }, TABLE,
                                    (UprofSlice){ entries->data, entries->len }, version, &error);
    g_assert_no_error(error);
    uprof_sym_add_orc(sym, UPROF_SYM_KERNEL, orc);
}

static void
add_orc(Fixture *fixture, OrcLine *lines, unsigned n, UprofOrcVersion version)
{
    add_orc_to(fixture->sym, lines, n, version);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    OrcLine lines[] = {
        { 0, cases[i].sp_offset, cases[i].bp_offset, cases[i].flags },
        { 0, 0, 0, 0 },
    };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_orc(&fixture, lines, 2, cases[i].version ? cases[i].version : VERSION);
    UprofCursor *cursor = &fixture.cursor;
    for (unsigned k = 0; k < G_N_ELEMENTS(cases[i].words) && cases[i].words[k].value; k++)
        put_word(&fixture, cases[i].words[k].at, cases[i].words[k].value);
    cursor->regs.pc = TEXT + 8;
    cursor->unknown = cases[i].unknown;
    if (cases[i].sp)
        cursor->regs.sp = cases[i].sp;
    if (cases[i].fp)
        cursor->regs.fp = cases[i].fp;
    const UprofCursor before = *cursor;
    g_assert_cmpint(uprof_orc_step(&fixture.context, cursor), ==, cases[i].answer);
    if (cases[i].answer != UPROF_STEP_OK) {
        g_assert_cmpmem(cursor, sizeof(*cursor), &before, sizeof(before));
        return;
    }
    g_assert_cmphex(cursor->regs.pc, ==, cases[i].pc);
    g_assert_cmphex(cursor->regs.sp, ==, cases[i].caller_sp);
    g_assert_cmphex(cursor->regs.fp, ==, cases[i].caller_fp);
    g_assert_cmphex(cursor->unknown, ==, cases[i].caller_unknown);
    g_assert_true(cursor->is_return != cases[i].is_exact);
    g_assert_true(cursor->is_switched == cases[i].is_switched);
}

/* A step by a pt_regs restores all registers from its members. */
static void
test_all_regs(void)
{
    /* the order in a pt_regs: r15 ... rdi, orig_ax, ip, cs, flags, sp */
    static const uint8_t order[] = { 15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5 };
    OrcLine lines[] = { { 0, 0, 0, REGS | BY_SP }, { 0 } };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_orc(&fixture, lines, 2, VERSION);
    put_word(&fixture, S(0x188), KERNEL_CS);
    fixture.cursor.regs.pc = TEXT;
    fixture.cursor.unknown = NOTHING;
    g_assert_cmpint(uprof_orc_step(&fixture.context, &fixture.cursor), ==, UPROF_STEP_OK);
    g_assert_cmphex(fixture.cursor.unknown, ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(order); i++) {
        const UprofRegs *regs = &fixture.cursor.regs;
        const uint64_t value = order[i] == UPROF_X86_RBP ? regs->fp : regs->reg[order[i]];
        g_assert_cmphex(value, ==, W(0x100 + 8 * i));
    }
    g_assert_cmphex(fixture.cursor.regs.flags, ==, W(0x190));
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t pc;
    bool is_return;
    uint8_t word_bytes;
    UprofStep answer;
} positions[] = {
    { "first-byte",      TEXT, false, 8, UPROF_STEP_OK },
    { "last-byte",       TEXT + 15, false, 8, UPROF_STEP_OK },
    { "next-function",   TEXT + 16, false, 8, UPROF_STEP_BASE },
    { "call-at-the-end", TEXT + 16, true, 8, UPROF_STEP_OK },
    { "before",          TEXT - 1, false, 8, UPROF_STEP_PASS },
    { "after",          TEXT + 32, false, 8, UPROF_STEP_PASS },
    { "last-call",       TEXT + 32, true, 8, UPROF_STEP_BASE },
    { "zero",            0, false, 8, UPROF_STEP_PASS },
    { "zero-called",     0, true, 8, UPROF_STEP_PASS },
    { "highest",         UINT64_MAX, false, 8, UPROF_STEP_PASS },
    { "32-bit",          TEXT, false, 4, UPROF_STEP_PASS },
};
/* clang-format on */

static void
test_position(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    OrcLine lines[] = { { 0, 8, 0, CALL | BY_SP }, { 0, 0, 0, END }, { 0 } };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_orc(&fixture, lines, 3, VERSION);
    fixture.cursor.regs.pc = positions[i].pc;
    fixture.cursor.regs.word_bytes = positions[i].word_bytes;
    fixture.cursor.is_return = positions[i].is_return;
    g_assert_cmpint(uprof_orc_step(&fixture.context, &fixture.cursor), ==, positions[i].answer);
}

static void
test_no_table(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    fixture.cursor.regs.pc = TEXT;
    g_assert_cmpint(uprof_orc_step(&fixture.context, &fixture.cursor), ==, UPROF_STEP_PASS);
}

/* ---- Complete stacks ---- */

/* The numbers of the kernel's functions; F(n) is an address amid function n. */
enum { LEAF, SWITCH, FRAMED, INTERRUPT, TO_TASK, ENTRY, ROOT, HOLE, FORK, N_FUNCTIONS };
#define F(n) (TEXT + (n) * (uint64_t)FUNCTION_LEN + 8)

static void
add_kernel(Fixture *fixture)
{
    OrcLine lines[N_FUNCTIONS + 1] = {
        [LEAF] = { 0, 8, 0, CALL | BY_SP },
        [SWITCH] = { 0, 0x20, 0, CALL | BY_SP },
        [FRAMED] = { 0, 0x10, -0x10, CALL | BP_CFA | BY_BP },
        [INTERRUPT] = { 0, 0, 0, REGS | BY_SP },
        [TO_TASK] = { 0, 8, 0, CALL | AT_SP },
        [ENTRY] = { 0, 0, 0, PARTIAL | BY_SP },
        [ROOT] = { 0, 0, 0, END },
        [HOLE] = { 0, 0, 0, UNDEFINED },
        [FORK] = { 0, 0, 0, END },
    };

    add_orc(fixture, lines, G_N_ELEMENTS(lines), VERSION);
    fixture->snapshot->regs = fixture->cursor.regs;
}

static void
assert_stack(const Fixture *fixture, UprofEnd end, const uint64_t *callers, unsigned n)
{
    const UprofStack *stack = fixture->stack;

    g_assert_cmpstr(uprof_end_name(stack->end), ==, uprof_end_name(end));
    g_assert_cmpuint(stack->n, ==, n + 1);
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmphex(stack->frames[i + 1].pc, ==, callers[i]);
        g_assert_cmpint(stack->frames[i + 1].how, ==, UPROF_HOW_ORC);
    }
}

/*
 * The leaf runs on the interrupt stack. TO_TASK leads to the task's stack, where INTERRUPT
 * leads to the interrupted leaf, and that to FRAMED and ROOT.
 */
static void
test_interrupt(void)
{
    const uint64_t callers[] = { F(TO_TASK), F(INTERRUPT), F(LEAF), F(FRAMED), F(ROOT) };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_kernel(&fixture);
    fixture.snapshot->regs.pc = F(LEAF);
    put_word(&fixture, SP, F(TO_TASK));
    put_word(&fixture, SP + 8, LOW + 0x40);
    put_word(&fixture, LOW + 0x40, F(INTERRUPT));
    /* the pt_regs is at LOW + 0x48 */
    put_word(&fixture, LOW + 0x48 + 0x20, LOW + 0x200);
    put_word(&fixture, LOW + 0x48 + 0x80, F(LEAF));
    put_word(&fixture, LOW + 0x48 + 0x88, KERNEL_CS);
    put_word(&fixture, LOW + 0x48 + 0x98, LOW + 0x100);
    put_word(&fixture, LOW + 0x100, F(FRAMED));
    put_word(&fixture, LOW + 0x200, 0);
    put_word(&fixture, LOW + 0x208, F(ROOT));
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, G_N_ELEMENTS(callers));
    g_assert_true(fixture.stack->frames[2].is_return);
    g_assert_false(fixture.stack->frames[3].is_return);
    /* the top of the last stack */
    g_assert_cmphex(fixture.stack->top_sp, ==, LOW + 0x210);

    /* frame pointers alone find no caller */
    fixture.context.method = UPROF_UNWIND_FP;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 1);

    fixture.context.method = UPROF_UNWIND_CFI;
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, G_N_ELEMENTS(callers));
}

/* If the process is unknown, a stack ends where the kernel was entered from user mode. */
static void
test_user(void)
{
    const uint64_t callers[] = { F(ENTRY) };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_kernel(&fixture);
    fixture.snapshot->regs.pc = F(LEAF);
    put_word(&fixture, SP, F(ENTRY));
    put_word(&fixture, SP + 0x10, USER_CS);
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, 1);
    g_assert_cmphex(fixture.stack->top_sp, ==, SP + 8);
    g_assert_cmpuint(fixture.stack->n_kernel, ==, 2);
    g_assert_true(fixture.stack->has_whole_kernel);

    put_word(&fixture, SP, F(HOLE));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_false(fixture.stack->has_whole_kernel);
    const uint64_t hole[] = { F(HOLE) };
    /* an address without a rule is not code either */
    assert_stack(&fixture, UPROF_END_CODE, hole, 0);
}

/* A bad return address does not lead to user space, however low it is. */
static void
test_garbage(void)
{
    const uint64_t words[] = { 0, 1, 0x401000, 0x7ffff7e00000, UINT64_MAX };

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        g_auto(Fixture) fixture;
        init_fixture(&fixture);
        add_kernel(&fixture);
        fixture.snapshot->regs.pc = F(SWITCH);
        put_word(&fixture, SP + 0x18, words[i]);
        uprof_unwind(&fixture.context, fixture.stack);
        assert_stack(&fixture, UPROF_END_CODE, NULL, 0);
        g_assert_cmpuint(fixture.stack->n_kernel, ==, 1);
        g_assert_false(fixture.stack->has_whole_kernel);
    }
}

/* ---- System calls ---- */

/* clang-format off */
#define USER_SP (LINUX_ANONYMOUS + 0x100)
#define USER_PC (LINUX_PROGRAM + 0x1234)
#define SAVED_REGS (LINUX_KERNEL_STACK + 0x4000 - 168)
static const struct {
    const char *name;
    uint64_t sp, rcx, unknown;
    bool is_return, has_process;
    UprofStep answer;
} calls[] = {
    { "begins",         USER_SP, USER_PC, 0, false, true, UPROF_STEP_OK },
    { "rcx-unknown",    USER_SP, USER_PC, BIT(UPROF_X86_RCX), false, true, UPROF_STEP_BASE },
    { "rcx-of-kernel",  USER_SP, TEXT, 0, false, true, UPROF_STEP_BASE },
    { "kernel-stack",   STACK, USER_PC, 0, false, true, UPROF_STEP_BASE },
    { "no-stack",       USER_SP + 0x10000, USER_PC, 0, false, true, UPROF_STEP_BASE },
    { "not-copied",     LINUX_PROGRAM, USER_PC, 0, false, true, UPROF_STEP_PROCESS },
    { "called",         USER_SP, USER_PC, 0, true, true, UPROF_STEP_BASE },
    { "no-process",     USER_SP, USER_PC, 0, false, false, UPROF_STEP_BASE },
};
/* clang-format on */

/* At the start of a system call, the process's stack is still in use, and RCX has the user pc. */
static void
test_system_call(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .no_rules = true });
    OrcLine lines[] = { { 0, 0, 0, END }, { 0, 0, 0, 0 } };

    linux_guest_run(guest, 0, guest->task, true);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    g_assert_true(uprof_space_has_process(view->space));
    add_orc_to(view->sym, lines, G_N_ELEMENTS(lines), VERSION);
    view->snapshot->n_windows = 1;
    view->snapshot->windows[0] = (UprofWindow){ .gva = LINUX_ANONYMOUS, .len = WINDOW_LEN };
    const UprofUnwindContext context = {
        .snapshot = view->snapshot,
        .mem = view->mem,
        .sym = view->sym,
        .space = calls[i].has_process ? view->space : NULL,
        .max_depth = DEPTH,
    };
    UprofCursor cursor = { .regs = { .pc = TEXT + 8, .sp = calls[i].sp, .word_bytes = 8 },
                           .unknown = calls[i].unknown,
                           .is_return = calls[i].is_return };
    cursor.regs.reg[UPROF_X86_RCX] = calls[i].rcx;
    const UprofCursor before = cursor;
    g_assert_cmpint(uprof_orc_step(&context, &cursor), ==, calls[i].answer);
    if (calls[i].answer != UPROF_STEP_OK) {
        g_assert_cmpmem(&cursor, sizeof(cursor), &before, sizeof(before));
        return;
    }
    g_assert_cmphex(cursor.regs.pc, ==, USER_PC);
    g_assert_cmphex(cursor.regs.sp, ==, USER_SP);
    g_assert_cmpint(cursor.regs.privilege, ==, 3);
    /* the processor has overwritten RCX and R11 */
    g_assert_cmphex(cursor.unknown, ==, BIT(UPROF_X86_RCX) | BIT(UPROF_X86_R8 + 3));
    g_assert_true(cursor.is_switched && !cursor.is_return);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t cs;
    uint64_t sp;      /* of the frame, on the kernel's stack */
    unsigned changed; /* register that differs from the saved one; 0: none */
    bool is_return, has_user_stack;
    UprofStep answer;
} returns[] = {
    { "same-registers",  USER_CS, SP, 0, false, true, UPROF_STEP_OK },
    { "another-rdi",     USER_CS, SP, UPROF_X86_RDI, false, true, UPROF_STEP_OK },
    { "another-rbx",     USER_CS, SP, UPROF_X86_RBX, false, true, UPROF_STEP_PROCESS },
    { "another-rbp",     USER_CS, SP, UPROF_X86_RBP, false, true, UPROF_STEP_PROCESS },
    { "kernel-thread",   KERNEL_CS, SP, 0, false, true, UPROF_STEP_BASE },
    { "new-task",        USER_CS, SAVED_REGS, UPROF_X86_RBX, true, true, UPROF_STEP_OK },
    { "not-empty",       USER_CS, SAVED_REGS - 8, 0, true, true, UPROF_STEP_PROCESS },
    { "entry",           USER_CS, SAVED_REGS + 128 - 16, UPROF_X86_RBX, false, true, UPROF_STEP_OK },
    { "frame-not-complete", USER_CS, SAVED_REGS + 136, UPROF_X86_RBX, false, true, UPROF_STEP_PROCESS },
    { "no-user-stack",   USER_CS, SP, 0, false, false, UPROF_STEP_BASE },
};
/* clang-format on */

/* Where the kernel returns to a process, the process has its saved registers. */
static void
test_return_to_process(gconstpointer data)
{
    enum { REGS_LEN = 168, N_SAVED = 15 };
    static const uint8_t saved[N_SAVED] = { 15,
                                            14,
                                            13,
                                            12,
                                            UPROF_X86_RBP,
                                            UPROF_X86_RBX,
                                            11,
                                            10,
                                            9,
                                            8,
                                            UPROF_X86_RAX,
                                            UPROF_X86_RCX,
                                            UPROF_X86_RDX,
                                            UPROF_X86_RSI,
                                            UPROF_X86_RDI };
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .no_rules = true });
    OrcLine lines[] = { { 0, 0, 0, END }, { 0, 0, 0, 0 } };
    const bool is_entry = strcmp(returns[i].name, "entry") == 0;
    uint64_t words[REGS_LEN / 8] = { 0 };

    linux_guest_run(guest, 0, guest->task, true);
    g_autoptr(LinuxView) view = linux_view_new(guest);
    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    add_orc_to(view->sym, lines, G_N_ELEMENTS(lines), VERSION);
    UprofCursor cursor = { .regs = { .pc = TEXT + 8, .sp = returns[i].sp, .word_bytes = 8 },
                           .is_return = returns[i].is_return };
    for (unsigned k = 0; k < N_SAVED; k++) {
        words[k] = 0x100 + k;
        const uint64_t now = words[k] + (returns[i].changed == saved[k] && saved[k] != 0);
        if (saved[k] == UPROF_X86_RBP)
            cursor.regs.fp = now;
        else
            cursor.regs.reg[saved[k]] = now;
    }
    words[16] = USER_PC;
    words[17] = returns[i].cs;
    words[19] = USER_SP;
    view->snapshot->n_windows = returns[i].has_user_stack ? 2 : 1;
    view->snapshot->windows[0] = (UprofWindow){ .gva = SAVED_REGS, .len = REGS_LEN };
    view->snapshot->windows[1] =
        (UprofWindow){ .gva = LINUX_ANONYMOUS, .offset = REGS_LEN, .len = WINDOW_LEN };
    memcpy(view->snapshot->bytes, words, sizeof(words));
    const UprofUnwindContext context = {
        .snapshot = view->snapshot,
        .mem = view->mem,
        .sym = view->sym,
        .space = view->space,
        .max_depth = DEPTH,
    };
    const UprofCursor before = cursor;
    g_assert_cmpint(uprof_orc_step(&context, &cursor), ==, returns[i].answer);
    if (returns[i].answer != UPROF_STEP_OK) {
        g_assert_cmpmem(&cursor, sizeof(cursor), &before, sizeof(before));
        return;
    }
    g_assert_cmphex(cursor.regs.pc, ==, USER_PC);
    g_assert_cmphex(cursor.regs.sp, ==, USER_SP);
    g_assert_cmphex(cursor.regs.fp, ==, 0x104);
    g_assert_cmphex(cursor.regs.reg[UPROF_X86_RBX], ==, is_entry ? 0x106 : 0x105);
    g_assert_cmphex(cursor.regs.reg[UPROF_X86_RDI], ==, 0x10e);
    g_assert_cmpint(cursor.regs.privilege, ==, 3);
    g_assert_cmphex(cursor.unknown, ==, is_entry ? BIT(UPROF_X86_RCX) | BIT(UPROF_X86_R8 + 3) : 0);
    g_assert_true(cursor.is_switched && !cursor.is_return);
}

/* The stack of a process ends at its arguments, even if its first function has no tables. */
static void
test_process_root(void)
{
    enum { ARGUMENTS = 0x20800 }; /* as linux_guest_add_mm() puts them */
    static const uint64_t sps[] = { LINUX_STACK + ARGUMENTS - 16, LINUX_STACK + ARGUMENTS - 32 };
    g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ .no_rules = true });
    g_autoptr(LinuxView) view = linux_view_new(guest);
    g_autofree UprofStack *stack = g_new0(UprofStack, 1);

    linux_view_sample(view, 0);
    linux_view_sample(view, 0);
    const UprofUnwindContext context = {
        .snapshot = view->snapshot,
        .mem = view->mem,
        .sym = view->sym,
        .space = view->space,
        .max_depth = DEPTH,
    };
    for (size_t i = 0; i < G_N_ELEMENTS(sps); i++) {
        view->snapshot->regs.sp = sps[i];
        uprof_unwind(&context, stack);
        g_assert_cmpuint(stack->n, ==, 1);
        g_assert_cmpint(uprof_unwind_is_complete(stack), ==, i == 0);
    }
    /* The kernel's own stack does not lie there. */
    view->snapshot->regs.sp = sps[0];
    view->snapshot->regs.privilege = 0;
    uprof_unwind(&context, stack);
    g_assert_false(uprof_unwind_is_complete(stack));
}

/* A new task returns to the first byte of a function that it has not called. */
static void
test_fork(void)
{
    const uint64_t callers[] = { F(FORK) - 8 };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_kernel(&fixture);
    fixture.snapshot->regs.pc = F(LEAF);
    put_word(&fixture, SP, F(FORK) - 8);
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, 1);
    g_assert_false(fixture.stack->frames[1].is_return);
}

/* Maps the kernel's code with a call of ROOT that ends at F(LEAF), and names ROOT. */
static void
add_call_of_root(Fixture *fixture)
{
    static const char name[] = "root";
    const uint64_t root = F(ROOT) - 8;
    const uint32_t distance = GUINT32_TO_LE((uint32_t)(root - F(LEAF)));
    const UprofSymbol symbol = {
        .start = root, .size = FUNCTION_LEN, .name = { name, strlen(name) }, .code = true
    };
    const UprofSymCode code = { TEXT, TEXT + 0x1000 };
    g_autoptr(GArray) symbols = g_array_new(FALSE, FALSE, sizeof(symbol));
    g_autoptr(GArray) ranges = g_array_new(FALSE, FALSE, sizeof(code));

    g_array_append_val(symbols, symbol);
    g_array_append_val(ranges, code);
    uprof_sym_set_own(fixture->sym, UPROF_SYM_KERNEL, symbols, g_byte_array_new(), ranges);
    memory_guest_put(fixture->guest, F(LEAF) - 5 - TEXT, "\xe8", 1);
    memory_guest_put(fixture->guest, F(LEAF) - 4 - TEXT, &distance, sizeof(distance));

    /* maps gpa 0 at TEXT by a page of 2 MiB */
    UprofRegs *regs = &fixture->cursor.regs;
    memory_guest_put_u64(fixture->guest, 0x3000 + 511 * 8, 0x4000 | 1);
    memory_guest_put_u64(fixture->guest, 0x4000 + 510 * 8, 0x5000 | 1);
    memory_guest_put_u64(fixture->guest, 0x5000 + 8 * 8, 0x81);
    regs->sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    regs->sys[UPROF_X86_CR3] = 0x3000;
    regs->sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
    regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA;
}

/* For code without a rule in the tables, other methods are used. */
static void
test_hole(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_call_of_root(&fixture);
    add_kernel(&fixture);
    memory_guest_put(fixture.guest, F(HOLE) - TEXT, "\xc9\xc3", 2);       /* leave, ret */
    memory_guest_put(fixture.guest, F(FRAMED) - 2 - TEXT, "\xff\xd0", 2); /* call *%rax */
    fixture.snapshot->regs.pc = F(HOLE);
    put_word(&fixture, FP + 8, F(FRAMED));
    put_word(&fixture, FP, FP + 0x20);
    put_word(&fixture, FP + 0x28, F(ROOT));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 3);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_BASE);
    g_assert_cmphex(fixture.stack->frames[1].pc, ==, F(FRAMED));
    g_assert_cmpint(fixture.stack->frames[1].how, ==, UPROF_HOW_FP);
    g_assert_cmpint(fixture.stack->frames[2].how, ==, UPROF_HOW_ORC);
}

/* The tables say that ROOT is the end of a stack, but it was called. */
static void
test_called_end(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_call_of_root(&fixture);
    add_kernel(&fixture);
    memory_guest_put(fixture.guest, F(ROOT) - 8 - TEXT, "\x53\x90\x90\x90\x90\x90\x90", 7);
    put_word(&fixture, SP + 8, F(ROOT));
    fixture.snapshot->regs.pc = F(ROOT) - 8;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 1);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_BASE);

    put_word(&fixture, SP, F(LEAF));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 3);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_BASE);
    g_assert_cmphex(fixture.stack->frames[1].pc, ==, F(LEAF));
    g_assert_cmpint(fixture.stack->frames[1].how, ==, UPROF_HOW_CODE);
    g_assert_cmpint(fixture.stack->frames[2].how, ==, UPROF_HOW_ORC);

    /* ROOT has pushed a word, which is an address in ROOT, too */
    fixture.snapshot->regs.pc = F(ROOT) - 2;
    put_word(&fixture, SP, F(ROOT) - 3);
    put_word(&fixture, SP + 8, F(LEAF));
    put_word(&fixture, SP + 0x10, F(ROOT));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 3);
    g_assert_cmphex(fixture.stack->frames[1].pc, ==, F(LEAF));
    g_assert_cmpint(fixture.stack->frames[2].how, ==, UPROF_HOW_ORC);
}

/* Known errors in the tables of kernels are corrected. */
static void
test_corrections(void)
{
    const uint64_t callers[] = { F(ROOT) };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_kernel(&fixture);
    for (unsigned n = 1; n <= 3; n++) {
        fixture.snapshot->regs.pc = F(SWITCH);
        for (unsigned i = 0; i < n; i++)
            put_word(&fixture, SP + 8 * i, F(SWITCH) - 1 - 2 * i);
        put_word(&fixture, SP + 0x18 + 8 * n, F(ROOT));
        uprof_unwind(&fixture.context, fixture.stack);
        if (n <= 2)
            assert_stack(&fixture, UPROF_END_BASE, callers, 1);
        else
            assert_stack(&fixture, UPROF_END_CODE, callers, 0);
        put_word(&fixture, SP + 0x18 + 8 * n, WORD);
    }
    /* a rule that leads to code is not corrected */
    put_word(&fixture, SP + 0x18, F(ROOT));
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, 1);

    /* the stack pointer points to a complete pt_regs, although the rule says a partial one */
    fixture.snapshot->regs.pc = F(ENTRY);
    put_word(&fixture, SP, WORD);
    put_word(&fixture, SP + 0x80, F(ROOT));
    put_word(&fixture, SP + 0x88, KERNEL_CS);
    put_word(&fixture, SP + 0x98, SP - 0x40);
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, 1);
    put_word(&fixture, SP + 0x88, USER_CS);
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, callers, 0);
    put_word(&fixture, SP + 0x88, WORD);
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_RECORD, callers, 0);

    /* the same in the function that saves the pt_regs */
    const uint64_t entry[] = { F(ENTRY) };
    fixture.snapshot->regs.pc = F(LEAF);
    fixture.snapshot->regs.sp = SP - 8;
    put_word(&fixture, SP - 8, F(ENTRY));
    put_word(&fixture, SP + 0x88, USER_CS);
    uprof_unwind(&fixture.context, fixture.stack);
    assert_stack(&fixture, UPROF_END_BASE, entry, 1);
}

/* A loop between two stacks ends after a limited number of switches. */
static void
test_loop(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_kernel(&fixture);
    fixture.snapshot->regs.pc = F(TO_TASK);
    put_word(&fixture, SP, LOW);
    put_word(&fixture, LOW, F(TO_TASK));
    put_word(&fixture, LOW + 8, SP - 8);
    put_word(&fixture, SP - 8, F(TO_TASK));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_RECORD);
    g_assert_cmpuint(fixture.stack->n, ==, 1 + 2 * UPROF_STACK_SWITCHES_MAX);

    /* a loop at one address, by a pt_regs that leads to itself */
    fixture.snapshot->regs.pc = F(ENTRY);
    put_word(&fixture, SP, F(ENTRY));
    put_word(&fixture, SP + 8, KERNEL_CS);
    put_word(&fixture, SP + 0x18, SP);
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_RECORD);
    g_assert_cmpuint(fixture.stack->n, ==, 1 + UPROF_STACK_SWITCHES_MAX);

    /* LEAF that returns to itself, without a switch of stacks */
    fixture.snapshot->regs.pc = F(LEAF);
    fixture.snapshot->regs.sp = LOW + 0x3f8;
    put_word(&fixture, LOW + 0x3f8, F(LEAF));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_WINDOW);
}

/* Random rules, stacks and registers: unwinding ends. */
static void
test_random(void)
{
    enum { ROUNDS = IS_SANITIZED ? 4000 : 20000, LINES = 64 };
    unsigned n_ends[UPROF_N_ENDS] = { 0 };

    for (unsigned round = 0; round < ROUNDS; round += 200) {
        OrcLine lines[LINES];
        g_auto(Fixture) fixture;
        init_fixture(&fixture);
        for (unsigned i = 0; i < LINES; i++)
            lines[i] = (OrcLine){ 0, (int16_t)(g_test_rand_int_range(-2, 12) * 8),
                                  (int16_t)(g_test_rand_int_range(-4, 4) * 8),
                                  (uint16_t)g_test_rand_int() };
        add_orc(&fixture, lines, LINES, UPROF_ORC_4_14 + round / 200 % 5);
        for (unsigned i = 0; i < 200; i++) {
            UprofRegs *regs = &fixture.snapshot->regs;
            for (unsigned at = 0; at < WINDOW_LEN; at += 8) {
                const uint64_t any =
                    (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
                const uint64_t values[] = { any, any % (LINES * FUNCTION_LEN) + TEXT,
                                            any % WINDOW_LEN / 8 * 8 + STACK,
                                            any % WINDOW_LEN / 8 * 8 + LOW, KERNEL_CS };
                put_word(&fixture, STACK + at, values[g_test_rand_int_range(0, 5)]);
                put_word(&fixture, LOW + at, values[g_test_rand_int_range(0, 5)]);
            }
            *regs = fixture.cursor.regs;
            regs->pc = TEXT + (unsigned)g_test_rand_int_range(0, LINES * FUNCTION_LEN);
            uprof_unwind(&fixture.context, fixture.stack);
            g_assert_cmpuint(fixture.stack->n, >=, 1);
            g_assert_cmpuint(fixture.stack->n, <=, DEPTH);
            n_ends[fixture.stack->end]++;
        }
    }
    g_assert_cmpuint(n_ends[UPROF_END_BASE], >, 0);
    g_assert_cmpuint(n_ends[UPROF_END_WINDOW], >, 0);
    g_assert_cmpuint(n_ends[UPROF_END_RECORD], >, 0);
    g_assert_cmpuint(n_ends[UPROF_END_CODE], >, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/orc-step/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(positions); i++) {
        g_autofree char *path = g_strdup_printf("/orc-step/position/%s", positions[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_position);
    }
    g_test_add_func("/orc-step/all-regs", test_all_regs);
    g_test_add_func("/orc-step/no-table", test_no_table);
    g_test_add_func("/orc-step/interrupt", test_interrupt);
    g_test_add_func("/orc-step/user", test_user);
    g_test_add_func("/orc-step/garbage", test_garbage);
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *path = g_strdup_printf("/orc-step/system-call/%s", calls[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_system_call);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(returns); i++) {
        g_autofree char *path = g_strdup_printf("/orc-step/return/%s", returns[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_return_to_process);
    }
    g_test_add_func("/orc-step/fork", test_fork);
    g_test_add_func("/orc-step/process-root", test_process_root);
    g_test_add_func("/orc-step/hole", test_hole);
    g_test_add_func("/orc-step/called-end", test_called_end);
    g_test_add_func("/orc-step/corrections", test_corrections);
    g_test_add_func("/orc-step/loop", test_loop);
    g_test_add_func("/orc-step/random", test_random);
    return g_test_run();
}
