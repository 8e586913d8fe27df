/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Hand-made code is unwound without symbols and without tables.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "../../../src/mem/mem-priv.h"
#include "../../../src/unwind/code-cache-priv.h"
#include "../../../src/unwind/unwind-context-priv.h"
#include "linux-guest.h"
#include "memory-guest.h"
#include "symbol-elf.h"
#include "uprof/space.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

/*
 * A guest without paging. ROOT has called CALLER, and CALLER the function at CODE. Nothing else is
 * code: the rest is filled with INT3, as compilers fill space.
 */
enum {
    RAM_LEN = 0x400000,
    CODE = 0x1000,
    CALLER = 0x3000,
    ROOT = 0x3800,
    TEXT_END = 0x4000,
    STACK = 0x10000,
    WINDOW_LEN = 0x1000,
    SIGNAL_FRAME = 0x200,
    STUB = CODE + 0x100, /* an interrupt's, which calls CODE */
    STUB_RETURN = STUB + 6,
    INTERRUPTED = CODE + 0x200,
    ENTRY = CODE + 0x300, /* calls CODE */
    INT3 = 0xcc,
    /* where CALLER and ROOT go on */
    CALLER_RETURN = CALLER + 9,
    CALLER_RETURN_32 = CALLER + 8,
    ROOT_RETURN = ROOT + 5,
};

#define SECOND_NS UINT64_C(1000000000)

typedef struct {
    MemoryGuest *guest;
    UprofMem *mem;
    UprofNames *names;
    UprofSym *sym;
    UprofUnwindCache *cache;
    UprofSnapshot *snapshot;
    UprofStack *stack;
    UprofUnwindContext context;
} Fixture;

static void
put_code(Fixture *fixture, uint64_t at, const char *code, size_t len)
{
    memory_guest_put(fixture->guest, at, code, len);
}

#define PUT(fixture, at, text) put_code(fixture, at, text, sizeof(text) - 1)

/* Puts a direct call of @target at @at. */
static void
put_call(Fixture *fixture, uint64_t at, uint64_t target)
{
    PUT(fixture, at, "\xe8");
    memory_guest_put_u32(fixture->guest, at + 1, (uint32_t)(target - (at + 5)));
}

static void
put_callers(Fixture *fixture, unsigned word_bytes)
{
    memset(fixture->guest->ram + CALLER, INT3, TEXT_END - CALLER);
    if (word_bytes == 8) {
        PUT(fixture, CALLER, "\x48\x83\xec\x08");            /* sub $8,%rsp */
        PUT(fixture, CALLER_RETURN, "\x48\x83\xc4\x08\xc3"); /* add $8,%rsp; ret */
        put_call(fixture, CALLER_RETURN - 5, CODE);
    } else {
        PUT(fixture, CALLER, "\x83\xec\x04");
        PUT(fixture, CALLER_RETURN_32, "\x83\xc4\x04\xc3");
        put_call(fixture, CALLER_RETURN_32 - 5, CODE);
    }
    put_call(fixture, ROOT, CALLER);
    PUT(fixture, ROOT_RETURN, "\xf4");
}

static void
init_fixture(Fixture *fixture, unsigned word_bytes)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };

    *fixture = (Fixture){ .guest = memory_guest_open(&plan) };
    memset(fixture->guest->ram + 0x400, INT3, TEXT_END - 0x400);
    put_callers(fixture, word_bytes);
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    fixture->cache = uprof_unwind_cache_new();
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->stack = g_new0(UprofStack, 1);
    fixture->context = (UprofUnwindContext){ .snapshot = fixture->snapshot,
                                             .mem = fixture->mem,
                                             .sym = fixture->sym,
                                             .cache = fixture->cache,
                                             .max_depth = DEPTH };
    fixture->snapshot->n_windows = 1;
    fixture->snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_LEN };
    fixture->snapshot->regs = (UprofRegs){
        .pc = CODE, .sp = STACK, .fp = 0x1234, .word_bytes = (uint8_t)word_bytes, .privilege = 3
    };
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_unwind_cache_free(fixture->cache);
    uprof_mem_free(fixture->mem);
    uprof_sym_free(fixture->sym);
    uprof_names_free(fixture->names);
    memory_guest_close(fixture->guest);
    g_free(fixture->snapshot);
    g_free(fixture->stack);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

static void
put_word(Fixture *fixture, unsigned n, uint64_t value)
{
    const unsigned word = fixture->snapshot->regs.word_bytes;
    const uint64_t bytes = GUINT64_TO_LE(value);

    memcpy(fixture->snapshot->bytes + (size_t)n * word, &bytes, word);
}

/* @n: words of the function's own frame, up to the return address */
static void
put_stack(Fixture *fixture, unsigned n)
{
    const bool is_wide = fixture->snapshot->regs.word_bytes == 8;

    for (unsigned i = 0; i < n; i++)
        put_word(fixture, i, 0x123450 + i);
    put_word(fixture, n, is_wide ? CALLER_RETURN : CALLER_RETURN_32);
    put_word(fixture, n + 1, 0x77777);
    put_word(fixture, n + 2, ROOT_RETURN);
}

static void
unwind_at(Fixture *fixture, uint64_t pc)
{
    fixture->snapshot->regs.pc = pc;
    uprof_mem_begin_sample(fixture->mem, fixture->snapshot->time_ns, fixture->snapshot->reset);
    uprof_unwind(&fixture->context, fixture->stack);
}

static void
assert_callers(const Fixture *fixture)
{
    const UprofStack *stack = fixture->stack;

    g_assert_cmpstr(uprof_end_name(stack->end), ==, uprof_end_name(UPROF_END_BASE));
    g_assert_cmpuint(stack->n, ==, 3);
    g_assert_cmphex(stack->frames[1].pc, ==,
                    fixture->snapshot->regs.word_bytes == 8 ? CALLER_RETURN : CALLER_RETURN_32);
    g_assert_cmphex(stack->frames[2].pc, ==, ROOT_RETURN);
}

#define PUSH "\x55"
#define MOV "\x48\x89\xe5"
#define NOPS "\x90\x90\x90\x90"
#define LOOP "\xeb\xfe"

/* clang-format off */
static const struct {
    const char *name;
    const char *code;
    size_t len;
    unsigned at;         /* offset of the program counter */
    unsigned word_bytes;
    unsigned n_words;    /* of the frame, below the return address */
    int fp;              /* number of the word to which the frame pointer points; -1: elsewhere */
} cases[] = {
#define CODE_OF(text) text, sizeof(text) - 1
    { "leaf",             CODE_OF(NOPS "\xc3"), 2, 8, 0, -1 },
    { "before-push",      CODE_OF(PUSH MOV NOPS "\xc9\xc3"), 0, 8, 0, -1 },
    { "before-mov",       CODE_OF(PUSH MOV NOPS "\xc9\xc3"), 1, 8, 1, -1 },
    { "record",           CODE_OF(PUSH MOV NOPS "\xc9\xc3"), 5, 8, 1, 0 },
    { "record-and-more",  CODE_OF(PUSH MOV "\x48\x83\xec\x20" NOPS "\xc9\xc3"), 9, 8, 5, 4 },
    { "after-leave",      CODE_OF(PUSH MOV NOPS "\xc9\xc3"), 9, 8, 0, -1 },
    { "pops",             CODE_OF("\x53\x41\x54" NOPS "\x41\x5c\x5b\xc3"), 4, 8, 2, -1 },
    { "frame",            CODE_OF("\x48\x83\xec\x28" NOPS "\x48\x83\xc4\x28\xc3"), 5, 8, 5, -1 },
    { "rep-ret",          CODE_OF(NOPS "\xf3\xc3"), 1, 8, 0, -1 },
    { "jump-over",        CODE_OF("\x53\xeb\x02\x0f\x0b\x5b\xc3"), 1, 8, 1, -1 },
    { "branch-that-ends", CODE_OF("\x53\x74\x02\x5b\xc3\x0f\x0b"), 1, 8, 1, -1 },
    { "stub",             CODE_OF("\xff\x25\0\1\0\0"), 0, 8, 0, -1 },
    { "tail-call",        CODE_OF("\x53" NOPS "\x5b\xff\xe0"), 2, 8, 1, -1 },
    { "moved-return",     CODE_OF("\x53\x5b\x59\x48\x8d\x64\x24\x10\x51\xc3"), 2, 8, 0, -1 },
    { "loop",             CODE_OF("\x53\x48\x83\xec\x18" LOOP), 5, 8, 4, -1 },
    { "loop-and-record",  CODE_OF(PUSH MOV "\x48\x83\xec\x18" LOOP), 8, 8, 4, 3 },
    { "rounded",          CODE_OF(PUSH MOV "\x48\x83\xe4\xe0" LOOP), 8, 8, 3, 2 },
    { "final-call",       CODE_OF("\x48\x83\xec\x08\xe8\0\1\0\0\xcc"), 4, 8, 1, -1 },
    /* the way from the start ends at a jump; the stack there, and at the next jump, decides */
    { "table",            CODE_OF("\x53\x48\x83\xec\x10\xff\x24\xc5\0\0\0\0" LOOP), 12, 8, 3, -1 },
    { "table-and-push",   CODE_OF("\x53\xff\xe0\x6a\1\x6a\2\x90\x58\x58\xff\xe0"), 7, 8, 3, -1 },
    { "32-bit-leaf",      CODE_OF(NOPS "\xc3"), 2, 4, 0, -1 },
    { "32-bit-record",    CODE_OF(PUSH "\x89\xe5" NOPS "\xc9\xc3"), 4, 4, 1, 0 },
    { "32-bit-frame",     CODE_OF("\x83\xec\x10" NOPS "\x83\xc4\x10\xc3"), 4, 4, 4, -1 },
    { "32-bit-own-address", CODE_OF("\x53\xe8\0\0\0\0\x5b" NOPS "\x5b\xc3"), 6, 4, 2, -1 },
    { "32-bit-loop",      CODE_OF("\x56\x57\x83\xec\x08" LOOP), 5, 4, 4, -1 },
#undef CODE_OF
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture, cases[i].word_bytes);
    put_code(&fixture, CODE, cases[i].code, cases[i].len);
    put_stack(&fixture, cases[i].n_words);
    if (cases[i].fp >= 0)
        fixture.snapshot->regs.fp = STACK + (unsigned)cases[i].fp * cases[i].word_bytes;
    /* the second time by the rule that was found the first time */
    for (unsigned round = 0; round < 2; round++) {
        unwind_at(&fixture, CODE + cases[i].at);
        assert_callers(&fixture);
    }
}

/* The first function of .text never returns. It lies behind an entry of a procedure linkage table,
 * with zeros between the sections. */
static void
test_section_gap(void)
{
    static const char before[] = "\xff\x25\0\1\0\0\x66\x90\0\0\0\0\0\0\0";
    const uint64_t start = CODE + 2 * sizeof(before); /* in mid-page */
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    put_code(&fixture, start - sizeof(before), before, sizeof(before));
    PUT(&fixture, start, "\x53\x48\x83\xec\x18" LOOP);
    PUT(&fixture, CALLER_RETURN - 5,
        NOPS "\x90"); /* no direct call tells where the function begins */
    PUT(&fixture, CALLER_RETURN - 2, "\xff\xd0");
    put_stack(&fixture, 4);
    unwind_at(&fixture, start + 5);
    assert_callers(&fixture);
}

/* Where a thread or a processor ends, the stack does. */
static void
test_roots(void)
{
    static const struct {
        const char *code;
        size_t len;
        unsigned word_bytes;
        uint8_t privilege;
        bool is_root;
    } roots[] = {
#define CODE_OF(text) text, sizeof(text) - 1
        { CODE_OF("\xf4"), 8, 3, true },
        { CODE_OF("\x89\xc7\xb8\x3c\0\0\0\x0f\x05"), 8, 3, true }, /* exit() */
        { CODE_OF("\xb8\xe7\0\0\0\x0f\x05"), 8, 3, true },         /* exit_group() */
        { CODE_OF("\xb8\x01\0\0\0\x0f\x05"), 8, 3, false },        /* write() */
        { CODE_OF("\xb8\x01\0\0\0\xcd\x80"), 4, 3, true },         /* exit() */
        { CODE_OF("\xf4"), 8, 0, true },
        { CODE_OF("\xfa\xf4"), 8, 0, true },
        { CODE_OF("\xfb\xf4"), 8, 0, false }, /* a kernel waits */
        { CODE_OF("\xb8\x3c\0\0\0\x0f\x05"), 8, 0, false },
        { CODE_OF("\x90\x90\x90\x90\x0f\x0b"), 8, 3, false },
#undef CODE_OF
    };

    for (size_t i = 0; i < G_N_ELEMENTS(roots); i++) {
        g_auto(Fixture) fixture;

        init_fixture(&fixture, roots[i].word_bytes);
        fixture.snapshot->regs.privilege = roots[i].privilege;
        PUT(&fixture, CODE, NOPS "\xc3");
        put_code(&fixture, ROOT_RETURN, roots[i].code, roots[i].len);
        put_stack(&fixture, 0);
        for (unsigned n = 3; n < 64; n++)
            put_word(&fixture, n, 0x99999);
        unwind_at(&fixture, CODE);
        g_assert_cmpuint(fixture.stack->n, ==, 3);
        g_assert_cmpint(uprof_unwind_is_complete(fixture.stack), ==, roots[i].is_root);
    }
}

/* Return addresses that follow no call: of goroutines, contexts and signal handlers. */
static void
test_placed_returns(void)
{
    static const char go[] = "\xcc\xcc\xcc\xcc\x90\xe8\0\0\0\0\x90";
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, NOPS "\xc3");
    put_code(&fixture, ROOT, go, sizeof(go) - 1);
    put_word(&fixture, 0, ROOT + 5);
    unwind_at(&fixture, CODE);
    g_assert_cmpuint(fixture.stack->n, ==, 2);
    g_assert_true(uprof_unwind_is_complete(fixture.stack));

    PUT(&fixture, ROOT, "\x48\x89\xdc\x48\x8b\x3c\x24\x48\x85\xff");
    put_word(&fixture, 0, ROOT);
    fixture.snapshot->reset++;
    unwind_at(&fixture, CODE);
    g_assert_cmpuint(fixture.stack->n, ==, 2);
    g_assert_true(uprof_unwind_is_complete(fixture.stack));
}

/* A handler has interrupted a function before its first instruction. */
static void
test_signal(void)
{
    enum { RIP = 16, RSP = 15, RBP = 10, WORDS = 5 };
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, NOPS "\xc3");
    PUT(&fixture, CODE + 0x100, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05");
    put_stack(&fixture, SIGNAL_FRAME / 8);
    put_word(&fixture, 0, CODE + 0x100);
    put_word(&fixture, 1 + WORDS + RIP, CODE);
    put_word(&fixture, 1 + WORDS + RSP, STACK + SIGNAL_FRAME);
    unwind_at(&fixture, CODE);
    g_assert_cmpuint(fixture.stack->n, ==, 5);
    g_assert_true(uprof_unwind_is_complete(fixture.stack));
    g_assert_cmphex(fixture.stack->frames[1].pc, ==, CODE + 0x100);
    g_assert_cmphex(fixture.stack->frames[2].pc, ==, CODE);
    g_assert_false(fixture.stack->frames[2].is_return);
    g_assert_cmphex(fixture.stack->frames[3].pc, ==, CALLER_RETURN);
}

/* The words that an interrupt pushes, and what the test changes in them. */
enum { PC, CS, FLAGS, SP, SS };

static void
put_interrupt(Fixture *fixture, unsigned n, unsigned word_bytes)
{
    /* push %rax; call CODE; pop %rax; iretq */
    PUT(fixture, STUB, "\x50");
    put_call(fixture, STUB + 1, CODE);
    PUT(fixture, STUB_RETURN, "\x58");
    if (word_bytes == 8)
        PUT(fixture, STUB_RETURN + 1, "\x48\xcf");
    else
        PUT(fixture, STUB_RETURN + 1, "\xcf");
    PUT(fixture, CODE, NOPS "\xc3");
    if (word_bytes == 8)
        PUT(fixture, INTERRUPTED, "\x48\x83\xec\x18" NOPS "\x48\x83\xc4\x18\xc3");
    else
        PUT(fixture, INTERRUPTED, "\x83\xec\x0c" NOPS "\x83\xc4\x0c\xc3");
    put_call(fixture, word_bytes == 8 ? CALLER_RETURN - 5 : CALLER_RETURN_32 - 5, INTERRUPTED);
    put_word(fixture, 0, STUB_RETURN);
    put_word(fixture, 1, 0x4444);
    put_word(fixture, 2 + PC, INTERRUPTED + 6);
    put_word(fixture, 2 + CS, 0x10);
    put_word(fixture, 2 + FLAGS, 0x246);
    put_word(fixture, 2 + SP, STACK + n * word_bytes);
    put_word(fixture, 2 + SS, 0x18);
    for (unsigned i = 0; i < 3; i++)
        put_word(fixture, n + i, 0x123450 + i);
    put_word(fixture, n + 3, word_bytes == 8 ? CALLER_RETURN : CALLER_RETURN_32);
    put_word(fixture, n + 4, 0x77777);
    put_word(fixture, n + 5, ROOT_RETURN);
}

/* A handler's caller is code that returns from interrupts. The interrupted code follows. */
static void
test_interrupt(void)
{
    static const struct {
        int word; /* that is changed; -1: none */
        uint64_t value;
        unsigned n_frames;
        bool is_complete;
    } cases_of_words[] = {
        { -1, 0, 5, true },
        { CS, 0xe033 - 3, 5, true },               /* a paravirtual kernel */
        { CS, UINT64_C(0x1ff0000e030), 2, false }, /* bits that nobody sets */
        { CS, UINT64_C(0x10000e030), 5, true },    /* Xen's mask of events */
        { CS, 0, 2, false },
        { CS, 0x11, 2, false },
        { CS, 0x33, 2, true }, /* the stack of a process begins */
        { FLAGS, 0x244, 2, false },
        { FLAGS, 0x24a, 2, false },
        { FLAGS, UINT64_C(0x100000246), 2, false },
        { SS, 0x10018, 2, false },
        { PC, 0x8000000, 2, false },
        { PC, 0, 2, false },
        { SP, STACK - 0x800, 3, false },
        { SP, STACK, 3, false },
        { SP, UINT64_MAX, 3, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases_of_words); i++) {
        g_auto(Fixture) fixture;

        init_fixture(&fixture, 8);
        /* as in a run: a guest without a kernel that is known has no processes */
        g_autoptr(UprofLinux) kernel = uprof_linux_new(fixture.sym, 1);
        g_autoptr(UprofSpace) space = uprof_space_new(kernel, fixture.sym);
        fixture.context.space = space;
        fixture.snapshot->regs.privilege = 0;
        put_interrupt(&fixture, 8, 8);
        if (cases_of_words[i].word >= 0)
            put_word(&fixture, 2 + (unsigned)cases_of_words[i].word, cases_of_words[i].value);
        for (unsigned round = 0; round < 2; round++) {
            unwind_at(&fixture, CODE);
            g_test_message("case %zu: %u frames, %s", i, fixture.stack->n,
                           uprof_end_name(fixture.stack->end));
            g_assert_cmpuint(fixture.stack->n, ==, cases_of_words[i].n_frames);
            g_assert_cmpint(uprof_unwind_is_complete(fixture.stack), ==,
                            cases_of_words[i].is_complete);
            g_assert_cmphex(fixture.stack->frames[1].pc, ==, STUB_RETURN);
            if (fixture.stack->n < 5)
                continue;
            g_assert_cmphex(fixture.stack->frames[2].pc, ==, INTERRUPTED + 6);
            g_assert_false(fixture.stack->frames[2].is_return);
            g_assert_cmphex(fixture.stack->frames[3].pc, ==, CALLER_RETURN);
        }
    }
}

/* A program does not return from interrupts. Code of 32 bits leaves out two words. */
static void
test_interrupt_modes(void)
{
    for (unsigned word_bytes = 4; word_bytes <= 8; word_bytes += 4)
        for (unsigned privilege = 0; privilege <= 3; privilege += 3) {
            g_auto(Fixture) fixture;

            init_fixture(&fixture, word_bytes);
            fixture.snapshot->regs.privilege = (uint8_t)privilege;
            put_interrupt(&fixture, word_bytes == 8 ? 8 : 5, word_bytes);
            unwind_at(&fixture, CODE);
            g_assert_cmpuint(fixture.stack->n, ==, privilege == 0 ? 5 : 2);
            g_assert_cmpint(uprof_unwind_is_complete(fixture.stack), ==, privilege == 0);
        }
}

/* An interrupt's frame that leads to itself does not lead to an endless stack. */
static void
test_interrupt_circle(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    fixture.snapshot->regs.privilege = 0;
    put_interrupt(&fixture, 8, 8);
    put_word(&fixture, 2 + PC, CODE);
    put_word(&fixture, 2 + SP, STACK);
    unwind_at(&fixture, CODE);
    g_assert_cmpuint(fixture.stack->n, <=, 2 * UPROF_STACK_SWITCHES_MAX + 4);
    g_assert_false(uprof_unwind_is_complete(fixture.stack));
}

/* @entry: of the file; @start: of its only symbol, a function */
static void
add_function(Fixture *fixture, uint64_t entry, uint64_t start, size_t len)
{
    const ElfSymbol symbol = { "function", start, len, true };
    const ElfPlan plan = { .entry = entry,
                           .text_gva = CODE,
                           .text = fixture->guest->ram + CODE,
                           .text_len = TEXT_END - CODE,
                           .symbols = &symbol,
                           .n_symbols = 1 };
    g_autofree char *folder = g_dir_make_tmp("uprof-test-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "app", NULL);
    g_autoptr(GError) error = NULL;

    symbol_elf_write(&plan, path);
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_assert_no_error(error);
    g_remove(path);
    g_rmdir(folder);
}

#define CALL_BYTES 5

/* A function that begins its own stack has no caller; one that may go back to the old stack has
 * one. */
static void
test_fresh_stack(void)
{
    static const struct {
        const char *code; /* before the call of CODE */
        size_t len;
        unsigned privilege;
        bool is_root;
    } starts[] = {
#define CODE_OF(text) text, sizeof(text) - 1
        { CODE_OF("\xbc\0\0\1\0"), 0, true }, /* mov $0x10000,%esp */
        { CODE_OF("\xbc\0\0\1\0"), 3, false },
        { CODE_OF("\x48\x8b\x25\0\1\0\0"), 0, true },     /* mov 0x100(%rip),%rsp */
        { CODE_OF("\x48\x8d\x25\0\1\0\0"), 0, true },     /* lea 0x100(%rip),%rsp */
        { CODE_OF("\x48\x8b\x24\xc5\0\1\0\0"), 0, true }, /* mov 0x100(,%rax,8),%rsp */
        { CODE_OF("\x48\x8b\x27"), 0, true },             /* mov (%rdi),%rsp */
        { CODE_OF("\x48\x89\xfc"), 0, true },             /* mov %rdi,%rsp */
        { CODE_OF("\x48\x8b\x25\0\1\0\0\x48\x83\xe4\xf0\x48\x83\xc4\x20"), 0, true },
        { CODE_OF("\xbc\0\0\1\0\x48\x89\xe7"), 0, true },          /* ...; mov %rsp,%rdi */
        { CODE_OF("\x74\x01\x90\xbc\0\0\1\0"), 0, true },          /* je 1f; nop; 1: ... */
        { CODE_OF("\x48\x83\xec\x18"), 0, false },                 /* sub $0x18,%rsp */
        { CODE_OF("\x48\x89\xe3\xbc\0\0\1\0"), 0, false },         /* mov %rsp,%rbx; ... */
        { CODE_OF("\x54\xbc\0\0\1\0"), 0, false },                 /* push %rsp; ... */
        { CODE_OF("\x48\x89\x27\xbc\0\0\1\0"), 0, false },         /* mov %rsp,(%rdi); ... */
        { CODE_OF("\x48\x89\x25\0\1\0\0\xbc\0\0\1\0"), 0, false }, /* mov %rsp,0x100(%rip) */
        { CODE_OF("\x65\x48\x89\x24\x25\0\1\0\0\xbc\0\0\1\0"), 0, false }, /* %gs:0x100 */
        { CODE_OF("\x48\x8d\x4c\x04\x08\xbc\0\0\1\0"), 0, false }, /* lea 8(%rsp,%rax),%rcx */
        { CODE_OF("\xe8\xfb\xfc\xff\xff\xbc\0\0\1\0"), 0, false }, /* a call; ... */
        { CODE_OF("\x48\x8b\x65\x08"), 0, false },                 /* mov 8(%rbp),%rsp */
        { CODE_OF("\x48\x89\xec"), 0, false },                     /* mov %rbp,%rsp */
        { CODE_OF("\x48\x8b\x64\x24\x08"), 0, false },             /* mov 8(%rsp),%rsp */
        { CODE_OF("\x48\x94"), 0, false },                         /* xchg %rax,%rsp */
        { CODE_OF("\x48\x29\xc4"), 0, false },                     /* sub %rax,%rsp */
        { CODE_OF("\x5c"), 0, false },                             /* pop %rsp */
        { CODE_OF("\xc9"), 0, false },                             /* leave */
#undef CODE_OF
    };

    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
        g_auto(Fixture) fixture;
        const uint64_t call = ENTRY + starts[i].len;

        init_fixture(&fixture, 8);
        fixture.snapshot->regs.privilege = (uint8_t)starts[i].privilege;
        PUT(&fixture, CODE, NOPS "\xc3");
        put_code(&fixture, ENTRY, starts[i].code, starts[i].len);
        put_call(&fixture, call, CODE);
        add_function(&fixture, CODE, ENTRY, starts[i].len + CALL_BYTES);
        for (unsigned n = 0; n < 64; n++)
            put_word(&fixture, n, 0x9999999);
        put_word(&fixture, 0, call + CALL_BYTES);
        for (unsigned round = 0; round < 2; round++) {
            unwind_at(&fixture, CODE);
            g_test_message("case %zu: %u frames, %s", i, fixture.stack->n,
                           uprof_end_name(fixture.stack->end));
            g_assert_cmpuint(fixture.stack->n, ==, 2);
            g_assert_cmpint(uprof_unwind_is_complete(fixture.stack), ==, starts[i].is_root);
        }
    }
}

/* A function that goes back to a stack that was kept elsewhere, or is not known, may have a caller.
 */
static void
test_left_stack(void)
{
    static const struct {
        const char *code; /* behind the call of CODE, which follows mov $0x10000,%esp */
        size_t len;
        bool is_root;
    } ends[] = {
#define CODE_OF(text) text, sizeof(text) - 1
        { CODE_OF("\xf4"), true },                          /* hlt */
        { CODE_OF("\x48\x8b\x25\0\1\0\0\x48\xcf"), false }, /* mov 0x100(%rip),%rsp; iretq */
        { CODE_OF("\x48\x89\xdc\x5d\xc3"), false },         /* mov %rbx,%rsp; pop %rbp; ret */
#undef CODE_OF
    };

    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_auto(Fixture) fixture;

        init_fixture(&fixture, 8);
        fixture.snapshot->regs.privilege = 0;
        PUT(&fixture, CODE, NOPS "\xc3");
        PUT(&fixture, ENTRY, "\xbc\0\0\1\0");
        put_call(&fixture, ENTRY + 5, CODE);
        put_code(&fixture, ENTRY + 5 + CALL_BYTES, ends[i].code, ends[i].len);
        add_function(&fixture, CODE, ENTRY, 5 + CALL_BYTES + ends[i].len);
        for (unsigned n = 0; n < 64; n++)
            put_word(&fixture, n, 0x9999999);
        put_word(&fixture, 0, ENTRY + 5 + CALL_BYTES);
        unwind_at(&fixture, CODE);
        g_test_message("case %zu: %u frames, %s", i, fixture.stack->n,
                       uprof_end_name(fixture.stack->end));
        g_assert_cmpuint(fixture.stack->n, ==, 2);
        g_assert_cmpint(uprof_unwind_is_complete(fixture.stack), ==, ends[i].is_root);
    }
}

/* Nothing has called the entry of a kernel, even if its code goes on to a return to somebody. */
static void
test_entry(void)
{
    for (unsigned i = 0; i < 4; i++) {
        const bool is_kernel = i & 1, is_entry = i & 2;
        g_auto(Fixture) fixture;

        init_fixture(&fixture, 8);
        fixture.snapshot->regs.privilege = is_kernel ? 0 : 3;
        PUT(&fixture, CODE, NOPS "\xc3");
        PUT(&fixture, ENTRY + CALL_BYTES, "\xc3");
        put_call(&fixture, ENTRY, CODE);
        put_call(&fixture, CALLER_RETURN - 5, ENTRY);
        add_function(&fixture, is_entry ? ENTRY : CALLER, ENTRY, CALL_BYTES + 1);
        put_word(&fixture, 0, ENTRY + CALL_BYTES);
        put_word(&fixture, 1, CALLER_RETURN);
        put_word(&fixture, 2, 0x77777);
        put_word(&fixture, 3, ROOT_RETURN);
        unwind_at(&fixture, CODE);
        g_assert_true(uprof_unwind_is_complete(fixture.stack));
        g_assert_cmpuint(fixture.stack->n, ==, is_kernel && is_entry ? 2 : 4);
    }
}

/* The end of the function is in a page that is missing, but its start is there. */
static void
test_missing_page(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    put_callers(&fixture, 8);
    PUT(&fixture, 0x1fe0, "\x53\x48\x83\xec\x10\xe9\x20\0\0\0"); /* jumps to 0x200a */
    put_call(&fixture, CALLER_RETURN - 5, 0x1fe0);
    fixture.guest->hole = 0x2000;
    fixture.guest->hole_end = 0x3000;
    put_stack(&fixture, 3);
    unwind_at(&fixture, 0x1fe5);
    assert_callers(&fixture);
}

/* Nothing says where the caller is: a frame pointer alone is no reason to follow it. */
static void
test_no_guess(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, LOOP);
    PUT(&fixture, CODE - 4, NOPS);
    put_call(&fixture, CALLER_RETURN - 5, ROOT);
    put_word(&fixture, 4, STACK + 0x40);
    put_word(&fixture, 5, CALLER_RETURN);
    fixture.snapshot->regs.fp = STACK + 0x20;
    unwind_at(&fixture, CODE);
    g_assert_cmpuint(fixture.stack->n, ==, 1);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_NO_RULE);
}

/* Code that is in no file may be replaced by other code, as JIT compilers do. */
static void
test_replaced_code(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, NOPS "\xc3");
    put_stack(&fixture, 0);
    unwind_at(&fixture, CODE);
    assert_callers(&fixture);

    PUT(&fixture, CODE, "\x58\x58\xc3");
    put_stack(&fixture, 2);
    put_word(&fixture, 0, 0);
    fixture.snapshot->time_ns = 6 * SECOND_NS;
    unwind_at(&fixture, CODE);
    assert_callers(&fixture);
}

/* With page-table isolation the kernel's tables forbid to run the code of processes. */
static void
test_isolation(void)
{
    const uint64_t nx = UINT64_C(1) << 63;

    for (unsigned may_run = 0; may_run < 2; may_run++) {
        g_auto(Fixture) fixture;
        UprofRegs *regs;

        init_fixture(&fixture, 8);
        PUT(&fixture, CODE, NOPS "\xc3");
        put_stack(&fixture, 0);
        regs = &fixture.snapshot->regs;
        regs->privilege = 0;
        regs->sys[UPROF_X86_CR0] = UPROF_X86_CR0_PG;
        regs->sys[UPROF_X86_CR3] = 0x30000;
        regs->sys[UPROF_X86_CR4] = UPROF_X86_CR4_PAE;
        regs->sys[UPROF_X86_EFER] = UPROF_X86_EFER_LMA | UPROF_X86_EFER_NXE;
        memory_guest_put_u64(fixture.guest, 0x30000, 0x33000 | 1 | nx);
        memory_guest_put_u64(fixture.guest, 0x31000, may_run ? 0x33000 | 1 : 0);
        memory_guest_put_u64(fixture.guest, 0x33000, 0x81); /* 1 GiB at 0 */
        unwind_at(&fixture, CODE);
        if (may_run)
            assert_callers(&fixture);
        else
            g_assert_cmpuint(fixture.stack->n, ==, 1);
    }
}

/* The work for a sample, and the work for a second, have limits. */
static void
test_limits(void)
{
    g_auto(Fixture) fixture;
    unsigned n = 0;

    init_fixture(&fixture, 8);
    UprofCodeText *text = uprof_cache_code_tools(&fixture.context)->text;
    for (unsigned sample = 0; sample < 100; sample++) {
        uprof_code_text_begin(text, &fixture.context);
        unsigned of_sample = 0;
        while (uprof_code_text_spend(text, 1000))
            of_sample += 1000;
        g_assert_cmpuint(of_sample, <=, UPROF_TEXT_WORK_OF_SAMPLE);
        g_assert_true(uprof_code_text_is_spent(text));
        n += of_sample;
    }
    g_assert_cmpuint(n, ==, UPROF_TEXT_WORK_MAX);
    fixture.snapshot->time_ns = SECOND_NS / 10;
    uprof_code_text_begin(text, &fixture.context);
    g_assert_false(uprof_code_text_is_spent(text));
    g_assert_true(uprof_code_text_spend(text, UPROF_TEXT_WORK_OF_SECOND / 10));
    g_assert_false(uprof_code_text_spend(text, 1));
}

/* Places in code that are in use at the same time do not take each other's slots. */
static void
test_shared_slots(void)
{
    /* these differ least in the hash of their addresses */
    static const uint64_t pages[] = { 0x1000, 0xbc000, 0x177000, 0x232000 };
    enum { N_KEYS = 500 };
    g_auto(Fixture) fixture;
    bool is_known;

    init_fixture(&fixture, 8);
    const UprofCodeTools *tools = uprof_cache_code_tools(&fixture.context);
    for (unsigned round = 0; round < 2; round++) {
        uprof_mem_begin_sample(fixture.mem, 0, 0);
        uprof_code_text_begin(tools->text, &fixture.context);
        for (size_t i = 0; i < G_N_ELEMENTS(pages); i++)
            g_assert_true(uprof_code_text_is_code(tools->text, pages[i]));
        /* reading a page is work */
        g_assert_cmpint(uprof_code_text_spend(tools->text, UPROF_TEXT_WORK_OF_SAMPLE), ==,
                        round > 0);
        for (uint64_t i = 1; i <= N_KEYS; i++) {
            const UprofCodeKey key = { .number = i * 0x1234, .word_bytes = 8 };
            UprofCodeFacts *facts = uprof_code_memo_facts(tools->memo, &key, 0, true);
            g_assert_cmpint(facts->is_new, ==, round == 0);
            facts->is_new = false;
            uprof_code_memo_reach(tools->memo, &key, 0, true, &is_known);
            g_assert_cmpint(is_known, ==, round > 0);
        }
    }
}

/* Random code at a random address: unwinding ends, and reads only the copied stack. */
static void
test_random_code(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    for (unsigned round = 0; round < 300; round++) {
        for (unsigned i = CODE; i < TEXT_END; i++)
            fixture.guest->ram[i] =
                (uint8_t)(g_test_rand_int_range(0, 4) == 0 ? 0x55 : g_test_rand_int());
        for (unsigned i = 0; i < WINDOW_LEN; i += 8)
            put_word(&fixture, i / 8, CODE + (unsigned)g_test_rand_int_range(0, TEXT_END - CODE));
        fixture.snapshot->regs.word_bytes = round % 2 ? 8 : 4;
        fixture.snapshot->reset++;
        fixture.snapshot->time_ns += SECOND_NS;
        unwind_at(&fixture, CODE + (unsigned)g_test_rand_int_range(0, TEXT_END - CODE));
        g_assert_cmpuint(fixture.stack->n, >=, 1);
        g_assert_cmpuint(fixture.stack->n, <=, DEPTH);
    }
}

/*
 * A sample that has reached its limit of page reads cannot examine a function. The next sample of
 * the same function can.
 */
static void
test_page_limit(void)
{
    enum { FAR_PAGE = 8 * UPROF_PAGE_BYTES };
    g_auto(Fixture) fixture;
    uint8_t byte;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, NOPS "\xc3");
    put_stack(&fixture, 0);
    uprof_mem_begin_sample(fixture.mem, 0, 0);
    for (unsigned i = 0; i < UPROF_MEM_FRESH_MAX; i++)
        g_assert_true(uprof_mem_read(fixture.mem, 0, &fixture.snapshot->regs,
                                     FAR_PAGE + i * UPROF_PAGE_BYTES, &byte, sizeof(byte)));
    fixture.snapshot->regs.pc = CODE;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 1);

    fixture.snapshot->time_ns = 1;
    unwind_at(&fixture, CODE);
    assert_callers(&fixture);
}

/* Code that is generated in a page that was read before is read again, and so are its instructions.
 */
static void
test_new_code(void)
{
    enum { OTHER = CODE + 0x200, LAST = CODE + UPROF_PAGE_BYTES - 2 };
    static const uint64_t places[] = { OTHER, LAST };
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, NOPS "\xc3");
    put_stack(&fixture, 1);
    put_word(&fixture, 0, CODE + 5);
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++) {
        put_word(&fixture, 0, places[i]);
        unwind_at(&fixture, CODE);
        g_assert_cmpuint(fixture.stack->n, ==, 1);
        /* the last one ends in the next page */
        PUT(&fixture, places[i], "\x90\x5b\x90\x90\xc3"); /* pop %rbx */
        fixture.snapshot->time_ns += SECOND_NS / 1000;
        unwind_at(&fixture, places[i]);
        assert_callers(&fixture);
    }
}

/*
 * A JIT compiler's function, whose first instruction calls code that makes the frame record. The
 * loop leads to no return, so only the record tells the caller.
 */
static void
test_generated_record(void)
{
    enum { JIT = 0x1000, CALLER_OFFSET = 0x80, RETURN_OFFSET = CALLER_OFFSET + 5 };
    const uint64_t sp = LINUX_STACK + 0x1000, fp = sp + 16, code = LINUX_ANONYMOUS + 0x1000;
    const struct {
        uint64_t pc;
        uint64_t next; /* record */
        unsigned n_frames;
    } records[] = {
        { code + 5, 0, 2 },
        { code + 5, fp + 16, 2 },
        { code + 5, fp - 8, 1 },                /* below the record itself */
        { LINUX_PROGRAM + 0x1005, fp + 16, 1 }, /* code of a file */
    };

    for (size_t i = 0; i < G_N_ELEMENTS(records); i++) {
        g_autoptr(LinuxGuest) guest = linux_guest_new(&(LinuxPlan){ 0 });
        g_autoptr(LinuxView) view = linux_view_new(guest);
        const uint64_t page = linux_guest_alloc(guest, JIT, JIT);
        UprofUnwindCache *cache = uprof_unwind_cache_new();
        UprofStack stack = { 0 };
        static const char function[] = "\xe8\0\1\0\0" LOOP, call[] = "\xe8\x7b\xff\xff\xff\xf4";

        memset(guest->memory->ram + page, INT3, JIT);
        memory_guest_put(guest->memory, page, function, sizeof(function) - 1);
        memory_guest_put(guest->memory, page + CALLER_OFFSET, call, sizeof(call) - 1);
        linux_guest_map(guest, guest->process_root, records[i].pc & ~UINT64_C(0xfff), page,
                        LINUX_USER);
        linux_view_sample(view, 0);
        linux_view_sample(view, 0);
        view->snapshot->regs.pc = records[i].pc;
        view->snapshot->regs.sp = sp;
        view->snapshot->regs.fp = fp;
        view->snapshot->n_windows = 1;
        view->snapshot->windows[0] = (UprofWindow){ .gva = sp, .len = 64 };
        const uint64_t words[] = { 1, 2, records[i].next, code + RETURN_OFFSET, 3, 4, 5, 6 };
        memcpy(view->snapshot->bytes, words, sizeof(words));
        const UprofUnwindContext context = { .snapshot = view->snapshot,
                                             .mem = view->mem,
                                             .sym = view->sym,
                                             .space = view->space,
                                             .cache = cache,
                                             .max_depth = DEPTH };
        uprof_unwind(&context, &stack);
        g_assert_cmpuint(stack.n, ==, records[i].n_frames);
        if (records[i].n_frames == 2)
            g_assert_cmphex(stack.frames[1].pc, ==, code + RETURN_OFFSET);
        uprof_unwind_cache_free(cache);
    }
}

/* The stack pointer is outside of the window. */
static void
test_stack_is_missing(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, 8);
    PUT(&fixture, CODE, NOPS "\xc3");
    fixture.snapshot->regs.sp = UINT64_MAX - 3;
    unwind_at(&fixture, CODE);
    g_assert_cmpuint(fixture.stack->n, ==, 1);
    g_assert_cmpint(fixture.stack->end, ==, UPROF_END_WINDOW);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/code-step/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/code-step/section-gap", test_section_gap);
    g_test_add_func("/code-step/roots", test_roots);
    g_test_add_func("/code-step/placed-returns", test_placed_returns);
    g_test_add_func("/code-step/signal", test_signal);
    g_test_add_func("/code-step/interrupt", test_interrupt);
    g_test_add_func("/code-step/interrupt-modes", test_interrupt_modes);
    g_test_add_func("/code-step/interrupt-circle", test_interrupt_circle);
    g_test_add_func("/code-step/fresh-stack", test_fresh_stack);
    g_test_add_func("/code-step/left-stack", test_left_stack);
    g_test_add_func("/code-step/entry", test_entry);
    g_test_add_func("/code-step/missing-page", test_missing_page);
    g_test_add_func("/code-step/no-guess", test_no_guess);
    g_test_add_func("/code-step/replaced-code", test_replaced_code);
    g_test_add_func("/code-step/isolation", test_isolation);
    g_test_add_func("/code-step/limits", test_limits);
    g_test_add_func("/code-step/shared-slots", test_shared_slots);
    g_test_add_func("/code-step/random-code", test_random_code);
    g_test_add_func("/code-step/page-limit", test_page_limit);
    g_test_add_func("/code-step/new-code", test_new_code);
    g_test_add_func("/code-step/generated-record", test_generated_record);
    g_test_add_func("/code-step/stack-is-missing", test_stack_is_missing);
    return g_test_run();
}
