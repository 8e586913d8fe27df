/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Code, stack and page tables of an aarch64 guest. The input begins with a header:
 *
 *   0   bits: 1: kernel mode; 2: only frame pointers are used
 *   1   16 bits each: program counter, from the start of the code; stack pointer, frame pointer and
 *       return address, from the start of the stack, the stack, and the code; length of the code
 *   11  64 bits: TCR_EL1
 *   19  16 bits: page-table root, in units of 64 bytes from the start of RAM
 *   21  64 bits: an address to translate
 *   29  16 bits: what the hypervisor says about this address, in units of 64 bytes
 *
 * Then come the code, and the bytes from the start of the stack to the end of RAM, in which page
 * tables may be.
 */
#include "fuzz.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "memory-guest.h"
#include "uprof/unwind.h"

enum {
    IS_KERNEL = 1,
    BY_FP = 2,
    HEADER = 31,
    RAM = 0x40000000,
    RAM_LEN = 0x20000,
    CODE = RAM + 0x1000,
    CODE_LEN = 0x2000,
    STACK = RAM + 0x10000,
    STACK_LEN = 0x1000,
    DEPTH = 64,
    UNIT = 64,
};

static const char symbols[] = "0000000040001000 T _start\n"
                              "0000000040001040 T first\n"
                              "0000000040001100 t second\n"
                              "0000000040001200 T third\n"
                              "0000000040002000 T last\n";

typedef struct {
    MemoryGuest *guest;
    UprofNames *names;
    UprofSym *sym;
    UprofSnapshot snapshot;
    UprofStack stack;
    uint64_t gva, gpa; /* what the hypervisor says */
} Fixture;

static Fixture *fixture;

static bool
translate(G_GNUC_UNUSED MemoryGuest *guest, G_GNUC_UNUSED unsigned vcpu, uint64_t gva,
          uint64_t *gpa)
{
    *gpa = fixture->gpa + (gva - fixture->gva);
    return gva - fixture->gva < UPROF_PAGE_BYTES;
}

/* All inputs share the fixture. Only the guest's memory differs. */
static void
make_fixture(void)
{
    const MemoryPlan plan = { .n_vcpus = 1,
                              .grain = UPROF_GRAIN_NONE,
                              .ram_len = RAM_LEN,
                              .needs_roots = true,
                              .arch = "aarch64" };
    g_autofree char *path = NULL;
    g_autoptr(GError) error = NULL;

    fixture = g_new0(Fixture, 1);
    fixture->guest = memory_guest_open(&plan);
    fixture->guest->ram_gpa = RAM;
    fixture->guest->translation = translate;
    fixture->names = uprof_names_new();
    fixture->sym = uprof_sym_new(fixture->guest->base.arch, fixture->names);
    close(g_file_open_tmp("fuzz-aarch64-XXXXXX", &path, NULL));
    g_assert_true(g_file_set_contents(path, symbols, -1, NULL));
    g_assert_true(uprof_sym_add_file(fixture->sym, path, true, &error));
    g_unlink(path);
}

static uint16_t
read_number(const uint8_t *data)
{
    return (uint16_t)(data[0] | data[1] << 8);
}

static uint64_t
read_long(const uint8_t *data)
{
    uint64_t value;

    memcpy(&value, data, sizeof(value));
    return GUINT64_FROM_LE(value);
}

static void
unwind(const uint8_t *data)
{
    UprofSnapshot *snapshot = &fixture->snapshot;
    UprofStack *stack = &fixture->stack;
    g_autoptr(UprofMem) mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    const UprofUnwindContext context = { .snapshot = snapshot,
                                         .mem = mem,
                                         .sym = fixture->sym,
                                         .method =
                                             data[0] & BY_FP ? UPROF_UNWIND_FP : UPROF_UNWIND_AUTO,
                                         .max_depth = DEPTH };
    unsigned n_checked, n_agreed;

    uprof_mem_begin_sample(mem, snapshot->time_ns, 0);
    uprof_unwind(&context, stack);
    g_assert(stack->n >= 1 && stack->n <= DEPTH && stack->end < UPROF_N_ENDS);
    g_assert(stack->frames[0].pc == snapshot->regs.pc && !stack->frames[0].is_return);
    for (unsigned i = 1; i < stack->n; i++)
        g_assert(stack->frames[i].is_return && stack->frames[i].sp >= stack->frames[i - 1].sp);
    uprof_unwind_check_calls(&context, stack, &n_checked, &n_agreed);
    g_assert(n_agreed <= n_checked && n_checked < stack->n);
}

static void
walk(const uint8_t *data)
{
    g_autoptr(UprofMem) mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_WORKER);
    UprofRegs regs = { .word_bytes = 8 };
    UprofMapping mapping;

    regs.sys[UPROF_ARM_SCTLR] = UPROF_ARM_SCTLR_M;
    regs.sys[UPROF_ARM_TCR] = read_long(data + 11);
    regs.sys[UPROF_ARM_TTBR0] = regs.sys[UPROF_ARM_TTBR1] =
        RAM + (uint64_t)read_number(data + 19) * UNIT;
    if (!uprof_mem_find(mem, 0, &regs, fixture->gva, &mapping))
        return;
    g_assert(mapping.left > 0 && mapping.left <= UINT64_C(1) << 42 && mapping.gpa >> 52 == 0);
}

/* If a search finds roots, the walk leads to where the hypervisor says. */
static void
search(void)
{
    g_autoptr(UprofMem) mem = uprof_mem_new(&fixture->guest->base, UPROF_LANE_SAMPLER);
    UprofRegs regs = { .word_bytes = 8, .pc = fixture->gva, .sp = fixture->gva };
    uint8_t byte;
    uint64_t gpa, left;

    memcpy(regs.sys, fixture->guest->base.found_sys, sizeof(regs.sys));
    g_assert(uprof_mem_copy(mem, 0, &regs, regs.sp, &byte, 1) == 0);
    uprof_mem_check(mem);
    memcpy(regs.sys, fixture->guest->base.found_sys, sizeof(regs.sys));
    if (uprof_mem_translate(mem, 0, &regs, fixture->gva, &gpa, &left, NULL))
        g_assert(gpa == fixture->gpa);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEADER)
        return;
    if (!fixture)
        make_fixture();
    const size_t left = size - HEADER;
    const size_t code_len = MIN(MIN(left, (size_t)CODE_LEN), read_number(data + 9));
    const size_t rest_len = MIN(left - code_len, (size_t)(RAM + RAM_LEN - STACK));
    UprofSnapshot *snapshot = &fixture->snapshot;

    memset(fixture->guest->ram, 0, RAM_LEN);
    memory_guest_put(fixture->guest, CODE, data + HEADER, code_len);
    memory_guest_put(fixture->guest, STACK, data + HEADER + code_len, rest_len);
    fixture->gva = read_long(data + 21);
    fixture->gpa = RAM + (uint64_t)read_number(data + 29) * UNIT;
    snapshot->n_windows = 1;
    snapshot->time_ns += UINT64_C(20000000000); /* what is remembered is too old */
    snapshot->windows[0] = (UprofWindow){ .gva = STACK, .len = STACK_LEN };
    memcpy(snapshot->bytes, fixture->guest->ram + (STACK - RAM), STACK_LEN);
    snapshot->regs = (UprofRegs){ .pc = CODE + read_number(data + 1),
                                  .sp = STACK + read_number(data + 3),
                                  .fp = STACK + read_number(data + 5),
                                  .word_bytes = 8,
                                  .privilege = data[0] & IS_KERNEL ? 0 : 3 };
    snapshot->regs.reg[UPROF_ARM_LR] = CODE + read_number(data + 7);
    unwind(data);
    walk(data);
    search();
}
