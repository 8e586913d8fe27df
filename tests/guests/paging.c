/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Test guests of virt-uprof: page tables with PAGING_LEVELS levels.
 *
 * - Large pages (4 MiB without PAE, else 2 MiB) map physical memory to itself:
 *   the first 4 GiB in a 64-bit guest, 3 GiB in a 32-bit guest.  4 KiB pages
 *   map the memory of the large page that contains stack_region.
 * - The stack can have an alias at stack_alias().  The alias consists of 4 KiB
 *   pages in reverse order, or of one large or huge page.
 */
#include "guest.h"

#if PAGING_LEVELS == 2
typedef uint32_t entry_t;
#define INDEX_BITS 10
#else
typedef uint64_t entry_t;
#define INDEX_BITS 9
#endif

#define ENTRIES (1UL << INDEX_BITS)
#define ENTRY_PRESENT 0x001
#define ENTRY_WRITABLE 0x002
#define ENTRY_LARGE 0x080
#define ADDRESS_MASK ((entry_t)0x000ffffffffff000ULL)
#define TABLES 40

/* The size of the memory that one entry of a table of @level maps; level 0 maps 4 KiB pages */
#define LEVEL_SHIFT(level) (12 + (level)*INDEX_BITS)
#define LEVEL_SIZE(level) ((uint64_t)1 << LEVEL_SHIFT(level))

#ifdef __x86_64__
#define IDENTITY_END 0x100000000ULL
#else
#define IDENTITY_END 0xc0000000ULL
#endif

static entry_t tables[TABLES][ENTRIES] __attribute__((aligned(4096)));
static unsigned int tables_used;
static entry_t *root;

static entry_t *
new_table(void)
{
    if (tables_used == TABLES)
        halt_forever("out of page tables");
    return tables[tables_used++];
}

/* Sets the entry for @va in the table of @level, and makes missing tables above it */
void
paging_set_entry(unsigned long va, unsigned int level, uint64_t entry)
{
    entry_t *table = root;
    entry_t *slot;

    for (unsigned int i = PAGING_LEVELS - 1;; i--) {
        slot = &table[(va >> LEVEL_SHIFT(i)) & (ENTRIES - 1)];
        if (i == level)
            break;
        if (!(*slot & ENTRY_PRESENT)) {
            *slot = (entry_t)(uintptr_t)new_table() | ENTRY_PRESENT;
            /* PAE reserves this bit in the four entries of the top table */
            if (PAGING_LEVELS != 3 || i != 2)
                *slot |= ENTRY_WRITABLE;
        }
        table = (entry_t *)(uintptr_t)(*slot & ADDRESS_MASK);
    }
    *slot = (entry_t)entry;
}

static void
map(unsigned long va, uint64_t pa, unsigned int level)
{
    uint64_t flags = ENTRY_PRESENT | ENTRY_WRITABLE;

    if (level > 0)
        flags |= ENTRY_LARGE;
    paging_set_entry(va, level, pa | flags);
}

unsigned long
paging_root_address(void)
{
    return (unsigned long)(uintptr_t)root;
}

/* Returns the start of the stack's alias, or 0 if there is no alias */
static unsigned long
stack_alias(void)
{
#ifdef __x86_64__
    if (options.high)
        return 0xffffffff80000000UL;
    if (PAGING_LEVELS == 5)
        return 0x00ff000000000000UL;
    if (options.large || options.huge)
        return 0x0000008000000000UL;
#else
    if (options.high || options.large)
        return 0xc0000000UL;
#endif
    return 0;
}

static bool
huge_available(void)
{
    uint32_t eax = 0x80000001;
    uint32_t ebx, ecx, edx;

    __asm__ volatile("cpuid" : "+a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx));
    return PAGING_LEVELS > 3 && (edx & (1U << 26));
}

static void
map_identity(void)
{
    uint64_t region = (uintptr_t)&stack_region;
    uint64_t stack = (uintptr_t)stack_region.stack;
    uint64_t pa;

    for (pa = 0; pa < IDENTITY_END; pa += LEVEL_SIZE(1)) {
        if (pa != region)
            map((unsigned long)pa, pa, 1);
    }
    for (pa = region; pa < region + LEVEL_SIZE(1); pa += PAGE_SIZE) {
        if (pa >= region + sizeof(stack_region) ||
            (pa >= stack && pa < stack + sizeof(stack_region.stack)))
            map((unsigned long)pa, pa, 0);
    }
}

/* Returns the top of the stack */
static unsigned long
map_stack(void)
{
    unsigned long alias = stack_alias();
    unsigned long stack = (unsigned long)(uintptr_t)stack_region.stack;
    unsigned long top = stack + sizeof(stack_region.stack);
    unsigned int level = options.huge ? 2 : 1;
    unsigned long offset;

    if (!alias)
        return top;

    if (options.huge || options.large) {
        offset = top & (unsigned long)(LEVEL_SIZE(level) - 1);
        map(alias, top - offset, level);
        return alias + offset;
    }

    for (unsigned long i = 0; i < STACK_PAGES; i++)
        map(alias + i * PAGE_SIZE, stack + (STACK_PAGES - 1 - i) * PAGE_SIZE, 0);
    return alias + STACK_PAGES * PAGE_SIZE;
}

/* Makes and loads page tables according to options; returns the top of the stack */
unsigned long
paging_setup(void)
{
    unsigned long top;

    if (options.huge && !huge_available())
        halt_forever("no 1 GiB pages");

    root = new_table();
    map_identity();
    top = map_stack();

#ifndef __x86_64__
    {
        unsigned long control;

        /* CR4.PAE or CR4.PSE */
        __asm__ volatile("mov %%cr4, %0" : "=r"(control));
        control |= PAGING_LEVELS == 3 ? 0x20 : 0x10;
        __asm__ volatile("mov %0, %%cr4" : : "r"(control));
    }
#endif
    __asm__ volatile("mov %0, %%cr3" : : "r"(root) : "memory");
#ifndef __x86_64__
    {
        unsigned long control;

        __asm__ volatile("mov %%cr0, %0" : "=r"(control));
        control |= 0x80000000UL;
        __asm__ volatile("mov %0, %%cr0" : : "r"(control) : "memory");
    }
#endif
    return top;
}
