/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page tables of every mode: Intel SDM, volume 3, chapter 4.
 */
#include "paging-priv.h"

#define ENTRY_PRESENT UINT64_C(0x1)
#define ENTRY_WRITABLE UINT64_C(0x2)
#define ENTRY_LARGE UINT64_C(0x80)
#define ENTRY_NX (UINT64_C(1) << 63)
#define ENTRY_FRAME UINT64_C(0x000ffffffffff000)

/* A format of page tables. */
typedef enum {
    MODE_OFF,
    MODE_32BIT,
    MODE_PAE,
    MODE_4LEVEL,
    MODE_5LEVEL,
    /* Paravirtual Xen guests: the tables hold machine frames, and all pages are small. */
    MODE_XEN_PV32,
    MODE_XEN_PV64,
} Mode;

/* The tables of a mode. */
typedef struct {
    const char *name;
    uint64_t root_mask;   /* bits of CR3 that are the root's address */
    uint8_t levels;       /* of tables */
    uint8_t index_bits;   /* of an address, for each level */
    uint8_t top_bits;     /* the same for the topmost level */
    uint8_t entry_bytes;  /* 4 or 8 */
    uint8_t address_bits; /* of a guest-virtual address */
    uint8_t large_levels; /* levels that may map a large page: bit N-1 for level N from below */
} Layout;

/* clang-format off */
static const Layout layouts[] = {
    [MODE_OFF]      = { "off",         0,           0, 0,  0,  0, 32, 0x0 },
    [MODE_32BIT]    = { "32-bit",      0xfffff000,  2, 10, 10, 4, 32, 0x2 },
    [MODE_PAE]      = { "PAE",         0xffffffe0,  3, 9,  2,  8, 32, 0x2 },
    [MODE_4LEVEL]   = { "4-level",     ENTRY_FRAME, 4, 9,  9,  8, 48, 0x6 },
    [MODE_5LEVEL]   = { "5-level",     ENTRY_FRAME, 5, 9,  9,  8, 57, 0x6 },
    [MODE_XEN_PV32] = { "Xen PV PAE",  ENTRY_FRAME, 3, 9,  2,  8, 32, 0x0 },
    [MODE_XEN_PV64] = { "Xen PV",      ENTRY_FRAME, 4, 9,  9,  8, 48, 0x0 },
};
/* clang-format on */

static Mode
find_mode(const UprofRegs *regs)
{
    const uint64_t cr4 = regs->sys[UPROF_X86_CR4];

    if (regs->sys[UPROF_X86_XEN_PV] == 64)
        return MODE_XEN_PV64;
    if (regs->sys[UPROF_X86_XEN_PV] == 32)
        return MODE_XEN_PV32;
    if (!(regs->sys[UPROF_X86_CR0] & UPROF_X86_CR0_PG))
        return MODE_OFF;
    if (regs->sys[UPROF_X86_EFER] & UPROF_X86_EFER_LMA)
        return cr4 & UPROF_X86_CR4_LA57 ? MODE_5LEVEL : MODE_4LEVEL;
    return cr4 & UPROF_X86_CR4_PAE ? MODE_PAE : MODE_32BIT;
}

static const char *
name_mode(const UprofRegs *regs)
{
    return layouts[find_mode(regs)].name;
}

static bool
is_canonical(uint64_t gva, unsigned bits)
{
    const int64_t high = (int64_t)gva >> (bits - 1);

    return high == 0 || high == -1;
}

/* Xen maps itself here in paravirtual guests (Xen, arch-x86/xen-x86_64.h). */
static bool
is_xen_range(Mode mode, uint64_t gva)
{
    return mode == MODE_XEN_PV64 && gva >= UINT64_C(0xffff800000000000) &&
           gva < UINT64_C(0xffff880000000000);
}

/* A 4 MiB page has bits 39:32 of its address in bits 20:13 of its entry (PSE-36). */
static uint64_t
get_large_frame(const Layout *layout, uint64_t entry, uint64_t page_len)
{
    if (layout->entry_bytes == 4)
        return (entry & 0xffc00000) | (entry >> 13 & 0xff) << 32;
    return entry & ENTRY_FRAME & ~(page_len - 1);
}

/* All addresses of a vCPU have the same tables. */
static uint64_t
get_space(const UprofRegs *regs, G_GNUC_UNUSED uint64_t gva)
{
    const Mode mode = find_mode(regs);
    const bool has_pse = regs->sys[UPROF_X86_CR4] & UPROF_X86_CR4_PSE;
    const bool has_nx = regs->sys[UPROF_X86_EFER] & UPROF_X86_EFER_NXE;

    /* The lowest five bits of a root are 0. */
    return (regs->sys[UPROF_X86_CR3] & layouts[mode].root_mask) | (uint64_t)mode << 2 |
           (uint64_t)has_pse << 1 | (uint64_t)has_nx;
}

static void
walk_tables(UprofReadEntry *read_entry, void *data, const UprofRegs *regs, uint64_t gva,
            UprofWalk *walk)
{
    const Mode mode = find_mode(regs);
    const Layout *layout = &layouts[mode];
    const bool has_nx = regs->sys[UPROF_X86_EFER] & UPROF_X86_EFER_NXE;

    *walk = (UprofWalk){ .page_len = UPROF_PAGE_BYTES, .entry_bytes = layout->entry_bytes };
    if (layout->address_bits == 32)
        gva &= UINT32_MAX;
    else if (!is_canonical(gva, layout->address_bits) || is_xen_range(mode, gva))
        return;

    bool may_execute = true, may_write = true;
    uint64_t page_len = UPROF_PAGE_BYTES;
    uint64_t table = regs->sys[UPROF_X86_CR3] & layout->root_mask;
    uint64_t frame = gva & ~(page_len - 1);

    for (unsigned level = layout->levels; level >= 1; level--) {
        const unsigned shift = 12 + (level - 1) * layout->index_bits;
        const unsigned bits = level == layout->levels ? layout->top_bits : layout->index_bits;
        const uint64_t index = gva >> shift & ((UINT64_C(1) << bits) - 1);
        const uint64_t at = table + index * layout->entry_bytes;
        uint64_t entry;

        walk->cut = !read_entry(data, at, layout->entry_bytes, &entry);
        if (walk->cut)
            return;
        walk->entries[walk->n_entries++] = (UprofTableEntry){ .gpa = at, .value = entry };
        if (!(entry & ENTRY_PRESENT))
            return;
        if (has_nx && layout->entry_bytes == 8 && (entry & ENTRY_NX))
            may_execute = false;
        may_write = may_write && (entry & ENTRY_WRITABLE);
        /* Without CR4.PSE bit 7 has no meaning in 32-bit tables. Other modes imply PSE. */
        const bool large_ok = mode != MODE_32BIT || (regs->sys[UPROF_X86_CR4] & UPROF_X86_CR4_PSE);
        if (level > 1 && (entry & ENTRY_LARGE) && large_ok) {
            if (!(layout->large_levels & 1u << (level - 1)))
                return;
            page_len = UINT64_C(1) << shift;
            frame = get_large_frame(layout, entry, page_len);
            break;
        }
        table = frame = layout->entry_bytes == 4 ? entry & 0xfffff000 : entry & ENTRY_FRAME;
    }

    walk->frame = frame;
    walk->page_len = page_len;
    walk->mapped = true;
    walk->executable = may_execute;
    walk->writable = may_write;
}

static void
use_process(UprofRegs *regs, uint64_t root)
{
    regs->sys[UPROF_X86_CR3] = root;
}

const UprofPaging uprof_paging_x86 = {
    .walk = walk_tables,
    .space = get_space,
    .name = name_mode,
    .use_process = use_process,
};
