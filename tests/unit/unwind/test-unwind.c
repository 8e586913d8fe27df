/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <unistd.h>

#include "../../../src/unwind/fp-step-priv.h"
#include "memory-guest.h"
#include "symbol-elf.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

/*
 * A guest without paging. From CODE on, each 16 bytes end in a call, so that CODE + 16 x n + 16
 * is a return address. The window is at STACK.
 */
enum {
    RAM_LEN = 0x40000,
    CODE = 0x1000,
    CODE_LEN = 0x1000,
    STACK = 0x10000,
    WINDOW_LEN = 0x4000,
    RECORDS_MAX = 8,
};

typedef struct {
    MemoryGuest *guest;
    UprofMem *mem;
    UprofNames *names;
    UprofSym *sym;
    UprofSnapshot *snapshot;
    UprofStack *stack;
    UprofUnwindContext context;
} Fixture;

static void
init_fixture(Fixture *fixture)
{
    static const uint8_t call[] = { 0xe8, 1, 2, 3, 4 };
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };

    fixture->guest = memory_guest_open(&plan);
    memset(fixture->guest->ram + CODE, 0x90, CODE_LEN);
    for (unsigned at = 16; at <= CODE_LEN; at += 16)
        memcpy(fixture->guest->ram + CODE + at - sizeof(call), call, sizeof(call));
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->stack = g_new0(UprofStack, 1);
    fixture->context = (UprofUnwindContext){
        .snapshot = fixture->snapshot,
        .mem = fixture->mem,
        .sym = fixture->sym,
        .method = UPROF_UNWIND_FP,
        .max_depth = DEPTH,
    };
    fixture->snapshot->n_windows = 1;
    fixture->snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_LEN };
    fixture->snapshot->regs =
        (UprofRegs){ .pc = CODE + 3, .sp = STACK, .fp = STACK, .word_bytes = 8 };
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

static void
put_record(Fixture *fixture, uint64_t at, uint64_t fp, uint64_t pc)
{
    const unsigned word = fixture->snapshot->regs.word_bytes;
    const uint64_t values[] = { GUINT64_TO_LE(fp), GUINT64_TO_LE(pc) };

    g_assert(at >= STACK && at + 2 * word <= STACK + WINDOW_LEN);
    for (unsigned i = 0; i < 2; i++)
        memcpy(fixture->snapshot->bytes + (at - STACK) + i * word, &values[i], word);
}

static uint64_t
return_address(unsigned i)
{
    return CODE + 16 * (i + 1);
}

#define S(offset) (STACK + (offset))
#define R(i) (CODE + 16 * ((i) + 1))

/* clang-format off */
static const struct {
    const char *name;
    unsigned word_bytes; /* 0: 8 */
    uint64_t sp, fp;
    struct {
        uint64_t at; /* 0: end of the list */
        uint64_t fp, pc;
    } records[RECORDS_MAX];
    unsigned max_depth; /* 0: default */
    unsigned n;
    UprofEnd end;
} chains[] = {
    { "no-frame-pointer",   0, S(0), 0,       { { 0 } }, 0, 1, UPROF_END_NO_RULE },
    { "one-caller",         0, S(0), S(0x10), { { S(0x10), 0, R(0) } }, 0, 2, UPROF_END_BASE },
    { "three-callers",      0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) }, { S(0x40), S(0x80), R(1) }, { S(0x80), 0, R(2) } }, 0, 4, UPROF_END_BASE },
    { "frame-at-sp",        0, S(0), S(0),    { { S(0), 0, R(0) } }, 0, 2, UPROF_END_BASE },
    { "zero-return",        0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) }, { S(0x40), S(0x80), 0 } }, 0, 2, UPROF_END_BASE },
    { "zero-record",        0, S(0), S(0x10), { { S(0x10), 0, 0 } }, 0, 1, UPROF_END_NO_RULE },
    { "32-bit-chain",       4, S(0), S(0x10), { { S(0x10), S(0x18), R(0) }, { S(0x18), S(0x2c), R(1) }, { S(0x2c), 0, R(2) } }, 0, 4, UPROF_END_BASE },
    { "16-bit",             2, S(0), S(0x10), { { 0 } }, 0, 1, UPROF_END_NO_RULE },
    { "self-pointing",      0, S(0), S(0x10), { { S(0x10), S(0x10), R(0) } }, 0, 2, UPROF_END_RECORD },
    { "cycle",              0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) }, { S(0x40), S(0x10), R(1) } }, 0, 3, UPROF_END_RECORD },
    { "falling",            0, S(0x100), S(0x100), { { S(0x100), S(0x80), R(0) }, { S(0x80), 0, R(1) } }, 0, 2, UPROF_END_RECORD },
    { "below-sp",           0, S(0x100), S(0x80), { { S(0x80), 0, R(1) } }, 0, 1, UPROF_END_RECORD },
    { "overlapping",        0, S(0), S(0x10), { { S(0x10), S(0x18), R(0) } }, 0, 2, UPROF_END_RECORD },
    { "misaligned",         0, S(0), S(0x14), { { 0 } }, 0, 1, UPROF_END_RECORD },
    { "misaligned-32-bit",  4, S(0), S(0x12), { { 0 } }, 0, 1, UPROF_END_RECORD },
    { "aligned-32-bit",     4, S(0), S(0x14), { { S(0x14), 0, R(0) } }, 0, 2, UPROF_END_BASE },
    { "wild",               0, S(0), UINT64_C(0xdeadbeefdeadbee8), { { 0 } }, 0, 1, UPROF_END_RECORD },
    { "highest",            0, UINT64_MAX - 0x100, UINT64_MAX - 7, { { 0 } }, 0, 1, UPROF_END_WINDOW },
    { "after-the-window",  0, S(0), S(WINDOW_LEN), { { 0 } }, 0, 1, UPROF_END_WINDOW },
    { "cut-in-the-record",  0, S(0), S(WINDOW_LEN - 8), { { 0 } }, 0, 1, UPROF_END_WINDOW },
    { "last-in-the-window", 0, S(0), S(WINDOW_LEN - 16), { { S(WINDOW_LEN - 16), 0, R(0) } }, 0, 2, UPROF_END_BASE },
    { "caller-is-cut",      0, S(0), S(0x10), { { S(0x10), S(WINDOW_LEN + 64), R(0) } }, 0, 2, UPROF_END_WINDOW },
    { "too-far",            0, S(0), S(0x10008), { { 0 } }, 0, 1, UPROF_END_RECORD },
    { "return-to-no-call",  0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) + 1 } }, 0, 1, UPROF_END_CODE },
    { "return-to-data",     0, S(0), S(0x10), { { S(0x10), S(0x40), 0x30000 } }, 0, 1, UPROF_END_CODE },
    { "return-to-nowhere",  0, S(0), S(0x10), { { S(0x10), S(0x40), 0x80000000 } }, 0, 1, UPROF_END_CODE },
    { "return-to-1",        0, S(0), S(0x10), { { S(0x10), S(0x40), 1 } }, 0, 1, UPROF_END_CODE },
    { "depth-just-enough",  0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) }, { S(0x40), 0, R(1) } }, 3, 3, UPROF_END_BASE },
    { "depth",              0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) }, { S(0x40), 0, R(1) } }, 2, 2, UPROF_END_DEPTH },
    { "depth-1",            0, S(0), S(0x10), { { S(0x10), S(0x40), R(0) }, { S(0x40), 0, R(1) } }, 1, 1, UPROF_END_DEPTH },
};

/* Bytes before a return address, which may be a call */
static const struct {
    const char *name;
    uint8_t bytes[7]; /* up to the address */
    bool is_call;
} calls[] = {
    { "relative",           { 0x90, 0x90, 0xe8, 1, 2, 3, 4 }, true },
    { "relative-shifted",   { 0x90, 0x90, 0x90, 0xe8, 1, 2, 3 }, false },
    { "register",           { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 }, true },
    { "register-r8",        { 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd0 }, true },
    { "memory",             { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x13 }, true },
    { "memory-disp8",       { 0x90, 0x90, 0x90, 0x90, 0xff, 0x53, 8 }, true },
    { "memory-disp32",      { 0x90, 0xff, 0x93, 1, 2, 3, 4 }, true },
    { "memory-rip",         { 0x90, 0xff, 0x15, 1, 2, 3, 4 }, true },
    { "memory-sib-disp32",  { 0xff, 0x94, 0xd3, 1, 2, 3, 4 }, true },
    { "jump",               { 0x90, 0x90, 0xe9, 1, 2, 3, 4 }, false },
    { "jump-register",      { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0 }, false },
    { "push-memory",        { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x33 }, false },
    { "nothing",            { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, false },
};

/* Bytes before the program counter, which show whether the vCPU may be idle */
static const struct {
    const char *name;
    uint8_t bytes[3];
    uint8_t privilege;
    uint64_t pc; /* 0: CODE + 0x100 */
    bool idle;
} idles[] = {
    { "hlt",          { 0x90, 0xfb, 0xf4 }, 0, 0, true },
    { "mwait",        { 0x0f, 0x01, 0xc9 }, 0, 0, true },
    { "monitor",      { 0x0f, 0x01, 0xc8 }, 0, 0, false },
    { "pause",        { 0x90, 0xf3, 0x90 }, 0, 0, false },
    { "hlt-before",   { 0x90, 0xf4, 0x90 }, 0, 0, false },
    { "user",         { 0x90, 0xfb, 0xf4 }, 3, 0, false },
    { "no-memory",    { 0 },                0, 0x80000000, false },
    { "at-zero",      { 0 },                0, UINT64_MAX, false }, /* stands for pc 0 */
};
/* clang-format on */

static void
test_chain(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    fixture.snapshot->regs.word_bytes = chains[i].word_bytes ? chains[i].word_bytes : 8;
    fixture.snapshot->regs.sp = chains[i].sp;
    fixture.snapshot->regs.fp = chains[i].fp;
    for (unsigned j = 0; j < RECORDS_MAX && chains[i].records[j].at; j++)
        put_record(&fixture, chains[i].records[j].at, chains[i].records[j].fp,
                   chains[i].records[j].pc);
    if (chains[i].max_depth)
        fixture.context.max_depth = chains[i].max_depth;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpstr(uprof_end_name(fixture.stack->end), ==, uprof_end_name(chains[i].end));
    g_assert_cmpuint(fixture.stack->n, ==, chains[i].n);
    g_assert_cmpint(uprof_unwind_is_complete(fixture.stack), ==, chains[i].end == UPROF_END_BASE);
    g_assert_cmphex(fixture.stack->frames[0].pc, ==, CODE + 3);
    g_assert_false(fixture.stack->frames[0].is_return);
    g_assert_cmpint(fixture.stack->frames[0].how, ==, UPROF_HOW_PC);
    for (unsigned j = 1; j < fixture.stack->n; j++) {
        g_assert_cmphex(fixture.stack->frames[j].pc, ==, return_address(j - 1));
        g_assert_true(fixture.stack->frames[j].is_return);
        g_assert_cmpint(fixture.stack->frames[j].how, ==, UPROF_HOW_FP);
    }
}

static void
test_call(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const uint64_t pc = 0x3000;
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    memory_guest_put(fixture.guest, pc - sizeof(calls[i].bytes), calls[i].bytes,
                     sizeof(calls[i].bytes));
    fixture.snapshot->regs.fp = STACK + 0x10;
    put_record(&fixture, STACK + 0x10, 0, pc);
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, calls[i].is_call ? 2 : 1);
    g_assert_cmpint(fixture.stack->end, ==, calls[i].is_call ? UPROF_END_BASE : UPROF_END_CODE);
}

/* A call in a page that first is executable, and then is not. */
static void
test_call_not_executable(void)
{
    g_auto(Fixture) fixture;
    UprofRegs *regs;

    init_fixture(&fixture);
    fixture.snapshot->regs.fp = STACK + 0x10;
    put_record(&fixture, STACK + 0x10, 0, return_address(0));
    regs = &fixture.snapshot->regs;
    regs->sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
    regs->sys[UPROF_X86_CR3] = 0x30000;
    regs->sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
    regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA | UPROF_X86_EFER_NXE;
    memory_guest_put_u64(fixture.guest, 0x30000, 0x31000 | 1);
    memory_guest_put_u64(fixture.guest, 0x31000, 0x81); /* 1 GiB at 0 */
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 2);

    memory_guest_put_u64(fixture.guest, 0x31000, 0x81 | UINT64_C(1) << 63);
    uprof_mem_forget(fixture.mem);
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 1);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_CODE);
}

static void
test_idle(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;
    UprofRegs *regs;

    init_fixture(&fixture);
    regs = &fixture.snapshot->regs;
    regs->privilege = idles[i].privilege;
    regs->pc = idles[i].pc ? idles[i].pc : CODE + 0x100;
    if (idles[i].pc == UINT64_MAX)
        regs->pc = 0;
    if (!idles[i].pc)
        memory_guest_put(fixture.guest, regs->pc - 3, idles[i].bytes, 3);
    g_assert_cmpint(uprof_unwind_is_idle(&fixture.context), ==, idles[i].idle);
}

/* HLT is the first readable byte; the bytes before it have no memory. */
static void
test_idle_at_start_of_memory(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    fixture.guest->hole = 0x2000;
    fixture.guest->hole_end = 0x3000;
    fixture.guest->ram[0x3000] = 0xf4;
    fixture.snapshot->regs.pc = 0x3001;
    g_assert_true(uprof_unwind_is_idle(&fixture.context));
    fixture.snapshot->regs.pc = 0x3002;
    g_assert_false(uprof_unwind_is_idle(&fixture.context));
}

static void
test_entry(void)
{
    static const ElfSymbol symbols[] = { { "start", CODE, 0x40, true },
                                         { "work", CODE + 0x40, 0x40, true } };
    static uint8_t text[CODE_LEN];
    const ElfPlan plan = { .entry = CODE + 4,
                           .text_gva = CODE,
                           .text = text,
                           .text_len = sizeof(text),
                           .symbols = symbols,
                           .n_symbols = G_N_ELEMENTS(symbols) };
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    close(g_file_open_tmp("uprof-test-XXXXXX", &path, &error));
    g_assert_no_error(error);
    symbol_elf_write(&plan, path);
    g_assert_true(uprof_sym_add_file(fixture.sym, path, true, &error));
    unlink(path);

    /* a return address in a known image needs no call before it, and the entry needs no caller */
    fixture.snapshot->regs.pc = CODE + 0x48;
    fixture.snapshot->regs.fp = STACK + 0x10;
    put_record(&fixture, STACK + 0x10, UINT64_C(0xdeadbeefdeadbee8), CODE + 8);
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 2);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_BASE);

    /* a return address at the end of a function belongs to the call in it */
    put_record(&fixture, STACK + 0x10, UINT64_C(0xdeadbeefdeadbee8), CODE + 0x40);
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_BASE);

    put_record(&fixture, STACK + 0x10, UINT64_C(0xdeadbeefdeadbee8), CODE + 0x44);
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 2);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_RECORD);

    /* at max_depth, the rest of the stack is unknown */
    put_record(&fixture, STACK + 0x10, STACK + 0x40, CODE + 0x48);
    put_record(&fixture, STACK + 0x40, 0, CODE + 8);
    fixture.context.max_depth = 2;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_DEPTH);
}

/*
 * An image with unwind tables and functions of 64 bytes from CODE on. FIRST saves RBX; its CFA
 * is relative to the stack pointer. The CFA of BY_RBX is relative to RBX. ROOT is the root, and
 * BARE has no table, but a frame record. TRAP, at the end of BARE, is the entry of a trap, of 16
 * bytes.
 */
#define CIE "\x14\0\0\0\0\0\0\0\1zR\0\1\x78\x10\1\3\x0c\7\x08\x90\1\0\0"
#define TRAP_CIE "\x13\0\0\0\0\0\0\0\1zRS\0\1\x78\x10\1\3\x0c\7\x08\x90\1"
#define FDE(back, start, len) "\x11\0\0\0" back "\0\0\0" start "\x10\0\0" len "\0\0\0\0"
static const uint8_t tables[] = CIE FDE("\x1c", "\x00", "\x40") "\x0e\x10\x83\x02" FDE(
    "\x31", "\x40",
    "\x40") "\x0c\x03\x10\0" FDE("\x46", "\x80",
                                 "\x40") "\x07\x10\0\0" TRAP_CIE FDE("\x1b", "\xf0",
                                                                     "\x10") "\0\0\0\0";
enum {
    FIRST = CODE,
    BY_RBX = CODE + 0x40,
    ROOT = CODE + 0x80,
    BARE = CODE + 0xc0,
    TRAP = CODE + 0xf0
};

/* clang-format off */
static const struct {
    const char *name;
    UprofUnwindMethod method;
    uint64_t pc, fp;
    uint64_t words[8]; /* of the stack, from STACK on */
    UprofEnd end;
    unsigned n;
    struct {
        uint64_t pc;
        UprofHow how;
        bool is_exact;
    } callers[3];
} tables_cases[] = {
    { "tables",        UPROF_UNWIND_AUTO, FIRST + 0x10, 0, { S(0x10), BY_RBX + 0x10, 0, ROOT + 0x10 }, UPROF_END_BASE, 3,
      { { BY_RBX + 0x10, UPROF_HOW_CFI, false }, { ROOT + 0x10, UPROF_HOW_CFI, false } } },
    { "tables-only",   UPROF_UNWIND_CFI, FIRST + 0x10, 0, { S(0x10), BY_RBX + 0x10, 0, ROOT + 0x10 }, UPROF_END_BASE, 3,
      { { BY_RBX + 0x10, UPROF_HOW_CFI, false }, { ROOT + 0x10, UPROF_HOW_CFI, false } } },
    { "fp-only",       UPROF_UNWIND_FP, FIRST + 0x10, S(0x10), { S(0x10), BY_RBX + 0x10, 0, ROOT + 0x10 }, UPROF_END_BASE, 2,
      { { ROOT + 0x10, UPROF_HOW_FP, false } } },
    { "hole",          UPROF_UNWIND_AUTO, FIRST + 0x10, S(0x18), { 0, BARE + 0x10, 0, 0, ROOT + 0x10 }, UPROF_END_BASE, 3,
      { { BARE + 0x10, UPROF_HOW_CFI, false }, { ROOT + 0x10, UPROF_HOW_FP, false } } },
    { "hole-tables-only", UPROF_UNWIND_CFI, FIRST + 0x10, S(0x18), { 0, BARE + 0x10, 0, 0, ROOT + 0x10 }, UPROF_END_NO_RULE, 2,
      { { BARE + 0x10, UPROF_HOW_CFI, false } } },
    { "rbx-is-saved",  UPROF_UNWIND_AUTO, BARE + 0x10, S(0x00), { 0, FIRST + 0x10, S(0x20), BY_RBX + 0x10, 0, ROOT + 0x10 }, UPROF_END_BASE, 4,
      { { FIRST + 0x10, UPROF_HOW_FP, false }, { BY_RBX + 0x10, UPROF_HOW_CFI, false }, { ROOT + 0x10, UPROF_HOW_CFI, false } } },
    { "trap",          UPROF_UNWIND_AUTO, TRAP + 8, 0, { ROOT }, UPROF_END_BASE, 2,
      { { ROOT, UPROF_HOW_CFI, true } } },
    { "trap-and-leaf", UPROF_UNWIND_AUTO, TRAP + 8, S(0x20), { BARE, ROOT + 0x10 }, UPROF_END_BASE, 3,
      { { BARE, UPROF_HOW_CFI, true }, { ROOT + 0x10, UPROF_HOW_CODE, false } } },
    { "trap-nowhere",  UPROF_UNWIND_AUTO, TRAP + 8, 0, { 0x80000000 }, UPROF_END_CODE, 1, { { 0 } } },
    { "no-code",       UPROF_UNWIND_AUTO, FIRST + 0x10, 0, { 0, 0x3000 }, UPROF_END_CODE, 1, { { 0 } } },
    { "cut",           UPROF_UNWIND_AUTO, FIRST + 0x10, 0, { S(WINDOW_LEN), BY_RBX + 0x10 }, UPROF_END_WINDOW, 2,
      { { BY_RBX + 0x10, UPROF_HOW_CFI, false } } },
    { "falling",       UPROF_UNWIND_AUTO, FIRST + 0x10, 0, { S(0) - 0x10, BY_RBX + 0x10 }, UPROF_END_WINDOW, 2,
      { { BY_RBX + 0x10, UPROF_HOW_CFI, false } } },
    { "standing",      UPROF_UNWIND_AUTO, FIRST + 0x10, 0, { S(0), BY_RBX + 0x10 }, UPROF_END_RECORD, 2,
      { { BY_RBX + 0x10, UPROF_HOW_CFI, false } } },
};
/* clang-format on */

static void
add_tables(Fixture *fixture)
{
    static const ElfSymbol symbols[] = {
        { "first", FIRST, 0x40, true }, { "by_rbx", BY_RBX, 0x40, true },
        { "root", ROOT, 0x40, true },   { "bare", BARE, 0x30, true },
        { "trap", TRAP, 0x10, true },
    };
    static const uint8_t text[0x100];
    const ElfPlan plan = { .text_gva = CODE,
                           .text = text,
                           .text_len = sizeof(text),
                           .eh_frame_gva = 0x8000,
                           .eh_frame = tables,
                           .eh_frame_len = sizeof(tables) - 1,
                           .symbols = symbols,
                           .n_symbols = G_N_ELEMENTS(symbols) };
    static const uint8_t push_mov[] = { 0x55, 0x48, 0x89, 0xe5 }, leave_ret[] = { 0xc9, 0xc3 };
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;

    memory_guest_put(fixture->guest, BARE, push_mov, sizeof(push_mov));
    memory_guest_put(fixture->guest, BARE + 0x20, leave_ret, sizeof(leave_ret));
    close(g_file_open_tmp("uprof-test-XXXXXX", &path, &error));
    g_assert_no_error(error);
    symbol_elf_write(&plan, path);
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_assert_no_error(error);
    unlink(path);
}

static void
test_tables(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    add_tables(&fixture);
    fixture.context.method = tables_cases[i].method;
    fixture.snapshot->regs.pc = tables_cases[i].pc;
    fixture.snapshot->regs.fp = tables_cases[i].fp;
    for (unsigned j = 0; j < G_N_ELEMENTS(tables_cases[i].words); j++) {
        const uint64_t word = GUINT64_TO_LE(tables_cases[i].words[j]);
        memcpy(fixture.snapshot->bytes + j * sizeof(word), &word, sizeof(word));
    }
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpstr(uprof_end_name(fixture.stack->end), ==, uprof_end_name(tables_cases[i].end));
    g_assert_cmpuint(fixture.stack->n, ==, tables_cases[i].n);
    for (unsigned j = 1; j < fixture.stack->n; j++) {
        const UprofFrame *frame = &fixture.stack->frames[j];
        g_assert_cmphex(frame->pc, ==, tables_cases[i].callers[j - 1].pc);
        g_assert_cmpint(frame->how, ==, tables_cases[i].callers[j - 1].how);
        g_assert_true(frame->is_return != tables_cases[i].callers[j - 1].is_exact);
    }
}

/* Random stacks and registers: unwinding keeps its limits, and the stack pointer only rises. */
static void
test_random(void)
{
    enum { ROUNDS = 3000 };
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    for (unsigned round = 0; round < ROUNDS; round++) {
        UprofRegs *regs = &fixture.snapshot->regs;
        const unsigned word = round % 3 == 0 ? 4 : 8;
        *regs = (UprofRegs){ .word_bytes = word, .pc = g_test_rand_int() };
        regs->sp = STACK + (unsigned)g_test_rand_int_range(0, 256) * word;
        regs->fp = regs->sp + (unsigned)g_test_rand_int_range(0, 64) * word;
        /* most words look like addresses of stack and code, so that stacks get deep */
        for (unsigned at = 0; at < WINDOW_LEN; at += word) {
            uint64_t value = (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
            const int kind = g_test_rand_int_range(0, 40);
            if (kind < 19)
                value = STACK + at + (value & 0xff) / word * word;
            else if (kind < 38)
                value = CODE + (value & 0xff) * 16 % CODE_LEN + 16;
            memcpy(fixture.snapshot->bytes + at, &value, word);
        }
        fixture.context.max_depth = (unsigned)g_test_rand_int_range(1, UPROF_DEPTH_MAX + 1);
        fixture.context.method = round % 2 ? UPROF_UNWIND_FP : UPROF_UNWIND_AUTO;
        uprof_mem_begin_sample(fixture.mem, round, 0);
        memset(fixture.stack, 0xff, sizeof(*fixture.stack));
        uprof_unwind(&fixture.context, fixture.stack);
        g_assert_cmpuint(fixture.stack->n, >=, 1);
        g_assert_cmpuint(fixture.stack->n, <=, fixture.context.max_depth);
        g_assert_cmpint(fixture.stack->end, <, UPROF_N_ENDS);

        /* the same steps one by one */
        UprofCursor cursor = { .regs = *regs };
        for (unsigned i = 1; i < fixture.stack->n; i++) {
            const uint64_t sp = cursor.regs.sp;
            g_assert_cmpint(uprof_fp_step(&fixture.context, &cursor), ==, UPROF_STEP_OK);
            g_assert_cmphex(cursor.regs.pc, ==, fixture.stack->frames[i].pc);
            g_assert_cmphex(cursor.regs.sp, >, sp);
        }
    }
}

/* The deepest stack. */
static void
test_deepest(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    for (unsigned at = 0; at + 16 <= WINDOW_LEN; at += 16)
        put_record(&fixture, STACK + at, STACK + at + 16, return_address(at / 16 % 200));
    fixture.context.max_depth = UPROF_DEPTH_MAX;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, UPROF_DEPTH_MAX);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_DEPTH);
}

static void
test_step_leaves_untouched(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture);
    UprofCursor cursor = { .regs = fixture.snapshot->regs };
    cursor.regs.fp = STACK + 3;
    const UprofCursor before = cursor;
    g_assert_cmpint(uprof_fp_step(&fixture.context, &cursor), ==, UPROF_STEP_LOST);
    g_assert_cmpmem(&cursor, sizeof(cursor), &before, sizeof(before));
}

static void
test_methods(void)
{
    g_assert_cmpint(uprof_unwind_method("auto"), ==, UPROF_UNWIND_AUTO);
    g_assert_cmpint(uprof_unwind_method("cfi"), ==, UPROF_UNWIND_CFI);
    g_assert_cmpint(uprof_unwind_method("fp"), ==, UPROF_UNWIND_FP);
    /* captures may have other names */
    g_assert_cmpint(uprof_unwind_method("other"), ==, UPROF_UNWIND_AUTO);
    g_assert_cmpint(uprof_unwind_method(NULL), ==, UPROF_UNWIND_AUTO);
}

static void
test_end_names(void)
{
    for (int i = 0; i < UPROF_N_ENDS; i++)
        g_assert_nonnull(uprof_end_name((UprofEnd)i));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(chains); i++) {
        g_autofree char *path = g_strdup_printf("/unwind/chain/%s", chains[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_chain);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(calls); i++) {
        g_autofree char *path = g_strdup_printf("/unwind/call/%s", calls[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_call);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(idles); i++) {
        g_autofree char *path = g_strdup_printf("/unwind/idle/%s", idles[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_idle);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(tables_cases); i++) {
        g_autofree char *path = g_strdup_printf("/unwind/tables/%s", tables_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_tables);
    }
    g_test_add_func("/unwind/call/not-executable", test_call_not_executable);
    g_test_add_func("/unwind/idle/at-start-of-memory", test_idle_at_start_of_memory);
    g_test_add_func("/unwind/entry", test_entry);
    g_test_add_func("/unwind/random", test_random);
    g_test_add_func("/unwind/deepest", test_deepest);
    g_test_add_func("/unwind/step-leaves-untouched", test_step_leaves_untouched);
    g_test_add_func("/unwind/methods", test_methods);
    g_test_add_func("/unwind/end-names", test_end_names);
    return g_test_run();
}
