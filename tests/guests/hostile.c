/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: hostile stacks, which must not harm an unwinder.
 *
 * Every function spins some milliseconds for each case, with interrupts off, and
 * then restores its registers. Nothing uses %rbp and %rsp while they are invalid.
 */
#include "guest.h"

/* Iterations per case */
#define SPIN (100 * options.unit)
#define LONG_CHAIN 4096
#define BEYOND_RAM 0x7f00000000UL
#define PRESENT 3UL /* present and writable */
#define PRESENT_LARGE 0x83UL

/* Addresses that nothing else uses: entry 3 and later ones of a level 4 table */
#define UNUSED_ADDRESS(n) ((3UL + (n)) << 39)

/* Entry 2 of the tables of every level */
#define SELF_4 (2UL << 39 | 2UL << 30 | 2UL << 21 | 2UL << 12)
#define SELF_ADDRESS (PAGING_LEVELS == 5 ? 2UL << 48 | SELF_4 : SELF_4)

struct frame {
    uintptr_t next;
    uintptr_t return_address;
};

static volatile struct frame frames[LONG_CHAIN] __attribute__((aligned(4096)));

/* Spins with %rbp = @fp and %rsp = @sp */
static inline __attribute__((always_inline)) void
spin_on(uintptr_t fp, uintptr_t sp)
{
    unsigned long count = SPIN;

    __asm__ volatile("mov %%rbp, %%r12\n\t"
                     "mov %%rsp, %%r13\n\t"
                     "mov %[sp], %%rsp\n\t"
                     "mov %[fp], %%rbp\n"
                     "1:\n\t"
                     "dec %[count]\n\t"
                     "jnz 1b\n\t"
                     "mov %%r13, %%rsp\n\t"
                     "mov %%r12, %%rbp"
                     : [count] "+&r"(count)
                     : [fp] "r"(fp), [sp] "r"(sp)
                     : "r12", "r13", "memory", "cc");
}

/* Spins with %rbp = @fp; %rsp stays valid */
static inline __attribute__((always_inline)) void
spin(uintptr_t fp)
{
    uintptr_t sp;

    __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
    spin_on(fp, sp);
}

static inline __attribute__((always_inline)) uintptr_t
frame_pointer(void)
{
    return (uintptr_t)__builtin_frame_address(0);
}

static void
set_frame(unsigned int i, uintptr_t next, uintptr_t return_address)
{
    frames[i].next = next;
    frames[i].return_address = return_address;
}

/* The saved %rbp in the function's own frame points at this frame */
NOINLINE static void
hostile_self(void)
{
    volatile struct frame *own = (volatile struct frame *)frame_pointer();
    uintptr_t saved = own->next;

    own->next = (uintptr_t)own;
    spin((uintptr_t)own);
    own->next = saved;
}

/* Two frames point at each other; %rbp points at one, then at the other */
NOINLINE static void
hostile_cycle(void)
{
    volatile struct frame *own = (volatile struct frame *)frame_pointer();
    uintptr_t saved = own->next;
    uintptr_t text = (uintptr_t)hostile_cycle + 4;

    set_frame(0, (uintptr_t)&frames[1], text);
    set_frame(1, (uintptr_t)&frames[0], text);
    spin((uintptr_t)&frames[0]);
    spin((uintptr_t)&frames[1]);

    /* The function's own frame, and a frame outside the stack, point at each other */
    set_frame(0, (uintptr_t)own, text);
    own->next = (uintptr_t)&frames[0];
    spin((uintptr_t)own);
    own->next = saved;
}

/* Values that are not the address of a frame */
NOINLINE static void
hostile_wild(void)
{
    static const uintptr_t values[] = {
        0x0000800000000000UL, /* first non-canonical address */
        0x00007ffffffffff8UL, /* record ends at a non-canonical address */
        0xffff7fffffffffffUL, 0xdeadbeefdeadbee8UL,
        0x8000000000000000UL, 0xfffffffffffffff8UL, /* record wraps around */
        0xfffffffffffffff0UL, 0xffffffffffffffffUL,
        0x7fffffffffffffffUL, 8,
    };
    uintptr_t text = (uintptr_t)hostile_wild + 4;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        spin(values[i]);
        spin_on(values[i], values[i]);

        /* The same value in the next frame, and as a return address */
        set_frame(0, values[i], text);
        spin((uintptr_t)&frames[0]);
        set_frame(0, (uintptr_t)&frames[1], values[i]);
        set_frame(1, 0, text);
        spin((uintptr_t)&frames[0]);
    }
}

NOINLINE static void
hostile_unmapped(void)
{
    uintptr_t below = (uintptr_t)stack_region.hole_below + 256;
    uintptr_t above = (uintptr_t)stack_region.hole_above + 256;

    spin(below);
    spin(above);
    spin_on(below, below);
    spin_on(above, below);
    spin_on(frame_pointer(), below);

    /* The first half of this record is mapped, the second half is not */
    spin((uintptr_t)stack_region.hole_above - 8);
    spin(UNUSED_ADDRESS(0));
    spin_on(UNUSED_ADDRESS(0), UNUSED_ADDRESS(0));
}

/* A profiler must not read device registers */
NOINLINE static void
hostile_mmio(void)
{
    static const uintptr_t values[] = {
        LAPIC_BASE, LAPIC_BASE + 0x20, HPET_BASE, HPET_BASE + 0xf0, 0xfec00000, 0xb8000, 0xfffffff0,
    };
    uintptr_t text = (uintptr_t)hostile_mmio + 4;

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        spin(values[i]);
        spin_on(values[i], values[i]);
        set_frame(0, values[i], text);
        spin((uintptr_t)&frames[0]);
    }
}

NOINLINE static void
hostile_misaligned(void)
{
    uintptr_t text = (uintptr_t)hostile_misaligned + 4;

    for (unsigned int i = 0; i < 8; i++)
        set_frame(i, (uintptr_t)&frames[i + 1] + 1, text);
    for (unsigned int i = 1; i < 8; i++) {
        spin((uintptr_t)&frames[0] + i);
        spin(frame_pointer() + i);
    }
    /* A record that crosses the end of a page */
    spin((uintptr_t)&frames[PAGE_SIZE / sizeof(frames[0])] - 4);
}

/* A long ascending chain of frames: first with a loop at its end, then with an end */
NOINLINE static void
hostile_long(void)
{
    uintptr_t text = (uintptr_t)hostile_long + 4;

    for (unsigned int i = 0; i < LONG_CHAIN; i++)
        set_frame(i, (uintptr_t)&frames[(i + 1) % LONG_CHAIN], text);
    spin((uintptr_t)&frames[0]);
    set_frame(LONG_CHAIN - 1, 0, text);
    spin((uintptr_t)&frames[0]);
}

/*
 * Makes addresses with invalid page tables.  The guest never accesses these
 * addresses, so the tables do not harm the guest.
 */
static void
prepare_page_tables(void)
{
    /* SELF_ADDRESS: the top table is also the table of every other level, and the page */
    paging_set_entry(SELF_ADDRESS, PAGING_LEVELS - 1, paging_root_address() | PRESENT);
    /* 1: a table beyond the end of RAM */
    paging_set_entry(UNUSED_ADDRESS(1), 1, BEYOND_RAM | PRESENT);
    /* 2: a small page and a large page beyond the end of RAM */
    paging_set_entry(UNUSED_ADDRESS(2), 0, BEYOND_RAM | PRESENT);
    paging_set_entry(UNUSED_ADDRESS(2) + 0x40000000, 1, BEYOND_RAM | PRESENT_LARGE);
    /* 3: tables in device registers */
    paging_set_entry(UNUSED_ADDRESS(3), 1, LAPIC_BASE | PRESENT);
    paging_set_entry(UNUSED_ADDRESS(3) + 0x40000000, 2, HPET_BASE | PRESENT);
    /* 4, 5: reserved bits: PS at a level that has no large pages; all bits set */
    paging_set_entry(UNUSED_ADDRESS(4), 3, PRESENT_LARGE);
    paging_set_entry(UNUSED_ADDRESS(5), 2, ~0UL);
}

NOINLINE static void
hostile_pagetable(void)
{
    static const uintptr_t values[] = {
        SELF_ADDRESS,
        SELF_ADDRESS & ~0x1ff000UL,
        UNUSED_ADDRESS(1),
        UNUSED_ADDRESS(2),
        UNUSED_ADDRESS(2) + 0x40000000,
        UNUSED_ADDRESS(3),
        UNUSED_ADDRESS(3) + 0x40000000,
        UNUSED_ADDRESS(4),
        UNUSED_ADDRESS(5),
    };

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        spin(values[i]);
        spin_on(values[i] + 64, values[i] + 64);
    }
}

NOINLINE void
hostile_loop(void)
{
    prepare_page_tables();
    for (;;) {
        hostile_self();
        hostile_cycle();
        hostile_wild();
        hostile_unmapped();
        hostile_mmio();
        hostile_misaligned();
        hostile_long();
        hostile_pagetable();
        uprof_counter++;
    }
}
