/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stack and code of a guest, for the unwinders that use code, bounds of functions and frame
 * pointers. The bits of the first byte describe the sample: bit 0, 32-bit code; bit 1, kernel
 * mode; bit 2, only frame pointers are used; bit 3, with ORC rules of a Linux kernel. Four numbers
 * of 16 bits follow: program counter, relative to the start of the code; stack pointer and frame
 * pointer, relative to the start of the stack; length of the code.
 * Then come the code and the stack. The symbols give the bounds of the functions.
 */
#include "fuzz.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/unwind/code-cache-priv.h"
#include "build-orc.h"
#include "memory-guest.h"
#include "uprof/unwind.h"

enum {
    IS_32 = 1,
    IS_KERNEL = 2,
    BY_FP = 4,
    BY_ORC = 8,
    HEADER = 9,
    CODE = 0x1000,
    CODE_LEN = 0x2000,
    STACK = 0x10000,
    STACK_LEN = 0x1000,
    RAM_LEN = 0x20000,
    DEPTH = 64,
};

static const char symbols[] = "0000000000001000 T _start\n"
                              "0000000000001040 T first\n"
                              "0000000000001100 t second\n"
                              "0000000000001180 t second.cold\n"
                              "0000000000001200 T third\n"
                              "0000000000002000 T last\n";

/* ORC entries of Linux 6.4: each rule holds up to the address of the next entry. */
static const OrcLine lines[] = {
    { 0x1000, 8, 0, 0x205 }, { 0x1020, 16, -16, 0x214 }, { 0x1040, 24, -16, 0x215 },
    { 0x1080, 0, 0, 0xb05 }, { 0x1100, 0, 0, 0xc05 },    { 0x1140, 8, 0, 0x209 },
    { 0x1180, 0, 0, 0x100 }, { 0x11c0, 0, 0, 0 },        { 0x1200, -16, 0, 0x248 },
    { 0x1400, 0, 0, 0x246 }, { 0x1600, -40, 0, 0xb05 },  { 0x1800, 0, 0, 0xb09 },
    { 0x1a00, 8, 0, 0xc02 }, { 0x2000, 16, -16, 0xa15 }, { 0x3000, 0, 0, 0 },
};

/* Symbols and caches: one set without ORC rules, one set with them. */
typedef struct {
    UprofSym *sym;
    UprofUnwindCache *cache;
} Known;

typedef struct {
    MemoryGuest *guest;
    UprofNames *names;
    Known known[2];
    UprofSnapshot snapshot;
    UprofStack stacks[2];
} Fixture;

static void
add_orc(UprofSym *sym)
{
    g_autoptr(GByteArray) ips = g_byte_array_new(), entries = g_byte_array_new();

    build_orc(lines, G_N_ELEMENTS(lines), CODE, ips, entries);
    UprofOrc *orc =
        uprof_orc_parse((UprofSlice){ ips->data, ips->len }, CODE,
                        (UprofSlice){ entries->data, entries->len }, UPROF_ORC_6_4, NULL);
    uprof_sym_add_orc(sym, UPROF_SYM_KERNEL, orc);
}

/* All inputs share this fixture. Only the guest's memory differs. */
static Fixture *
make_fixture(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };
    Fixture *fixture = g_new0(Fixture, 1);

    fixture->guest = memory_guest_open(&plan);
    fixture->names = uprof_names_new();
    return fixture;
}

/* Makes the set when the first input needs it, because each set is large. */
static const Known *
get_known(Fixture *fixture, bool has_orc)
{
    Known *known = &fixture->known[has_orc];
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;

    if (known->sym)
        return known;
    close(g_file_open_tmp("fuzz-unwind-XXXXXX", &path, NULL));
    g_assert_true(g_file_set_contents(path, symbols, -1, NULL));
    known->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    g_assert_true(uprof_sym_add_file(known->sym, path, true, &error));
    known->cache = uprof_unwind_cache_new();
    if (has_orc)
        add_orc(known->sym);
    g_unlink(path);
    return known;
}

static uint16_t
read_number(const uint8_t *data)
{
    return (uint16_t)(data[0] | data[1] << 8);
}

static void
check_stack(const Fixture *fixture, const UprofStack *stack)
{
    const UprofRegs *regs = &fixture->snapshot.regs;
    bool has_orc = false;

    for (unsigned i = 1; i < stack->n; i++)
        has_orc |= stack->frames[i].how == UPROF_HOW_ORC;
    g_assert(stack->n >= 1 && stack->n <= DEPTH && stack->end < UPROF_N_ENDS);
    g_assert(stack->frames[0].pc == regs->pc && !stack->frames[0].is_return);
    if (has_orc)
        return; /* ORC rules may switch stacks, or lead to interrupted code at a lower address */
    g_assert(stack->n == 1 ? stack->top_sp == regs->sp : stack->top_sp > regs->sp);
    for (unsigned i = 1; i < stack->n; i++)
        g_assert(stack->frames[i].is_return);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    static Fixture *fixture;
    unsigned n_checked, n_agreed;

    if (size < HEADER)
        return;
    if (!fixture)
        fixture = make_fixture();
    const size_t left = size - HEADER;
    const size_t code_len = MIN(MIN(left, (size_t)CODE_LEN), read_number(data + 7));
    const size_t stack_len = MIN(left - code_len, (size_t)STACK_LEN);
    UprofSnapshot *snapshot = &fixture->snapshot;
    const Known *known = get_known(fixture, data[0] & BY_ORC);

    memset(fixture->guest->ram, 0, RAM_LEN);
    memory_guest_put(fixture->guest, CODE, data + HEADER, code_len);
    memcpy(snapshot->bytes, data + HEADER + code_len, stack_len);
    snapshot->n_windows = 1;
    /* later than the last input, so that all work that walks may do has been saved up again */
    snapshot->time_ns += UINT64_C(20000000000);
    snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = (uint32_t)stack_len };
    snapshot->regs = (UprofRegs){ .pc = CODE + read_number(data + 1),
                                  .sp = STACK + read_number(data + 3),
                                  .fp = STACK + read_number(data + 5),
                                  .word_bytes = data[0] & IS_32 ? 4 : 8,
                                  .privilege = data[0] & IS_KERNEL ? 0 : 3 };
    g_autoptr(UprofMem) mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    UprofUnwindContext context = { .snapshot = snapshot,
                                   .mem = mem,
                                   .sym = known->sym,
                                   .method = data[0] & BY_FP ? UPROF_UNWIND_FP : UPROF_UNWIND_AUTO,
                                   .max_depth = DEPTH };

    uprof_mem_begin_sample(mem, snapshot->time_ns, 0);
    uprof_unwind(&context, &fixture->stacks[0]);
    check_stack(fixture, &fixture->stacks[0]);
    uprof_unwind_check_calls(&context, &fixture->stacks[0], &n_checked, &n_agreed);
    g_assert(n_agreed <= n_checked && n_checked < fixture->stacks[0].n);

    /* a second unwind with the cache gives the same stack, unless a search had not enough work */
    snapshot->reset++;
    context.cache = known->cache;
    for (unsigned i = 0; i < 2; i++) {
        uprof_unwind(&context, &fixture->stacks[1]);
        if (uprof_code_text_is_spent(uprof_cache_code_tools(&context)->text))
            return;
        g_assert(fixture->stacks[1].n == fixture->stacks[0].n);
        g_assert(fixture->stacks[1].end == fixture->stacks[0].end);
        for (unsigned n = 0; n < fixture->stacks[0].n; n++)
            g_assert(fixture->stacks[1].frames[n].pc == fixture->stacks[0].frames[n].pc);
    }
}
