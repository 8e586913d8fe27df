/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Page tables of the translation regime EL1&0, stage 1: Arm Architecture Reference Manual for
 * A-profile (DDI 0487), D8.2 and D8.3.
 */
#include "paging-priv.h"

/* Descriptors (D8.3) */
#define ENTRY_VALID UINT64_C(0x1)
#define ENTRY_TABLE UINT64_C(0x2) /* or a page, on the lowest level */
#define ENTRY_READ_ONLY (UINT64_C(1) << 7)
#define ENTRY_DIRTY_MODIFIER (UINT64_C(1) << 51) /* hardware may clear READ_ONLY */
#define ENTRY_PXN (UINT64_C(1) << 53)
#define ENTRY_UXN (UINT64_C(1) << 54)
#define TABLE_PXN (UINT64_C(1) << 59)
#define TABLE_UXN (UINT64_C(1) << 60)
#define TABLE_READ_ONLY (UINT64_C(1) << 62)

/* TCR_EL1 (D19.2): where the fields of both halves lie */
#define TCR_DS (UINT64_C(1) << 59)
#define TCR_LOWER_HAS_TAG (UINT64_C(1) << 37)

enum {
    TOP_BYTE_SHIFT = 56,
    HALF_BIT = 55, /* of an address: which half it lies in */
    ENTRY_BYTES = 8,
    LEAST_UNUSED_BITS = 12, /* of an address: it has 52 bits at most */
    MOST_UNUSED_BITS = 48,
    PHYSICAL_BITS_MAX = 52,
    LARGE_ADDRESS_BITS = 48, /* more bits of an address need 64 KiB pages, or TCR_EL1.DS */
    ROOT_UNIT_SHIFT = 6,     /* a root is aligned to 64 bytes at least */
};

/* A half of the virtual addresses. */
typedef struct {
    uint64_t root;
    uint8_t page_shift; /* 12, 14 or 16; 0: the registers are not those of a processor */
    uint8_t bits;       /* of an address */
    bool has_tag;       /* the top byte of an address does not count */
    bool is_upper;
    bool has_ds; /* TCR_EL1.DS: physical addresses of 52 bits with small pages */
} Half;

static bool
is_on(const UprofRegs *regs)
{
    return regs->sys[UPROF_ARM_SCTLR] & UPROF_ARM_SCTLR_M;
}

static uint64_t
get_bits(uint64_t value, unsigned shift, unsigned n)
{
    return value >> shift & ((UINT64_C(1) << n) - 1);
}

static Half
get_half(const UprofRegs *regs, bool is_upper)
{
    /* TG0 and TG1 name the same sizes in different orders. */
    static const uint8_t shifts[2][4] = { { 12, 16, 14, 0 }, { 0, 14, 12, 16 } };
    const uint64_t tcr = regs->sys[UPROF_ARM_TCR];
    const unsigned unused = (unsigned)get_bits(tcr, is_upper ? 16 : 0, 6);
    const bool is_off = tcr >> (is_upper ? 23 : 7) & 1;
    Half half = {
        .page_shift = shifts[is_upper][get_bits(tcr, is_upper ? 30 : 14, 2)],
        .bits = (uint8_t)(64 - unused),
        .has_tag = tcr >> (is_upper ? 38 : 37) & 1,
        .is_upper = is_upper,
        .has_ds = tcr & TCR_DS,
    };

    if (is_off || unused < LEAST_UNUSED_BITS || unused > MOST_UNUSED_BITS ||
        (half.bits > LARGE_ADDRESS_BITS && half.page_shift != 16 && !half.has_ds) ||
        half.bits <= half.page_shift)
        half.page_shift = 0;
    /* Bits 47:1 are the address, and bits 5:2 are bits 51:48 of a large one. A larger table than
     * one of 64 bytes is aligned to its size, so that these bits are 0 otherwise. */
    const uint64_t ttbr = regs->sys[is_upper ? UPROF_ARM_TTBR1 : UPROF_ARM_TTBR0];
    half.root = get_bits(ttbr, ROOT_UNIT_SHIFT, 48 - ROOT_UNIT_SHIFT) << ROOT_UNIT_SHIFT;
    if (half.has_ds || half.page_shift == 16)
        half.root |= get_bits(ttbr, 2, 4) << 48;
    return half;
}

/* Bits above those of the half must all be the same as bit 55. */
static bool
is_canonical(const Half *half, uint64_t gva)
{
    const unsigned n = (half->has_tag ? TOP_BYTE_SHIFT : 64) - half->bits;

    return get_bits(gva, half->bits, n) == (half->is_upper ? (UINT64_C(1) << n) - 1 : 0);
}

/* The physical address in an entry that leads to a table, or to a page of 1 << @shift bytes */
static uint64_t
get_frame(const Half *half, uint64_t entry, unsigned shift)
{
    uint64_t frame = get_bits(entry, shift, 48 - shift) << shift;

    if (half->page_shift == 16)
        frame |= get_bits(entry, 12, 4) << 48;
    else if (half->has_ds)
        frame = get_bits(entry, shift, 50 - shift) << shift | get_bits(entry, 8, 2) << 50;
    return frame;
}

/* May an entry on @level (3 for the lowest, -1 for the highest) map memory itself? */
static bool
may_be_block(const Half *half, int level)
{
    if (level == 2)
        return true;
    if (level == 1)
        return half->page_shift != 14 || half->has_ds;
    return level == 0 && half->page_shift == 12 && half->has_ds;
}

static unsigned
count_levels(const Half *half)
{
    const unsigned level_bits = half->page_shift - 3;

    return (half->bits - half->page_shift + level_bits - 1) / level_bits;
}

static uint64_t
get_space(const UprofRegs *regs, uint64_t gva)
{
    const Half half = get_half(regs, gva >> HALF_BIT & 1);

    if (!is_on(regs))
        return 1; /* no tables have this number */
    return half.root >> ROOT_UNIT_SHIFT << 14 | (uint64_t)half.page_shift << 9 |
           (uint64_t)(64 - half.bits) << 3 | (uint64_t)half.has_tag << 2 |
           (uint64_t)half.is_upper << 1 | (uint64_t)half.has_ds;
}

static void
walk_tables(UprofReadEntry *read_entry, void *data, const UprofRegs *regs, uint64_t gva,
            UprofWalk *walk)
{
    const Half half = get_half(regs, gva >> HALF_BIT & 1);

    *walk = (UprofWalk){ .page_len = UPROF_PAGE_BYTES, .entry_bytes = ENTRY_BYTES };
    if (!is_on(regs)) {
        walk->mapped = walk->executable = walk->writable = gva >> PHYSICAL_BITS_MAX == 0;
        walk->frame = gva & ~(uint64_t)(UPROF_PAGE_BYTES - 1);
        return;
    }
    if (half.page_shift == 0 || !is_canonical(&half, gva))
        return;

    const unsigned level_bits = half.page_shift - 3;
    bool may_execute[2] = { true, true }; /* in user mode, in the kernel */
    bool may_write = true;
    uint64_t table = half.root;

    for (int level = 4 - (int)count_levels(&half); level <= 3; level++) {
        const unsigned shift = half.page_shift + (unsigned)(3 - level) * level_bits;
        const unsigned bits = MIN(level_bits, half.bits - shift);
        const uint64_t at = table + get_bits(gva, shift, bits) * ENTRY_BYTES;
        const bool is_page = level == 3;
        uint64_t entry;

        walk->cut = !read_entry(data, at, ENTRY_BYTES, &entry);
        if (walk->cut)
            return;
        walk->entries[walk->n_entries++] = (UprofTableEntry){ .gpa = at, .value = entry };
        if (!(entry & ENTRY_VALID))
            return;
        if (!is_page && (entry & ENTRY_TABLE)) {
            may_execute[0] &= !(entry & TABLE_UXN);
            may_execute[1] &= !(entry & TABLE_PXN);
            may_write &= !(entry & TABLE_READ_ONLY);
            table = get_frame(&half, entry, half.page_shift);
            continue;
        }
        if (is_page ? !(entry & ENTRY_TABLE) : !may_be_block(&half, level))
            return;
        walk->mapped = true;
        walk->frame = get_frame(&half, entry, shift);
        walk->page_len = UINT64_C(1) << shift;
        walk->executable =
            (may_execute[0] && !(entry & ENTRY_UXN)) || (may_execute[1] && !(entry & ENTRY_PXN));
        walk->writable =
            may_write && (!(entry & ENTRY_READ_ONLY) || (entry & ENTRY_DIRTY_MODIFIER));
        return;
    }
}

static const char *
name_mode(const UprofRegs *regs)
{
    static const char *const names[] = {
        [12] = "4 KiB pages", [14] = "16 KiB pages", [16] = "64 KiB pages"
    };
    /* The half in which the code runs. */
    const Half half = get_half(regs, regs->pc >> HALF_BIT & 1);

    if (!is_on(regs))
        return "off";
    return half.page_shift == 0 ? "unknown" : names[half.page_shift];
}

/* The lower half gets the format of the upper one. The top byte of its addresses does not count. */
static void
use_process(UprofRegs *regs, uint64_t root)
{
    static const uint8_t granules[] = { [12] = 0, [14] = 2, [16] = 1 };
    const Half upper = get_half(regs, true);
    const uint64_t upper_fields = UINT64_MAX << 16;
    uint64_t *tcr = &regs->sys[UPROF_ARM_TCR];

    if (upper.page_shift == 0)
        return;
    *tcr = (*tcr & upper_fields) | (uint64_t)granules[upper.page_shift] << 14 |
           (uint64_t)(64 - upper.bits) | TCR_LOWER_HAS_TAG;
    regs->sys[UPROF_ARM_TTBR0] = get_bits(root, 0, 48) | get_bits(root, 48, 4) << 2;
}

const UprofPaging uprof_paging_aarch64 = {
    .walk = walk_tables,
    .space = get_space,
    .name = name_mode,
    .use_process = use_process,
};
