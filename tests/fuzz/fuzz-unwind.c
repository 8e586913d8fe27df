/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stack and the code of a guest, as its unwinders see them: what its code does
 * to its stack, the edges of functions, and frame pointers. The first byte says what it
 * is like: bit 0, 32-bit code; bit 1, in kernel mode; bit 2, by frame pointers alone. Then
 * 16-bit numbers, from where code and stack begin: program counter, stack pointer,
 * frame pointer. Then the length of the code, 16 bits; the code; and the stack. Functions are
 * where the symbols say.
 */
#include "fuzz.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "memory-guest.h"
#include "uprof/unwind.h"

enum {
    IS_32 = 1,
    IS_KERNEL = 2,
    BY_FP = 4,
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

typedef struct {
    MemoryGuest *guest;
    UprofNames *names;
    UprofSym *sym;
    UprofUnwindCache *cache;
    UprofSnapshot snapshot;
    UprofStack stacks[2];
} Fixture;

/* The same for all inputs, but for the guest's memory, which each has for itself. */
static Fixture *
make_fixture(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_NONE, .ram_len = RAM_LEN };
    Fixture *fixture = g_new0(Fixture, 1);
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;

    close(g_file_open_tmp("fuzz-unwind-XXXXXX", &path, NULL));
    g_assert_true(g_file_set_contents(path, symbols, -1, NULL));
    fixture->guest = memory_guest_open(&plan);
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    fixture->cache = uprof_unwind_cache_new();
    g_unlink(path);
    return fixture;
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

    g_assert(stack->n >= 1 && stack->n <= DEPTH && stack->end < UPROF_N_ENDS);
    g_assert(stack->frames[0].pc == regs->pc && !stack->frames[0].is_return);
    g_assert(stack->n == 1 ? stack->top_sp == regs->sp : stack->top_sp > regs->sp);
    for (unsigned i = 1; i < stack->n; i++)
        g_assert(stack->frames[i].is_return);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Fixture *fixture;
    unsigned n_checked, n_agreed;

    if (size < HEADER)
        return 0;
    if (!fixture)
        fixture = make_fixture();
    const size_t left = size - HEADER;
    const size_t code_len = MIN(MIN(left, (size_t)CODE_LEN), read_number(data + 7));
    const size_t stack_len = MIN(left - code_len, (size_t)STACK_LEN);
    UprofSnapshot *snapshot = &fixture->snapshot;

    memset(fixture->guest->ram, 0, RAM_LEN);
    memory_guest_put(fixture->guest, CODE, data + HEADER, code_len);
    memcpy(snapshot->bytes, data + HEADER + code_len, stack_len);
    snapshot->n_windows = 1;
    snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = (uint32_t)stack_len };
    snapshot->regs = (UprofRegs){ .pc = CODE + read_number(data + 1),
                                  .sp = STACK + read_number(data + 3),
                                  .fp = STACK + read_number(data + 5),
                                  .word_bytes = data[0] & IS_32 ? 4 : 8,
                                  .privilege = data[0] & IS_KERNEL ? 0 : 3 };
    g_autoptr(UprofMem) mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    UprofUnwindContext context = { .snapshot = snapshot,
                                   .mem = mem,
                                   .sym = fixture->sym,
                                   .method = data[0] & BY_FP ? UPROF_UNWIND_FP : UPROF_UNWIND_AUTO,
                                   .max_depth = DEPTH };

    uprof_mem_begin_sample(mem, 0, 0);
    uprof_unwind(&context, &fixture->stacks[0]);
    check_stack(fixture, &fixture->stacks[0]);
    uprof_unwind_check_calls(&context, &fixture->stacks[0], &n_checked, &n_agreed);
    g_assert(n_agreed <= n_checked && n_checked < fixture->stacks[0].n);

    /* what is remembered says the same as what is found anew */
    snapshot->reset++;
    context.cache = fixture->cache;
    for (unsigned i = 0; i < 2; i++) {
        uprof_unwind(&context, &fixture->stacks[1]);
        g_assert(fixture->stacks[1].n == fixture->stacks[0].n);
        g_assert(fixture->stacks[1].end == fixture->stacks[0].end);
        for (unsigned n = 0; n < fixture->stacks[0].n; n++)
            g_assert(fixture->stacks[1].frames[n].pc == fixture->stacks[0].frames[n].pc);
    }
    return 0;
}
