/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "memory-guest.h"
#include "symbol-elf.h"
#include "uprof/unwind.h"

/*
 * A guest without page tables. Its functions lie at CODE, each FUNCTION_BYTES after the other. The
 * window is at STACK.
 */
enum {
    RAM_LEN = 0x40000,
    CODE = 0x1000,
    FUNCTION_BYTES = 0x100,
    STACK = 0x10000,
    WINDOW_BYTES = 0x4000,
    START_SP = STACK + 0x2000, /* when the function under test begins */
    CALLER_FP = START_SP + 0x40,
    KEPT = 0x1919, /* the caller's x19 */
    WRONG = 0x7777770,
    INSNS_MAX = 14,
};

#define RETURN_TO (CODE + FUNCTION_BYTES + 4 * 4) /* behind the call in the first caller */

/* The state before an instruction runs. */
typedef struct {
    uint32_t insn;
    int32_t sp;     /* bytes below the stack pointer at the start */
    bool has_lr;    /* x30 is the return address */
    bool has_fp;    /* x29 is the caller's */
    bool has_x19;   /* x19 is the caller's */
    int32_t own_fp; /* if !has_fp: bytes of x29 below the stack pointer at the start */
} Step;

/* Where the function saves registers: bytes below the stack pointer at the start; 0: nowhere */
typedef struct {
    const char *name;
    int32_t fp_slot, lr_slot, x19_slot;
    Step steps[INSNS_MAX];
} Case;

#define IN_REGS true, true, true, 0
/* clang-format off */
static const Case cases[] = {
    { "leaf", 0, 0, 0, {
        { 0x91000400, 0, IN_REGS },                     /* add x0, x0, #1 */
        { 0xd65f03c0, 0, IN_REGS } } },                 /* ret */
    { "leaf-with-locals", 0, 0, 0, {
        { 0xd10083ff, 0, IN_REGS },                     /* sub sp, sp, #32 */
        { 0xf90007e0, 32, IN_REGS },                    /* str x0, [sp, #8] */
        { 0x910083ff, 32, IN_REGS },                    /* add sp, sp, #32 */
        { 0xd65f03c0, 0, IN_REGS } } },
    { "record", 32, 24, 16, {
        { 0xa9be7bfd, 0, IN_REGS },                     /* stp x29, x30, [sp, #-32]! */
        { 0x910003fd, 32, true, true, true, 0 },        /* mov x29, sp */
        { 0xf9000bf3, 32, true, false, true, 32 },      /* str x19, [sp, #16] */
        { 0x91000400, 32, false, false, false, 32 },
        { 0xf9400bf3, 32, false, false, false, 32 },    /* ldr x19, [sp, #16] */
        { 0xa8c27bfd, 32, false, false, true, 32 },     /* ldp x29, x30, [sp], #32 */
        { 0xd65f03c0, 0, IN_REGS } } },
    { "signed", 16, 8, 0, {
        { 0xd503233f, 0, IN_REGS },                     /* paciasp */
        { 0xa9bf7bfd, 0, IN_REGS },                     /* stp x29, x30, [sp, #-16]! */
        { 0x910003fd, 16, true, true, true, 0 },
        { 0x91000400, 16, false, false, true, 16 },
        { 0xa8c17bfd, 16, false, false, true, 16 },     /* ldp x29, x30, [sp], #16 */
        { 0xd65f0bff, 0, IN_REGS } } },                 /* retaa */
    { "two-exits", 16, 8, 0, {
        { 0xa9bf7bfd, 0, IN_REGS },
        { 0x910003fd, 16, true, true, true, 0 },
        { 0xb4000060, 16, false, false, true, 16 },     /* cbz x0, +12 */
        { 0xa8c17bfd, 16, false, false, true, 16 },
        { 0xd65f03c0, 0, IN_REGS },
        { 0x91000400, 16, false, false, true, 16 },
        { 0xa8c17bfd, 16, false, false, true, 16 },
        { 0xd65f03c0, 0, IN_REGS } } },
    { "record-later", 16, 8, 0, {
        { 0xb4000040, 0, IN_REGS },                     /* cbz x0, +8 */
        { 0xd65f03c0, 0, IN_REGS },
        { 0xa9bf7bfd, 0, IN_REGS },
        { 0x910003fd, 16, true, true, true, 0 },
        { 0x91000400, 16, false, false, true, 16 } } },
    { "any-stack-pointer", 16, 8, 0, {
        { 0xa9bf7bfd, 0, IN_REGS },
        { 0x910003fd, 16, true, true, true, 0 },
        { 0xcb2063ff, 16, false, false, true, 16 },     /* sub sp, sp, x0 */
        { 0x91000400, 0x230, false, false, true, 16 },
        { 0x910003bf, 0x230, false, false, true, 16 },  /* mov sp, x29 */
        { 0xa8c17bfd, 16, false, false, true, 16 },
        { 0xd65f03c0, 0, IN_REGS } } },
    { "large-frame", 0x1000, 0xff8, 0, {
        { 0xd14007ff, 0, IN_REGS },                     /* sub sp, sp, #1, lsl #12 */
        { 0xa9007bfd, 0x1000, IN_REGS },                /* stp x29, x30, [sp] */
        { 0x910003fd, 0x1000, true, true, true, 0 },
        { 0x91000400, 0x1000, false, false, true, 0x1000 },
        { 0xa9407bfd, 0x1000, false, false, true, 0x1000 }, /* ldp x29, x30, [sp] */
        { 0x914007ff, 0x1000, IN_REGS },                /* add sp, sp, #1, lsl #12 */
        { 0xd65f03c0, 0, IN_REGS } } },
    { "record-in-mid-frame", 16, 8, 0, {
        { 0xd10083ff, 0, IN_REGS },
        { 0xa9017bfd, 32, IN_REGS },                    /* stp x29, x30, [sp, #16] */
        { 0x910043fd, 32, true, true, true, 0 },        /* add x29, sp, #16 */
        { 0x91000400, 32, false, false, true, 16 },
        { 0xa9417bfd, 32, false, false, true, 16 },     /* ldp x29, x30, [sp, #16] */
        { 0x910083ff, 32, IN_REGS },
        { 0xd65f03c0, 0, IN_REGS } } },
    { "no-record", 0, 16, 0, {
        { 0xf81f0ffe, 0, IN_REGS },                     /* str x30, [sp, #-16]! */
        { 0x91000400, 16, false, true, true, 0 },
        { 0xf84107fe, 16, false, true, true, 0 },       /* ldr x30, [sp], #16 */
        { 0xd65f03c0, 0, IN_REGS } } },
    { "vectors-first", 80, 72, 0, {
        { 0x6dbc27e8, 0, IN_REGS },                     /* stp d8, d9, [sp, #-64]! */
        { 0xa9bf7bfd, 64, IN_REGS },
        { 0x910003fd, 80, true, true, true, 0 },
        { 0x91000400, 80, false, false, true, 80 },
        { 0xa8c17bfd, 80, false, false, true, 80 },
        { 0x6cc427e8, 64, IN_REGS },                    /* ldp d8, d9, [sp], #64 */
        { 0xd65f03c0, 0, IN_REGS } } },
    { "other-loads", 32, 24, 16, {
        { 0xa9be7bfd, 0, IN_REGS },
        { 0x910003fd, 32, true, true, true, 0 },
        { 0xf9000bf3, 32, true, false, true, 32 },
        { 0xf9400013, 32, false, false, false, 32 },    /* ldr x19, [x0] */
        { 0xf940003e, 32, false, false, false, 32 },    /* ldr x30, [x1] */
        { 0x14000001, 32, false, false, false, 32 },    /* b +4 */
        { 0x91000400, 32, false, false, false, 32 },
        { 0xf9400bf3, 32, false, false, false, 32 },
        { 0xa8c27bfd, 32, false, false, true, 32 },
        { 0xd65f03c0, 0, IN_REGS } } },
    { "aligned-locals", 16, 8, 0, {
        { 0xa9bf7bfd, 0, IN_REGS },
        { 0x910003fd, 16, true, true, true, 0 },
        { 0xd10083e9, 16, false, false, true, 16 },     /* sub x9, sp, #32 */
        { 0x927be93f, 16, false, false, true, 16 },     /* and sp, x9, #0xffffffffffffffe0 */
        { 0x91000400, 0x60, false, false, true, 16 },
        { 0x910003bf, 0x60, false, false, true, 16 },   /* mov sp, x29 */
        { 0xa8c17bfd, 16, false, false, true, 16 },
        { 0xd65f03c0, 0, IN_REGS } } },
    { "ends-in-a-call", 16, 8, 0, {
        { 0xa9bf7bfd, 0, IN_REGS },
        { 0x910003fd, 16, true, true, true, 0 },
        { 0xa8c17bfd, 16, false, false, true, 16 },
        { 0x14000100, 0, IN_REGS } } },                 /* b another function */
};
/* clang-format on */

/* stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]; bl; ldr; ldp; ret */
static const uint32_t caller[] = { 0xa9be7bfd, 0x910003fd, 0xf9000bf3, 0x94000000,
                                   0xf9400bf3, 0xa8c27bfd, 0xd65f03c0 };
/* mov x29, xzr; bl; wfi */
static const uint32_t root[] = { 0xaa1f03fd, 0x94000000, 0xd503207f };

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
put_word(UprofSnapshot *snapshot, uint64_t at, uint64_t value)
{
    const uint64_t word = GUINT64_TO_LE(value);

    g_assert(at >= STACK && at + sizeof(word) <= STACK + WINDOW_BYTES);
    memcpy(snapshot->bytes + (at - STACK), &word, sizeof(word));
}

static void
put_code(uint8_t *code, unsigned function, const uint32_t *insns, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const uint32_t insn = GUINT32_TO_LE(insns[i]);
        memcpy(code + function * FUNCTION_BYTES + i * sizeof(insn), &insn, sizeof(insn));
    }
}

/* A call of function 0 by function 1, which function 2 calls. */
static void
init_fixture(Fixture *fixture, const uint32_t *insns, unsigned n)
{
    static const ElfSymbol symbols[] = {
        { "tested", CODE, FUNCTION_BYTES, true, false },
        { "caller", CODE + FUNCTION_BYTES, FUNCTION_BYTES, true, false },
        { "root", CODE + 2 * FUNCTION_BYTES, FUNCTION_BYTES, true, false }
    };
    const MemoryPlan plan = {
        .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN, .arch = "aarch64"
    };
    uint8_t code[3 * FUNCTION_BYTES] = { 0 };
    const ElfPlan elf = { .machine = 183,
                          .text_gva = CODE,
                          .text = code,
                          .text_len = sizeof(code),
                          .symbols = symbols,
                          .n_symbols = G_N_ELEMENTS(symbols) };
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;

    put_code(code, 0, insns, n);
    put_code(code, 1, caller, G_N_ELEMENTS(caller));
    put_code(code, 2, root, G_N_ELEMENTS(root));
    fixture->guest = memory_guest_open(&plan);
    memory_guest_put(fixture->guest, CODE, code, sizeof(code));
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    close(g_file_open_tmp("uprof-test-XXXXXX", &path, &error));
    g_assert_no_error(error);
    symbol_elf_write(&elf, path);
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_unlink(path);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->stack = g_new0(UprofStack, 1);
    fixture->context = (UprofUnwindContext){ .snapshot = fixture->snapshot,
                                             .mem = fixture->mem,
                                             .sym = fixture->sym,
                                             .method = UPROF_UNWIND_AUTO,
                                             .max_depth = 16 };
    fixture->snapshot->n_windows = 1;
    fixture->snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_BYTES };
    /* the caller's frame: its record, and the x19 of the root */
    put_word(fixture->snapshot, START_SP, 0);
    put_word(fixture->snapshot, START_SP + 8, CODE + 2 * FUNCTION_BYTES + 8);
    put_word(fixture->snapshot, START_SP + 16, KEPT + 1);
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
put_slot(Fixture *fixture, int32_t slot, uint64_t value)
{
    if (slot != 0)
        put_word(fixture->snapshot, (uint64_t)(START_SP - slot), value);
}

/* Three frames: the function, its caller, and the root */
static void
must_be_whole(Fixture *fixture)
{
    uprof_unwind(&fixture->context, fixture->stack);
    g_assert_cmpstr(uprof_end_name(fixture->stack->end), ==, uprof_end_name(UPROF_END_BASE));
    g_assert_cmpuint(fixture->stack->n, ==, 3);
    g_assert_cmphex(fixture->stack->frames[1].pc, ==, RETURN_TO);
    g_assert_cmphex(fixture->stack->frames[1].sp, ==, START_SP);
    g_assert_cmphex(fixture->stack->frames[2].pc, ==, CODE + 2 * FUNCTION_BYTES + 8);
}

/* The caller is found at each instruction of the function. */
static void
test_case(gconstpointer data)
{
    const Case *tested = data;
    uint32_t insns[INSNS_MAX];
    unsigned n = 0;

    for (; n < INSNS_MAX && tested->steps[n].insn != 0; n++)
        insns[n] = tested->steps[n].insn;
    for (unsigned i = 0; i < n; i++) {
        const Step *step = &tested->steps[i];
        g_auto(Fixture) fixture;
        init_fixture(&fixture, insns, n);
        UprofRegs *regs = &fixture.snapshot->regs;
        put_slot(&fixture, tested->fp_slot, START_SP);
        put_slot(&fixture, tested->lr_slot, RETURN_TO);
        put_slot(&fixture, tested->x19_slot, KEPT);
        *regs = (UprofRegs){ .pc = CODE + i * sizeof(insns[0]),
                             .sp = (uint64_t)(START_SP - step->sp),
                             .fp = (uint64_t)(step->has_fp ? START_SP : START_SP - step->own_fp),
                             .word_bytes = 8 };
        regs->reg[UPROF_ARM_LR] = step->has_lr ? RETURN_TO : WRONG;
        regs->reg[19] = step->has_x19 ? KEPT : WRONG;
        must_be_whole(&fixture);
    }
}

/* A signature is removed, from a register and from the stack. */
static void
test_signature(void)
{
    static const uint32_t insns[] = { 0xd503233f, 0xa9bf7bfd, 0x910003fd, 0x91000400 };
    const uint64_t signature = UINT64_C(0x68) << 48;
    g_auto(Fixture) fixture;

    init_fixture(&fixture, insns, G_N_ELEMENTS(insns));
    UprofRegs *regs = &fixture.snapshot->regs;
    *regs = (UprofRegs){ .pc = CODE + 4, .sp = START_SP, .fp = START_SP, .word_bytes = 8 };
    regs->reg[UPROF_ARM_LR] = RETURN_TO | signature;
    must_be_whole(&fixture);
    put_word(fixture.snapshot, START_SP - 16, START_SP);
    put_word(fixture.snapshot, START_SP - 8, RETURN_TO | signature);
    *regs =
        (UprofRegs){ .pc = CODE + 12, .sp = START_SP - 16, .fp = START_SP - 16, .word_bytes = 8 };
    must_be_whole(&fixture);
}

/* clang-format off */
static const struct {
    const char *name;
    uint64_t fp, lr;
    uint32_t insns[3]; /* the pc is at the last one */
    unsigned n;
    UprofEnd end;
} hostile[] = {
    { "return-to-itself", START_SP, CODE + 8, { 0x94000000, 0xd503201f, 0xd503201f }, 3, UPROF_END_BASE },
    { "return-to-nothing", START_SP, UINT64_C(0xdeadbeef0000), { 0xd503201f, 0xd503201f, 0xd503201f }, 1, UPROF_END_CODE },
    { "return-to-zero",   START_SP, 0, { 0xd503201f, 0xd503201f, 0xd503201f }, 1, UPROF_END_BASE },
    { "frame-elsewhere",  UINT64_C(0xffff000000000000), WRONG, { 0x910003fd, 0xcb2063ff, 0xd503201f }, 1, UPROF_END_RECORD },
    { "moves-up",         0, RETURN_TO, { 0x914007ff, 0xd503201f, 0xd503201f }, 1, UPROF_END_NO_RULE },
};
/* clang-format on */

static void
test_hostile(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture, hostile[i].insns, 3);
    UprofRegs *regs = &fixture.snapshot->regs;
    *regs = (UprofRegs){ .pc = CODE + 8, .sp = START_SP, .fp = hostile[i].fp, .word_bytes = 8 };
    regs->reg[UPROF_ARM_LR] = hostile[i].lr;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, <=, 16);
    g_test_message("%u frames, %s", fixture.stack->n, uprof_end_name(fixture.stack->end));
    g_assert_cmpuint(fixture.stack->n, ==, hostile[i].n);
    g_assert_cmpstr(uprof_end_name(fixture.stack->end), ==, uprof_end_name(hostile[i].end));
}

/*
 * A Linux kernel, whose code is mapped in the upper half by one entry of its page tables. Each
 * function has FUNCTION_BYTES. The interrupted function is a leaf.
 */
enum {
    ENTRY_EL1, /* mov x0, sp; bl el1h_64_irq_handler */
    HANDLER,   /* as "caller" */
    ENTRY_EL0,
    LEAF,
    KERNEL_CALLER,
    N_KERNEL = KERNEL_CALLER + 1,
    VECTORS = 0x800,
    KERNEL_BYTES = 0x1000,
    TABLE = 0x30000,
    SAVED_REGS = STACK + 0x1000, /* struct pt_regs */
    EL1H = 5,
};

#define KERNEL UINT64_C(0xffffff8000000000)
#define AT(function, offset) (KERNEL + CODE + (uint64_t)(function)*FUNCTION_BYTES + (offset))

/* Puts an entry, whose second instruction calls the handler. */
static void
put_entry(uint8_t *code, unsigned function, const uint32_t *insns, size_t n)
{
    const int words = ((int)HANDLER - (int)function) * FUNCTION_BYTES / 4 - 1;
    const uint32_t call = GUINT32_TO_LE(0x94000000 | ((uint32_t)words & 0x03ffffff));

    put_code(code, function, insns, n);
    memcpy(code + function * FUNCTION_BYTES + sizeof(call), &call, sizeof(call));
}

static void
init_kernel(Fixture *fixture)
{
    static const char *const names[N_KERNEL] = { "el1h_64_irq", "el1h_64_irq_handler",
                                                 "el0t_64_sync", "interrupted", "its_caller" };
    static const uint32_t entry[] = { 0x910003e0, 0, 0x14000000 };
    static const uint32_t leaf[] = { 0x91000400, 0xd65f03c0 };
    ElfSymbol symbols[N_KERNEL + 1];
    uint8_t code[KERNEL_BYTES] = { 0 };
    const ElfPlan elf = { .machine = 183,
                          .text_gva = KERNEL + CODE,
                          .text = code,
                          .text_len = sizeof(code),
                          .symbols = symbols,
                          .n_symbols = G_N_ELEMENTS(symbols) };
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < N_KERNEL; i++)
        symbols[i] = (ElfSymbol){ names[i], AT(i, 0), FUNCTION_BYTES, true, false };
    symbols[N_KERNEL] =
        (ElfSymbol){ "vectors", KERNEL + CODE + VECTORS, KERNEL_BYTES - VECTORS, true, false };
    init_fixture(fixture, leaf, G_N_ELEMENTS(leaf));
    put_entry(code, ENTRY_EL1, entry, G_N_ELEMENTS(entry));
    put_entry(code, ENTRY_EL0, entry, G_N_ELEMENTS(entry));
    put_code(code, HANDLER, caller, G_N_ELEMENTS(caller));
    put_code(code, KERNEL_CALLER, caller, G_N_ELEMENTS(caller));
    put_code(code, LEAF, leaf, G_N_ELEMENTS(leaf));
    memory_guest_put(fixture->guest, CODE, code, sizeof(code));
    memory_guest_put_u64(fixture->guest, TABLE, 1 | 1 << 10); /* the first GiB, for code */
    close(g_file_open_tmp("uprof-test-XXXXXX", &path, &error));
    g_assert_no_error(error);
    symbol_elf_write(&elf, path);
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_unlink(path);
}

/* @pc: of the handler's caller; @pstate, @pc_saved: in struct pt_regs. The vCPU is in the handler.
 */
static void
interrupt_kernel(Fixture *fixture, uint64_t entry_pc, uint64_t pstate)
{
    UprofRegs *regs = &fixture->snapshot->regs;
    const uint64_t sp = SAVED_REGS - 32;

    *regs = (UprofRegs){ .pc = AT(HANDLER, 12), .sp = sp, .fp = sp, .word_bytes = 8 };
    regs->sys[UPROF_ARM_SCTLR] = UPROF_ARM_SCTLR_M;
    regs->sys[UPROF_ARM_TCR] = UINT64_C(25) << 16 | UINT64_C(2) << 30 | 1 << 7;
    regs->sys[UPROF_ARM_TTBR1] = TABLE;
    put_word(fixture->snapshot, sp, SAVED_REGS + 304); /* the entry's x29 */
    put_word(fixture->snapshot, sp + 8, entry_pc);
    put_word(fixture->snapshot, SAVED_REGS + 29 * 8, START_SP);
    put_word(fixture->snapshot, SAVED_REGS + 30 * 8, AT(KERNEL_CALLER, 16));
    put_word(fixture->snapshot, SAVED_REGS + 31 * 8, START_SP);
    put_word(fixture->snapshot, SAVED_REGS + 32 * 8, AT(LEAF, 0));
    put_word(fixture->snapshot, SAVED_REGS + 33 * 8, pstate);
    put_word(fixture->snapshot, SAVED_REGS + 304, 0);
    put_word(fixture->snapshot, SAVED_REGS + 312, 0);
    put_word(fixture->snapshot, START_SP, 0); /* the caller's record, which is the last one */
    put_word(fixture->snapshot, START_SP + 8, 0);
}

static void
must_end(Fixture *fixture, unsigned n, UprofEnd end)
{
    uprof_unwind(&fixture->context, fixture->stack);
    g_assert_cmpstr(uprof_end_name(fixture->stack->end), ==, uprof_end_name(end));
    g_assert_cmpuint(fixture->stack->n, ==, n);
}

static void
test_interrupted_kernel(void)
{
    g_auto(Fixture) fixture;

    init_kernel(&fixture);
    interrupt_kernel(&fixture, AT(ENTRY_EL1, 8), EL1H);
    must_end(&fixture, 4, UPROF_END_BASE);
    const UprofFrame *frames = fixture.stack->frames;
    g_assert_cmphex(frames[1].pc, ==, AT(ENTRY_EL1, 8));
    /* the caller of the leaf is in its x30 only */
    g_assert_cmphex(frames[2].pc, ==, AT(LEAF, 0));
    g_assert_false(frames[2].is_return);
    g_assert_cmphex(frames[3].pc, ==, AT(KERNEL_CALLER, 16));
    /* the same if the stack pointer is not known: the handler has been found by a frame record */
    fixture.context.method = UPROF_UNWIND_FP;
    memory_guest_put_u64(fixture.guest, CODE + HANDLER * FUNCTION_BYTES, 0);
    must_end(&fixture, 4, UPROF_END_BASE);
    g_assert_cmphex(fixture.stack->frames[2].pc, ==, AT(LEAF, 0));
}

static void
test_interrupted_process(void)
{
    g_auto(Fixture) fixture;

    init_kernel(&fixture);
    interrupt_kernel(&fixture, AT(ENTRY_EL0, 8), 0);
    must_end(&fixture, 2, UPROF_END_BASE);
    g_assert_true(fixture.stack->has_whole_kernel);
}

static void
test_vectors(void)
{
    enum { FROM_EL1 = 0x280, FROM_EL0 = 0x480 };
    g_auto(Fixture) fixture;

    init_kernel(&fixture);
    interrupt_kernel(&fixture, AT(ENTRY_EL1, 8), EL1H);
    fixture.snapshot->regs.pc = KERNEL + CODE + VECTORS + FROM_EL0;
    must_end(&fixture, 1, UPROF_END_BASE);
    /* what ran before is known by its frame record only */
    fixture.snapshot->regs.pc = KERNEL + CODE + VECTORS + FROM_EL1;
    must_end(&fixture, 4, UPROF_END_BASE);
    g_assert_cmphex(fixture.stack->frames[1].pc, ==, AT(ENTRY_EL1, 8));
}

/* The code of an entry calls another function before it has saved all registers. */
static void
test_unfinished_entry(void)
{
    g_auto(Fixture) fixture;

    init_kernel(&fixture);
    interrupt_kernel(&fixture, AT(ENTRY_EL1, 4), EL1H);
    fixture.snapshot->regs.pc = AT(ENTRY_EL1, 4);
    fixture.snapshot->regs.sp = SAVED_REGS;
    fixture.snapshot->regs.fp = 0;
    must_end(&fixture, 1, UPROF_END_NO_RULE);
    interrupt_kernel(&fixture, AT(ENTRY_EL0, 4), 0);
    must_end(&fixture, 2, UPROF_END_BASE);
}

static void
test_saved_regs_not_copied(void)
{
    g_auto(Fixture) fixture;

    init_kernel(&fixture);
    interrupt_kernel(&fixture, AT(ENTRY_EL1, 8), EL1H);
    fixture.snapshot->windows[0].len = SAVED_REGS - STACK + 64;
    must_end(&fixture, 2, UPROF_END_WINDOW);
}

static void
test_idle(void)
{
    static const uint32_t wfi[] = { 0xd503201f, 0xd503207f, 0xd503201f };
    static const bool is_idle[] = { false, true, true };
    g_auto(Fixture) fixture;

    init_fixture(&fixture, wfi, G_N_ELEMENTS(wfi));
    for (unsigned i = 0; i < G_N_ELEMENTS(wfi); i++) {
        fixture.snapshot->regs = (UprofRegs){ .pc = CODE + 4 * i, .word_bytes = 8 };
        g_assert_true(uprof_unwind_is_idle(&fixture.context) == is_idle[i]);
        fixture.snapshot->regs.privilege = 3;
        g_assert_false(uprof_unwind_is_idle(&fixture.context));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/code-step-aarch64/%s", cases[i].name);
        g_test_add_data_func(path, &cases[i], test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_autofree char *path = g_strdup_printf("/code-step-aarch64/hostile/%s", hostile[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_hostile);
    }
    g_test_add_func("/code-step-aarch64/signature", test_signature);
    g_test_add_func("/code-step-aarch64/idle", test_idle);
    g_test_add_func("/code-step-aarch64/interrupted-kernel", test_interrupted_kernel);
    g_test_add_func("/code-step-aarch64/interrupted-process", test_interrupted_process);
    g_test_add_func("/code-step-aarch64/vectors", test_vectors);
    g_test_add_func("/code-step-aarch64/saved-regs-not-copied", test_saved_regs_not_copied);
    g_test_add_func("/code-step-aarch64/unfinished-entry", test_unfinished_entry);
    return g_test_run();
}
