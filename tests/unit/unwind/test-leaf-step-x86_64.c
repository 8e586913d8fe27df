/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <unistd.h>

#include "memory-guest.h"
#include "uprof/unwind.h"

enum { DEPTH = 127 }; /* the default of --max-depth */

/*
 * A guest without paging. ROOT has called CALLER, and CALLER the function at CODE. The frame
 * pointer belongs to CALLER until the function has made its own frame record.
 */
enum {
    RAM_LEN = 0x40000,
    CODE = 0x1000,
    CALLER = 0x1800,
    ROOT = 0x1c00,
    STACK = 0x10000,
    WINDOW_LEN = 0x1000,
    CALLER_RECORD = STACK + 0x100,
    CODE_MAX = 80,
};

/* Where the return address to CALLER is */
typedef enum { AT_SP, ABOVE_FP, IN_RECORD } Where;

#define PUSH "\x55"
#define MOV "\x48\x89\xe5"
#define LOAD "\x48\x8b\xec"
#define NOPS "\x90\x90\x90\x90\x90\x90"
#define BODY NOPS NOPS
#define LEAVE_RET "\xc9\xc3"
#define POP_RET "\x5d\xc3"

/* clang-format off */
static const struct {
    const char *name;
    const char *code;
    unsigned at; /* offset of the program counter in it */
    uint8_t word_bytes;
    Where where;
} cases[] = {
    { "before-push",          PUSH MOV BODY LEAVE_RET,               0,  8, AT_SP },
    { "before-mov",           PUSH MOV BODY LEAVE_RET,               1,  8, ABOVE_FP },
    { "after-mov",           PUSH MOV BODY LEAVE_RET,               4,  8, IN_RECORD },
    { "body",                 PUSH MOV BODY LEAVE_RET,               10, 8, IN_RECORD },
    { "leave",                PUSH MOV BODY LEAVE_RET,               16, 8, IN_RECORD },
    { "ret-after-leave",     PUSH MOV BODY LEAVE_RET,               17, 8, AT_SP },
    { "ret-after-pop",       PUSH MOV BODY POP_RET,                 17, 8, AT_SP },
    { "ret-with-bytes",       PUSH MOV BODY "\x5d\xc2\x08",          17, 8, AT_SP },
    { "rep-ret",              PUSH MOV BODY "\x5d\xf3\xc3",          17, 8, AT_SP },
    { "tail-call",            PUSH MOV BODY "\x5d\xe9\1\0\0\0",      17, 8, AT_SP },
    { "short-tail-call",      PUSH MOV BODY "\xc9\xeb\x10",          17, 8, AT_SP },
    { "jump-in-body",         PUSH MOV BODY "\x90\xeb\x10" LEAVE_RET, 17, 8, IN_RECORD },
    { "load-form",            PUSH LOAD BODY LEAVE_RET,              1,  8, ABOVE_FP },
    { "endbr-first",          "\xf3\x0f\x1e\xfa" PUSH MOV BODY,      2,  8, AT_SP },
    { "spread-apart",         PUSH NOPS MOV BODY,                    5,  8, ABOVE_FP },
    { "spread-apart-after",  PUSH NOPS MOV BODY,                    10, 8, IN_RECORD },
    { "push-of-r13",          "\x41" PUSH PUSH MOV BODY,             1,  8, AT_SP },
    { "no-prologue",          BODY BODY LEAVE_RET,                   3,  8, IN_RECORD },
    { "32-bit-before-push",   PUSH "\x89\xe5" BODY LEAVE_RET,        0,  4, AT_SP },
    { "32-bit-before-mov",    PUSH "\x89\xe5" BODY LEAVE_RET,        1,  4, ABOVE_FP },
    { "32-bit-body",          PUSH "\x89\xe5" BODY LEAVE_RET,        8,  4, IN_RECORD },
    { "32-bit-load-form",     PUSH "\x8b\xec" BODY LEAVE_RET,        1,  4, ABOVE_FP },
    { "32-bit-ret",           PUSH "\x89\xe5" BODY LEAVE_RET,        16, 4, AT_SP },
    { "16-bit",               PUSH MOV BODY LEAVE_RET,               0,  2, AT_SP },
};
/* clang-format on */

static char *symbols;

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
init_fixture(Fixture *fixture, const char *code, size_t len, unsigned at, uint8_t word_bytes)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };
    g_autoptr(GError) error = NULL;

    fixture->guest = memory_guest_open(&plan);
    memory_guest_put(fixture->guest, CODE, code, len);
    fixture->mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    uprof_sym_add_file(fixture->sym, symbols, true, &error);
    g_assert_no_error(error);
    fixture->snapshot = g_new0(UprofSnapshot, 1);
    fixture->stack = g_new0(UprofStack, 1);
    fixture->context = (UprofUnwindContext){
        .snapshot = fixture->snapshot, .mem = fixture->mem, .sym = fixture->sym, .max_depth = DEPTH
    };
    fixture->snapshot->n_windows = 1;
    fixture->snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = WINDOW_LEN };
    fixture->snapshot->regs =
        (UprofRegs){ .pc = CODE + at, .sp = STACK, .fp = CALLER_RECORD, .word_bytes = word_bytes };
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
put_word(Fixture *fixture, uint64_t at, uint64_t value)
{
    const uint64_t bytes = GUINT64_TO_LE(value);

    memcpy(fixture->snapshot->bytes + (at - STACK), &bytes, fixture->snapshot->regs.word_bytes);
}

static void
put_stack(Fixture *fixture, Where where)
{
    UprofRegs *regs = &fixture->snapshot->regs;
    const unsigned word = regs->word_bytes;

    put_word(fixture, CALLER_RECORD, 0);
    put_word(fixture, CALLER_RECORD + word, ROOT);
    if (where == AT_SP) {
        put_word(fixture, STACK, CALLER);
        return;
    }
    put_word(fixture, STACK, CALLER_RECORD);
    put_word(fixture, STACK + word, CALLER);
    if (where == IN_RECORD)
        regs->fp = STACK;
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    char code[CODE_MAX] = { 0 };
    g_auto(Fixture) fixture;

    /* zeros follow the code */
    memcpy(code, cases[i].code, MIN(strlen(cases[i].code), sizeof(code) - 1));
    init_fixture(&fixture, code, sizeof(code), cases[i].at, cases[i].word_bytes);
    put_stack(&fixture, cases[i].where);

    uprof_unwind(&fixture.context, fixture.stack);

    const UprofStack *stack = fixture.stack;
    if (cases[i].word_bytes == 2) {
        g_assert_cmpint(stack->end, ==, UPROF_END_NO_RULE);
        return;
    }
    g_assert_cmpint(stack->end, ==, UPROF_END_BASE);
    g_assert_cmpuint(stack->n, ==, 3);
    g_assert_cmphex(stack->frames[1].pc, ==, CALLER);
    g_assert_cmphex(stack->frames[2].pc, ==, ROOT);
    g_assert_cmpint(stack->frames[1].how, ==,
                    cases[i].where == IN_RECORD ? UPROF_HOW_FP : UPROF_HOW_LEAF);
}

/* Puts a call that ends at @at: a direct call of @target, or "call *%rax" if @target is 0. */
static void
put_call(Fixture *fixture, uint64_t at, uint64_t target)
{
    const uint32_t distance = GUINT32_TO_LE((uint32_t)(target - at));

    if (target == 0) {
        memory_guest_put(fixture->guest, at - 2, "\xff\xd0", 2);
        return;
    }
    memory_guest_put(fixture->guest, at - 5, "\xe8", 1);
    memory_guest_put(fixture->guest, at - 4, &distance, sizeof(distance));
}

enum { LOW = 0x20, HIGH = 0x40, ABOVE = 0x110, ELSEWHERE = CALLER + 0x80 };

/* clang-format off */
/*
 * The function has no frame pointer and rounds its stack pointer down, so that the size of its
 * frame is unknown. Its stack has two return addresses that follow calls, one to CALLER and
 * one to ELSEWHERE. CALLER_RECORD is at 0x100.
 */
static const struct {
    const char *name;
    unsigned caller_at, elsewhere_at; /* offsets in the stack; 0: missing */
    uint64_t caller_calls, elsewhere_calls;
    uint64_t fp;
    uint64_t found; /* the caller; 0: none */
} scans[] = {
    { "direct",          LOW,   0,    CODE, 0,    CALLER_RECORD, CALLER },
    { "direct-decides",  HIGH,  LOW,  CODE, 0,    CALLER_RECORD, CALLER },
    { "without-fp",      HIGH,  LOW,  CODE, 0,    0x1234,        CALLER },
    { "indirect",        0,     LOW,  0,    0,    CALLER_RECORD, ELSEWHERE },
    { "indirect-first",  LOW,   HIGH, ROOT, 0,    CALLER_RECORD, ELSEWHERE },
    { "tail-call",       LOW,   HIGH, ROOT, ROOT, CALLER_RECORD, CALLER },
    { "no-fp-no-guess",  0,     LOW,  0,    0,    0x1234,        0 },
    { "above-the-record", ABOVE, 0,   CODE, 0,    CALLER_RECORD, ROOT },
    { "too-far",         0xd0,  0,    CODE, 0,    0x1234,        0 },
};
/* clang-format on */

static void
test_scan(gconstpointer data)
{
    static const char code[] = "\x48\x83\xe4\xe0" NOPS;
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture, code, sizeof(code), 5, 8);
    put_call(&fixture, CALLER, scans[i].caller_calls);
    put_call(&fixture, ELSEWHERE, scans[i].elsewhere_calls);
    put_call(&fixture, ROOT, CALLER);
    put_word(&fixture, CALLER_RECORD, 0);
    put_word(&fixture, CALLER_RECORD + 8, ROOT);
    put_word(&fixture, STACK + 8, CALLER + 0x40); /* not after a call */
    if (scans[i].caller_at)
        put_word(&fixture, STACK + scans[i].caller_at, CALLER);
    if (scans[i].elsewhere_at)
        put_word(&fixture, STACK + scans[i].elsewhere_at, ELSEWHERE);
    fixture.snapshot->regs.fp = scans[i].fp;

    uprof_unwind(&fixture.context, fixture.stack);

    if (scans[i].found == 0) {
        g_assert_cmpuint(fixture.stack->n, ==, 1);
        g_assert_false(uprof_unwind_is_complete(fixture.stack));
        return;
    }
    g_assert_cmpuint(fixture.stack->n, >=, 2);
    g_assert_cmphex(fixture.stack->frames[1].pc, ==, scans[i].found);
}

/* A stub without a name, which jumps to another function, has no frame of its own. */
static void
test_stub(void)
{
    enum { STUB = 0x800 };
    static const struct {
        const char *code;
        bool has_call, is_stub;
    } stubs[] = {
        { "\xff\x25\1\2\3\4", true, true },   { "\xf2\xff\x25\1\2\3\4", true, true },
        { "\xff\x25\1\2\3\4", false, false }, /* the word at the stack pointer does not follow a call */
        { "\xff\xe0\1\2\3\4", true, false }, /* could be a jump in any function */
        { "\xff\x15\1\2\3\4", true, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(stubs); i++) {
        g_auto(Fixture) fixture;

        init_fixture(&fixture, NOPS, strlen(NOPS), 0, 8);
        memory_guest_put(fixture.guest, STUB, stubs[i].code, strlen(stubs[i].code) + 1);
        fixture.snapshot->regs.pc = STUB;
        put_stack(&fixture, AT_SP);
        if (stubs[i].has_call)
            put_call(&fixture, CALLER, ELSEWHERE);
        uprof_unwind(&fixture.context, fixture.stack);
        g_assert_cmpuint(fixture.stack->n, ==, stubs[i].is_stub ? 3 : 2);
        g_assert_cmphex(fixture.stack->frames[1].pc, ==, stubs[i].is_stub ? CALLER : ROOT);
    }
}

/* Random code at a random address: unwinding ends, and reads only the copied stack. */
static void
test_random_code(void)
{
    for (unsigned round = 0; round < 2000; round++) {
        char code[CODE_MAX];
        g_auto(Fixture) fixture;
        for (size_t i = 0; i < sizeof(code); i++)
            code[i] = (char)(g_test_rand_int_range(0, 4) == 0 ? 0x55 : g_test_rand_int());
        init_fixture(&fixture, code, sizeof(code), (unsigned)g_test_rand_int_range(0, sizeof(code)),
                     round % 2 ? 8 : 4);
        for (unsigned i = 0; i < WINDOW_LEN; i++)
            fixture.snapshot->bytes[i] = (uint8_t)g_test_rand_int();
        uprof_unwind(&fixture.context, fixture.stack);
        g_assert_cmpuint(fixture.stack->n, >=, 1);
        g_assert_cmpuint(fixture.stack->n, <=, DEPTH);
    }
}

/* The stack pointer is outside of the window. */
static void
test_stack_is_missing(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, PUSH MOV BODY, strlen(PUSH MOV BODY), 0, 8);
    fixture.snapshot->regs.sp = UINT64_MAX - 3;
    fixture.snapshot->regs.fp = UINT64_MAX - 7;
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 1);
    g_assert_false(uprof_unwind_is_complete(fixture.stack));
}

/*
 * A sample that has reached its limit of page reads cannot examine a function. The next
 * sample of the same function can.
 */
static void
test_page_limit(void)
{
    static const char code[] = "\x48\x81\xec\x00\x01\x00\x00" BODY; /* sub $0x100,%rsp */
    enum { FRAME = 0x100, AFTER_SUB = 7, FAR = 8 * UPROF_PAGE_BYTES };
    g_auto(Fixture) fixture;
    uint8_t byte;

    init_fixture(&fixture, code, sizeof(code), AFTER_SUB, 8);
    UprofUnwindCache *cache = uprof_unwind_cache_new();
    fixture.context.cache = cache;
    fixture.snapshot->regs.fp = 0x1234;
    put_word(&fixture, STACK + FRAME, CALLER);
    put_call(&fixture, CALLER, CODE);
    for (unsigned i = 0; i < UPROF_MEM_FRESH_MAX; i++)
        g_assert_true(uprof_mem_read(fixture.mem, 0, &fixture.snapshot->regs,
                                     FAR + i * UPROF_PAGE_BYTES, &byte, sizeof(byte)));
    uprof_unwind(&fixture.context, fixture.stack);
    g_assert_cmpuint(fixture.stack->n, ==, 1);

    for (unsigned i = 0; i < 2; i++) {
        uprof_mem_begin_sample(fixture.mem, 1 + i, 0);
        fixture.snapshot->regs.pc = CODE + AFTER_SUB + i;
        uprof_unwind(&fixture.context, fixture.stack);
        g_assert_cmpuint(fixture.stack->n, >=, 2);
        g_assert_cmphex(fixture.stack->frames[1].pc, ==, CALLER);
    }
    uprof_unwind_cache_free(cache);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;

    g_test_init(&argc, &argv, NULL);
    const int fd = g_file_open_tmp("uprof-XXXXXX.map", &symbols, &error);
    g_assert_no_error(error);
    g_file_set_contents(symbols,
                        "0000000000001000 T function\n"
                        "0000000000001700 T caller\n"
                        "0000000000001b00 T root\n",
                        -1, &error);
    g_assert_no_error(error);
    close(fd);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/leaf-step-x86_64/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(scans); i++) {
        g_autofree char *path = g_strdup_printf("/leaf-step-x86_64/scan/%s", scans[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_scan);
    }
    g_test_add_func("/leaf-step-x86_64/stub", test_stub);
    g_test_add_func("/leaf-step-x86_64/random-code", test_random_code);
    g_test_add_func("/leaf-step-x86_64/page-limit", test_page_limit);
    g_test_add_func("/leaf-step-x86_64/stack-is-missing", test_stack_is_missing);
    const int result = g_test_run();
    unlink(symbols);
    g_free(symbols);
    return result;
}
