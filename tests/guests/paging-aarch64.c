/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: page tables of aarch64, for pages of 1 << PAGE_SHIFT bytes and
 * addresses of ADDRESS_BITS bits.
 *
 * - Blocks map the devices and the RAM to themselves. Pages map the block with stack_region, except
 *   for the two holes.
 * - With the word "high" the stack has an alias in the upper half, whose pages are in reverse
 * order.
 */
#include "guest.h"

#define ENTRY_BITS (PAGE_SHIFT - 3)
#define ENTRIES (1UL << ENTRY_BITS)
#define LEVELS ((ADDRESS_BITS - PAGE_SHIFT + ENTRY_BITS - 1) / ENTRY_BITS)
#define TABLES 12

/* The size of the memory that one entry of a table of @level maps; level 0 maps pages */
#define LEVEL_SHIFT(level) (PAGE_SHIFT + (level)*ENTRY_BITS)
#define LEVEL_SIZE(level) (1UL << LEVEL_SHIFT(level))

/* Descriptors */
#define ENTRY_VALID 1UL
#define ENTRY_TABLE 2UL /* or a page, on the lowest level */
#define ENTRY_NORMAL (0UL << 2)
#define ENTRY_DEVICE (1UL << 2)
#define ENTRY_INNER (3UL << 8) /* shareability; with TCR_EL1.DS it is in TCR_EL1 */
#define ENTRY_ACCESSED (1UL << 10)
#define ENTRY_NOT_GLOBAL (1UL << 11)

#define RAM_BASE 0x40000000UL
#define RAM_END 0x80000000UL
#define ASID 0x5aUL

#define ALIAS (0UL - (1UL << 30)) /* in the upper half, whatever ADDRESS_BITS is */

static uint64_t tables[TABLES][ENTRIES] __attribute__((aligned(1 << PAGE_SHIFT)));
static unsigned int tables_used;
static uint64_t *roots[2]; /* of the lower and of the upper half */

void paging_load(void);

static uint64_t *
new_table(void)
{
    if (tables_used == TABLES)
        halt_forever("out of page tables");
    return tables[tables_used++];
}

static void
map(unsigned long va, uint64_t pa, unsigned int level, uint64_t kind)
{
    uint64_t *table = roots[va >> 55 & 1];
    uint64_t *slot;

    for (unsigned int i = LEVELS - 1;; i--) {
        const unsigned int bits =
            i == LEVELS - 1 ? ADDRESS_BITS - LEVEL_SHIFT(LEVELS - 1) : ENTRY_BITS;
        slot = &table[va >> LEVEL_SHIFT(i) & ((1UL << bits) - 1)];
        if (i == level)
            break;
        if (!(*slot & ENTRY_VALID))
            *slot = (uintptr_t)new_table() | ENTRY_TABLE | ENTRY_VALID;
        table = (uint64_t *)(*slot & (((1UL << 48) - 1) & ~(PAGE_SIZE - 1)));
    }
    *slot = pa | ENTRY_VALID | ENTRY_ACCESSED | kind | (level == 0 ? ENTRY_TABLE : 0) |
            (ADDRESS_BITS == 52 && PAGE_SHIFT < 16 ? 0 : ENTRY_INNER);
}

static void
map_identity(void)
{
    const unsigned long region = (uintptr_t)&stack_region;
    const unsigned long block = region & ~(LEVEL_SIZE(1) - 1);

    for (unsigned long pa = 0; pa < RAM_END; pa += LEVEL_SIZE(1))
        if (pa != block)
            map(pa, pa, 1, pa < RAM_BASE ? ENTRY_DEVICE : ENTRY_NORMAL);
    for (unsigned long pa = block; pa < block + LEVEL_SIZE(1); pa += PAGE_SIZE)
        if (pa < region || pa >= region + sizeof(stack_region) ||
            (pa >= (uintptr_t)stack_region.stack && pa < (uintptr_t)stack_region.hole_above))
            map(pa, pa, 0, ENTRY_NORMAL);
}

/* Returns the top of the stack */
static unsigned long
map_stack(void)
{
    const unsigned long stack = (uintptr_t)stack_region.stack;
    const unsigned long n = STACK_PAGES;

    if (!options.high)
        return stack + sizeof(stack_region.stack);
    for (unsigned long i = 0; i < n; i++)
        map(ALIAS + i * PAGE_SIZE, stack + (n - 1 - i) * PAGE_SIZE, 0, ENTRY_NORMAL);
    return ALIAS + n * PAGE_SIZE;
}

static uint64_t
get_tcr(void)
{
    const uint64_t unused = 64 - ADDRESS_BITS;
    const uint64_t lower = PAGE_SHIFT == 12 ? 0 : PAGE_SHIFT == 14 ? 2 : 1;
    const uint64_t upper = PAGE_SHIFT == 12 ? 2 : PAGE_SHIFT == 14 ? 1 : 3;
    /* write-back, inner shareable */
    uint64_t tcr = unused | unused << 16 | 0x3500 | 0x3500 << 16 | lower << 14 | upper << 30;

    if (ADDRESS_BITS == 52)
        tcr |= 6UL << 32 | (PAGE_SHIFT < 16 ? 1UL << 59 : 0);
    else
        tcr |= 2UL << 32; /* physical addresses of 40 bits */
    /* the ASID is in TTBR1, and the top byte of an address is ignored in the lower half */
    return tcr | 1UL << 22 | 1UL << 37;
}

/* Can the processor use tables of this kind? (ID_AA64MMFR0_EL1 and ID_AA64MMFR2_EL1) */
static bool
has_tables(void)
{
    uint64_t sizes, ranges;

    __asm__ volatile("mrs %0, id_aa64mmfr0_el1" : "=r"(sizes));
    __asm__ volatile("mrs %0, id_aa64mmfr2_el1" : "=r"(ranges));
    if (ADDRESS_BITS == 52 && PAGE_SHIFT == 16)
        return ranges >> 16 & 0xf;
    if (PAGE_SHIFT == 12)
        return ADDRESS_BITS < 52 || (sizes >> 28 & 0xf) == 1;
    if (PAGE_SHIFT == 14)
        return (sizes >> 20 & 0xf) >= (ADDRESS_BITS < 52 ? 1 : 2);
    return (sizes >> 24 & 0xf) == 0;
}

/* Loads the tables into the registers of this vCPU */
void
paging_load(void)
{
    uint64_t control;

    if (options.nopaging)
        return;
    __asm__ volatile("msr mair_el1, %0" : : "r"(0x00ffUL));
    __asm__ volatile("msr tcr_el1, %0" : : "r"(get_tcr()));
    __asm__ volatile("msr ttbr0_el1, %0" : : "r"(roots[0]));
    __asm__ volatile("msr ttbr1_el1, %0" : : "r"((uintptr_t)roots[1] | ASID << 48));
    __asm__ volatile("dsb ish; isb; tlbi vmalle1; dsb ish; isb" : : : "memory");
    __asm__ volatile("mrs %0, sctlr_el1" : "=r"(control));
    control |= 1UL | 1UL << 2 | 1UL << 12; /* MMU, caches */
    __asm__ volatile("msr sctlr_el1, %0; isb" : : "r"(control) : "memory");
}

/* Makes and loads page tables according to options; returns the top of the stack */
unsigned long
paging_setup(void)
{
    unsigned long top = (uintptr_t)stack_region.hole_above;

    if (options.nopaging)
        return top;
    if (!has_tables())
        halt_forever("no such pages");
    roots[0] = new_table();
    roots[1] = new_table();
    map_identity();
    top = map_stack();
    paging_load();
    return top;
}
