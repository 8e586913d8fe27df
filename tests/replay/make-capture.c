/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * make-capture CASE FOLDER: writes a capture, FOLDER/guest.capture, and its
 * symbols, FOLDER/app. The tables below describe the captures. The frames of a
 * stack are numbers of functions, leaf first.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "symbol-elf.h"
#include "uprof/capture.h"
#include "uprof/clock.h"

enum {
    CODE = 0x100000,
    LINKED_ELSEWHERE = 0x34567000,
    FUNCTION_LEN = 0x100,
    FUNCTIONS_MAX = 16,
    STACK = 0x8000,
    FRAME_LEN = 0x40,
    FRAMES_MAX = 8,
    STACKS_MAX = 12,
    OUTSIDE = -2, /* an address outside of the image */
    GAP = -3,     /* an address in the image, but outside of its functions */
    CALLED = -4,  /* an address outside of the image, after a call instruction */
    CALLS = 0x50000000,
    END = -1,
};

/*
 * SAME, HEAVY and RESTING become one REST record of @times ticks in which the vCPU has not run.
 * Other kinds become @times samples.
 */
typedef enum { PLAIN, IDLE, HALTED, CUT, LOOPING, TORN, SAME, HEAVY, RESTING } Kind;

typedef struct {
    unsigned vcpu;
    Kind kind;
    unsigned times; /* 0: end of the table */
    int frames[FRAMES_MAX];
} Stack;

/* How the finished file is damaged. */
typedef enum {
    UNDAMAGED,
    KILLED,  /* the file ends within a record */
    GARBAGE, /* bytes follow the END record */
    VERSION,
    MAGIC,
    EMPTY,
} Damage;

typedef struct {
    const char *name;
    const char *domain;
    unsigned vcpus;
    Damage damage;
    const char *functions[FUNCTIONS_MAX];
    Stack stacks[STACKS_MAX];
} Case;

#define LONG_TEXT_LEN 5000
static char long_text[LONG_TEXT_LEN + 1];

#define PLAIN_FUNCTIONS                                                                            \
    {                                                                                              \
        "main", "function_1", "work", "copy"                                                       \
    }
#define PLAIN_STACKS                                                                               \
    {                                                                                              \
        { 0, PLAIN, 3, { 2, 1, 0, END } }, { 0, PLAIN, 1, { 1, 0, END } },                         \
        {                                                                                          \
            0, PLAIN, 2,                                                                           \
            {                                                                                      \
                3, 3, 0, END                                                                       \
            }                                                                                      \
        }                                                                                          \
    }

/* clang-format off */
#define RESTS 3, UNDAMAGED, PLAIN_FUNCTIONS,                                                       \
    { { 0, PLAIN, 2, { 2, 1, 0, END } }, { 0, SAME, 3 }, { 0, RESTING, 5 }, { 0, SAME, 2 },         \
      { 1, RESTING, 4 }, { 1, SAME, 6 }, { 1, HALTED, 1, { 1, 0, END } }, { 1, SAME, 7 },           \
      { 2, PLAIN, 1, { 3, 0, END } }, { 2, RESTING, 8 }, { 2, HEAVY, 2 } }

#define MANGLED                                                                                    \
    { "_ZN2ns3Foo3runEiPKc", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",                     \
      "_D3std5stdio7writelnFAyaZv", "camlStdlib__List__map_342", "camlMain.$3b$20$5bx_9",          \
      "_ZN12_GLOBAL__N_14workEv.constprop.0", "_ZN3bad", "_RNvC6_123foou30____7hkackfecea1cbdathfdh9hlq6y" },  \
    { { 0, PLAIN, 1, { 1, 0, END } }, { 0, PLAIN, 2, { 3, 2, END } }, { 0, PLAIN, 3, { 4, 5, END } },           \
      { 0, PLAIN, 4, { 7, 6, END } } }

static const Case cases[] = {
    { "plain", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "per-vcpu", "web-1", 2, UNDAMAGED, PLAIN_FUNCTIONS,
      { { 0, PLAIN, 2, { 2, 1, 0, END } }, { 1, PLAIN, 3, { 1, 0, END } }, { 1, IDLE, 4, { END } } } },
    { "idle", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS,
      { { 0, PLAIN, 2, { 2, 1, 0, END } }, { 0, IDLE, 5, { END } }, { 0, HALTED, 1, { 0, END } } } },
    { "all-idle", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, { { 0, IDLE, 5, { END } } } },
    { "missed", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "rests", "web-1", RESTS },
    { "annotate", "web-1", RESTS },
    { "rests-idle", "web-1", RESTS },
    { "rests-idle-stack", "web-1", RESTS },
    { "rests-per-vcpu", "web-1", RESTS },
    { "truncated", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS,
      { { 0, PLAIN, 1, { 2, 1, 0, END } }, { 0, CUT, 2, { 2, 1, END } }, { 0, LOOPING, 3, { 2, 1, END } },
        { 0, TORN, 4, { 2, 1, 0, END } } } },
    { "unknown", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS,
      { { 0, PLAIN, 1, { 2, GAP, 0, END } }, { 0, PLAIN, 2, { OUTSIDE, END } }, { 0, PLAIN, 3, { OUTSIDE, OUTSIDE, END } },
        { 0, PLAIN, 4, { CALLED, CALLED, 1, CALLED, CALLED, CALLED, 0, END } } } },
    { "no-symbols", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, { { 0, PLAIN, 2, { 2, END } } } },
    { "hostile-symbols", "web-1", 1, UNDAMAGED,
      { "a;b", "new\nline", "\x1b[31mred", "bad\xff\xfeutf", "\xe2\x80\xae" "evil", "# x", "cpu 12", "[idle]", "x_[k]",
        "$(id)", "<script>", "%s%n", "a\xc2\x9b" "b", long_text },
      { { 0, PLAIN, 1, { 0, 1, 2, 3, END } }, { 0, PLAIN, 2, { 4, 5, 6, END } }, { 0, PLAIN, 3, { 7, 8, 9, END } },
        { 0, PLAIN, 4, { 13, 12, 11, 10, END } } } },
    { "inlined", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "inlined-times", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "moved", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "mangled", "web-1", 1, UNDAMAGED, MANGLED },
    { "no-demangle", "web-1", 1, UNDAMAGED, MANGLED },
    { "hostile-domain", "a;b\x1b[31m\t\xff $(id) 12", 1, UNDAMAGED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "killed", "web-1", 1, KILLED, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "garbage-tail", "web-1", 1, GARBAGE, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "other-version", "web-1", 1, VERSION, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "wrong-magic", "web-1", 1, MAGIC, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "empty", "web-1", 1, EMPTY, PLAIN_FUNCTIONS, PLAIN_STACKS },
    { "no-sample", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS, { { 0 } } },
    { "many", "web-1", 1, UNDAMAGED, PLAIN_FUNCTIONS,
      { { 0, PLAIN, 60000, { 2, 1, 0, END } }, { 0, PLAIN, 40000, { 1, 0, END } } } },
};
/* clang-format on */

static uint64_t
address_of(int function, bool is_return)
{
    if (function == OUTSIDE)
        return 0x40000000;
    if (function == CALLED)
        return CALLS + 0x20;
    if (function == GAP)
        return CODE + FUNCTIONS_MAX * FUNCTION_LEN + 0x34;
    return CODE + (uint64_t)function * FUNCTION_LEN + (is_return ? 0x20 : 0x10);
}

static void
put_word(UprofSnapshot *snapshot, uint64_t gva, uint64_t value)
{
    const uint64_t bytes = GUINT64_TO_LE(value);

    memcpy(snapshot->bytes + (gva - STACK), &bytes, sizeof(bytes));
}

/* Writes frame records from the stack pointer upwards. The last record has no caller. */
static void
fill_stack(UprofSnapshot *snapshot, const Stack *stack)
{
    uint64_t fp = STACK + 0x10;
    unsigned n = 0;

    snapshot->regs.pc = address_of(stack->frames[0], false);
    snapshot->regs.sp = STACK;
    snapshot->regs.fp = fp;
    for (n = 1; stack->frames[n] != END; n++, fp += FRAME_LEN) {
        put_word(snapshot, fp, fp + FRAME_LEN);
        put_word(snapshot, fp + 8, address_of(stack->frames[n], true));
    }
    put_word(snapshot, fp, 0);
    put_word(snapshot, fp + 8, 0);
    snapshot->n_windows = 1;
    snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = (uint32_t)(fp + 16 - STACK) };
    if (stack->kind == CUT)
        snapshot->windows[0].len -= 16;
    if (stack->kind == LOOPING)
        put_word(snapshot, fp - FRAME_LEN, fp - FRAME_LEN);
    if (stack->kind == TORN) {
        snapshot->stale = true;
        snapshot->n_windows = 0;
    }
}

static bool
has_rests(const Case *made)
{
    for (unsigned i = 0; i < STACKS_MAX; i++)
        if (made->stacks[i].kind >= SAME)
            return true;
    return false;
}

static void
fill_rest(UprofSnapshot *snapshot, const Stack *stack, uint64_t number)
{
    uprof_snapshot_clear(snapshot);
    snapshot->time_ns = number * 10 * UPROF_NS_PER_MS;
    snapshot->vcpu = stack->vcpu;
    snapshot->weight = stack->kind == HEAVY ? 3 : 1;
    snapshot->count = stack->times;
    snapshot->grain = UPROF_GRAIN_VCPU;
    snapshot->same = true;
    snapshot->idle = stack->kind == RESTING;
}

static void
fill_snapshot(UprofSnapshot *snapshot, const Stack *stack, UprofGrain grain, uint64_t number)
{
    uprof_snapshot_clear(snapshot);
    snapshot->time_ns = number * 10 * UPROF_NS_PER_MS;
    snapshot->hold = number;
    snapshot->hold_ns = 20 * UPROF_NS_PER_US;
    snapshot->stopped_ns = 10 * UPROF_NS_PER_US;
    snapshot->vcpu = stack->vcpu;
    snapshot->weight = snapshot->count = 1;
    snapshot->grain = grain;
    snapshot->regs.word_bytes = 8;
    snapshot->idle = snapshot->regs.halted = stack->kind == IDLE || stack->kind == HALTED;
    if (stack->kind != IDLE)
        fill_stack(snapshot, stack);
}

static void
write_capture(const Case *made, const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    g_autoptr(UprofWriter) writer = uprof_writer_new(fd);
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;
    uint8_t calls[UPROF_CAPTURE_PAGE_BYTES];
    const UprofGrain grain = has_rests(made) ? UPROF_GRAIN_VCPU : UPROF_GRAIN_GUEST;
    uint64_t number = 0;

    for (size_t i = 0; i < sizeof(calls); i++)
        calls[i] = i % 2 ? 0xd0 : 0xff; /* call *%rax */
    run->program = g_strdup("make-capture");
    run->domain = g_strdup(made->domain);
    run->uuid = g_strdup("4dea22b3-1d52-48f3-a516-782e98ab3fa0");
    run->driver = g_strdup("QEMU");
    run->type = g_strdup("kvm");
    run->arch = g_strdup("x86_64");
    run->access = g_strdup("monitor");
    run->unwind = g_strdup("fp");
    run->vcpus = made->vcpus;
    run->started_utc_ns = UINT64_C(1795166100) * UPROF_NS_PER_S;
    run->rate_mhz = 100000;
    run->max_depth = 127;
    run->divisor = 1;
    g_assert_true(uprof_writer_run(writer, run, &error));
    for (unsigned i = 0; i < STACKS_MAX && made->stacks[i].times > 0; i++) {
        if (made->stacks[i].kind >= SAME) {
            fill_rest(snapshot, &made->stacks[i], number++);
            g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
            continue;
        }
        for (unsigned j = 0; j < made->stacks[i].times; j++) {
            fill_snapshot(snapshot, &made->stacks[i], grain, number++);
            g_assert_true(uprof_writer_snapshot(writer, snapshot, &error));
            if (made->stacks[i].frames[0] == CALLED)
                g_assert_true(uprof_writer_page(writer, CALLS, calls, &error));
        }
    }
    if (strcmp(made->name, "missed") == 0) {
        run->late = 4;
        run->stuck = 1;
    }
    run->ended_by = g_strdup("duration");
    run->duration_ns = number * 10 * UPROF_NS_PER_MS;
    run->held_ns = number * 20 * UPROF_NS_PER_US;
    if (made->damage != KILLED)
        g_assert_true(uprof_writer_end(writer, run, &error));
    g_assert_true(uprof_writer_flush(writer, &error));

    const off_t end = lseek(fd, 0, SEEK_END);
    switch (made->damage) {
    case KILLED:
        g_assert_cmpint(ftruncate(fd, end - 10), ==, 0);
        break;
    case GARBAGE:
        g_assert_cmpint(write(fd, "\xff\xff\xff\xff\xff\xff\xff\xffgarbage", 15), ==, 15);
        break;
    case VERSION:
        g_assert_cmpint(pwrite(fd, "\2", 1, 8), ==, 1);
        break;
    case MAGIC:
        g_assert_cmpint(pwrite(fd, "PK\3\4", 4, 0), ==, 4);
        break;
    case EMPTY:
        g_assert_cmpint(ftruncate(fd, 0), ==, 0);
        break;
    default:
        break;
    }
    close(fd);
}

/*
 * DWARF 4. The second function contains the inlined function "inner", and all
 * samples of the second function are in this part.
 */
static const uint8_t debug_abbrev[] =
    "\1\x11\1\x11\1\x12\7\0\0"         /* unit: low pc, length */
    "\2\x2e\0\x03\x08\x20\x0b\0\0"     /* inlined function: name */
    "\3\x2e\1\x11\1\x12\7\0\0"         /* function: low pc, length */
    "\4\x1d\0\x31\x13\x11\1\x12\7\0\0" /* inlined call: function, low pc, length */
    "";

static GByteArray *
make_debug_info(void)
{
    GByteArray *info = g_byte_array_new();
    const uint64_t function = CODE + FUNCTION_LEN;
    const struct {
        unsigned width;
        uint64_t value;
    } parts[] = {
        { 4, 0 },
        { 2, 4 },
        { 4, 0 },
        { 1, 8 },
        { 1, 1 },
        { 8, CODE },
        { 8, FUNCTIONS_MAX * FUNCTION_LEN },
        { 1, 2 },
        { 6, 0x72656e6e69 /* "inner" */ },
        { 1, 1 },
        { 1, 3 },
        { 8, function },
        { 8, FUNCTION_LEN },
        { 1, 4 },
        { 4, 28 },
        { 8, function + 0x10 },
        { 8, 0x10 },
        { 2, 0 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
        const uint64_t bytes = GUINT64_TO_LE(parts[i].value);
        g_byte_array_append(info, (const guint8 *)&bytes, parts[i].width);
    }
    info->data[0] = (guint8)(info->len - 4);
    return info;
}

static void
write_symbols(const Case *made, const char *path)
{
    static uint8_t text[(FUNCTIONS_MAX + 1) * FUNCTION_LEN];
    ElfSymbol symbols[FUNCTIONS_MAX];
    const uint64_t linked = strcmp(made->name, "moved") == 0 ? LINKED_ELSEWHERE : CODE;
    size_t n = 0;

    for (; n < FUNCTIONS_MAX && made->functions[n]; n++)
        symbols[n] = (ElfSymbol){ .name = made->functions[n],
                                  .start = linked + n * FUNCTION_LEN,
                                  .size = FUNCTION_LEN,
                                  .is_global = true };
    g_autoptr(GByteArray) info = make_debug_info();
    const ElfExtra extras[] = {
        { ".debug_abbrev", SHT_PROGBITS, 0, 0, debug_abbrev, sizeof(debug_abbrev) },
        { ".debug_info", SHT_PROGBITS, 0, 0, info->data, info->len },
    };
    const ElfPlan plan = { .text_gva = linked,
                           .text = text,
                           .text_len = sizeof(text),
                           .symbols = symbols,
                           .n_symbols = n,
                           .extras = extras,
                           .n_extras = g_str_has_prefix(made->name, "inlined") ? 2 : 0 };
    symbol_elf_write(&plan, path);
}

int
main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    g_autofree char *capture = g_build_filename(argv[2], "guest.capture", NULL);
    g_autofree char *symbols = g_build_filename(argv[2], "app", NULL);

    memset(long_text, 'n', LONG_TEXT_LEN);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        write_capture(&cases[i], capture);
        write_symbols(&cases[i], symbols);
        return 0;
    }
    fprintf(stderr, "make-capture: no case '%s'\n", argv[1]);
    return 1;
}
