/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/orc-table.h"

#include "orc-table-priv.h"

#include <string.h>

#include "uprof/scan.h"

/*
 * ips:     n x i32, each the distance from itself to the code
 * entries: n x { i16 sp offset, i16 bp offset, u16 flags }
 *
 * flags, from bit 0 on: 4 bits sp register, 4 bits bp register, and by version
 *
 *   4.14, 5.12:  2 bits type, end
 *   6.3:         2 bits type, signal, end
 *   6.4, 7.1:    3 bits type, signal
 *
 * All numbers are little-endian.
 */

enum {
    REG_BITS = 4,
    REG_MASK = 0xf,
    N_REGS = 11, /* register numbers that have a meaning */
    TYPE_SHIFT = 8,
    BLOCK = 64, /* addresses; the first of each block is stored apart, so that a cache keeps them */
    RHEL_9_BUILD = 517, /* first build of 5.14.0 that has the entries of 6.4 */
};

/** Format: the flags of one version */
typedef struct {
    uint8_t type_mask;
    uint8_t n_types;
    const uint8_t *types; /* UprofOrcType by number */
    const uint8_t *regs;  /* UprofOrcReg by number */
    uint16_t end;         /* bit of a root frame; 0: the version has none */
    uint16_t signal;      /* bit of an interrupted frame; 0: the version has none */
} Format;

struct _UprofOrc {
    const Format *format;
    uint64_t base;       /* the first address */
    uint64_t start, len; /* range of code that uprof_orc_find() answers for */
    uint32_t n;
    uint32_t *ips;    /* addresses, relative to @base */
    uint32_t *blocks; /* every BLOCK-th address */
    uint8_t *entries; /* copied from the guest */
};

/* clang-format off */

/* Up to 6.3 entries without a stack pointer are undefined, or root frames if the end bit is set. */
static const uint8_t types_4_14[] = { UPROF_ORC_CALL, UPROF_ORC_REGS, UPROF_ORC_PARTIAL };
static const uint8_t types_6_4[] = {
    UPROF_ORC_UNDEFINED, UPROF_ORC_END, UPROF_ORC_CALL, UPROF_ORC_REGS, UPROF_ORC_PARTIAL,
};

/*
 * Up to 5.11 the offset is added before the load (Linux 87ccc826bf1c, "x86/unwind/orc: Change
 * REG_SP_INDIRECT").
 */
static const uint8_t regs_4_14[N_REGS] = {
    UPROF_ORC_REG_SAME, UPROF_ORC_REG_CFA, UPROF_ORC_REG_DX, UPROF_ORC_REG_DI, UPROF_ORC_REG_BP, UPROF_ORC_REG_SP,
    UPROF_ORC_REG_R10, UPROF_ORC_REG_R13, UPROF_ORC_REG_AT_BP_OFFSET, UPROF_ORC_REG_AT_SP_OFFSET, UPROF_ORC_REG_AX,
};
/*
 * AX exists since 96f3b16a9de5 ("objtool: Support Clang RAX DRAP sequence"), in stable releases of
 * 2026.
 */
static const uint8_t regs_5_12[N_REGS] = {
    UPROF_ORC_REG_SAME, UPROF_ORC_REG_CFA, UPROF_ORC_REG_DX, UPROF_ORC_REG_DI, UPROF_ORC_REG_BP, UPROF_ORC_REG_SP,
    UPROF_ORC_REG_R10, UPROF_ORC_REG_R13, UPROF_ORC_REG_AT_BP_OFFSET, UPROF_ORC_REG_AT_SP, UPROF_ORC_REG_AX,
};
static const uint8_t regs_7_1[N_REGS] = {
    UPROF_ORC_REG_SAME, UPROF_ORC_REG_AX, UPROF_ORC_REG_DX, UPROF_ORC_REG_SP, UPROF_ORC_REG_BP, UPROF_ORC_REG_DI,
    UPROF_ORC_REG_R10, UPROF_ORC_REG_R13, UPROF_ORC_REG_CFA, UPROF_ORC_REG_AT_SP, UPROF_ORC_REG_AT_BP_OFFSET,
};

/*
 * Sources: Linux ee9f8fce9964 ("x86/unwind: Add the ORC unwinder"); ffb1b4a41016 ("x86/unwind/orc:
 * Add 'signal' field to ORC metadata"); fb799447ae29 ("x86,objtool: Split UNWIND_HINT_EMPTY in
 * two"). drgn has these formats side by side (libdrgn/orc.h).
 */
static const Format formats[UPROF_ORC_N_VERSIONS] = {
    [UPROF_ORC_4_14] = { 3, G_N_ELEMENTS(types_4_14), types_4_14, regs_4_14, 1 << 10, 0 },
    [UPROF_ORC_5_12] = { 3, G_N_ELEMENTS(types_4_14), types_4_14, regs_5_12, 1 << 10, 0 },
    [UPROF_ORC_6_3]  = { 3, G_N_ELEMENTS(types_4_14), types_4_14, regs_5_12, 1 << 11, 1 << 10 },
    [UPROF_ORC_6_4]  = { 7, G_N_ELEMENTS(types_6_4),  types_6_4,  regs_5_12, 0,       1 << 11 },
    [UPROF_ORC_7_1]  = { 7, G_N_ELEMENTS(types_6_4),  types_6_4,  regs_7_1,  0,       1 << 11 },
};

/*
 * scripts/orc_hash.sh of Linux makes these hashes: the SHA-1 of the lines that matter in
 * arch/x86/include/asm/orc_types.h (b9f174c811e3, "x86/unwind/orc: Add ELF section with ORC version
 * identifier"). The first two are also in drgn, libdrgn/orc_info.c.
 */
static const struct {
    uint8_t hash[UPROF_ORC_HEADER_BYTES];
    UprofOrcVersion version;
} headers[] = {
    { { 0xdb, 0x84, 0xae, 0xd4, 0x10, 0x3b, 0x31, 0xdd, 0x51, 0xe0, 0x17, 0xf8, 0xf7, 0x97, 0x83, 0xca, 0x98, 0x5c, 0x2c, 0x51 }, UPROF_ORC_6_3 },
    { { 0xfe, 0x5d, 0x32, 0xbf, 0x58, 0x1b, 0xd6, 0x3b, 0x2c, 0xa9, 0xa5, 0xc6, 0x5b, 0xa5, 0xa6, 0x25, 0xea, 0xb3, 0xfe, 0x24 }, UPROF_ORC_6_4 },
    { { 0xed, 0xfa, 0x4d, 0x15, 0x55, 0x2f, 0xdd, 0x2e, 0x1d, 0x56, 0x67, 0x97, 0x28, 0x41, 0x63, 0x79, 0xf2, 0xfe, 0x45, 0x34 }, UPROF_ORC_6_4 }, /* with AX */
    { { 0x13, 0x7c, 0x36, 0xad, 0x76, 0x27, 0xc4, 0xdd, 0x55, 0x93, 0x21, 0x76, 0xbb, 0x0e, 0xcd, 0xbd, 0x50, 0x41, 0xfc, 0x82 }, UPROF_ORC_7_1 },
};

/* The newest release comes first. */
static const struct {
    unsigned major, minor;
    UprofOrcVersion version;
} releases[] = {
    { 7, 1,  UPROF_ORC_7_1 },
    { 6, 4,  UPROF_ORC_6_4 },
    { 6, 3,  UPROF_ORC_6_3 },
    { 5, 12, UPROF_ORC_5_12 },
    { 4, 14, UPROF_ORC_4_14 },
};
/* clang-format on */

/* ---- Versions ---- */

/* @text: (inout): loses the number at its start */
static bool
take_number(UprofSlice *text, uint64_t *number)
{
    const char *digits = text->data;
    UprofSlice found;
    size_t len = 0;

    while (len < text->len && g_ascii_isdigit(digits[len]))
        len++;
    if (!uprof_slice_sub(*text, 0, len, &found) ||
        !uprof_slice_to_uint(found, 10, 0, UINT32_MAX, number))
        return false;
    return uprof_slice_sub(*text, len, text->len - len, text);
}

/*
 * Red Hat Enterprise Linux 9 has the entries of 6.4 without a header (drgn issue 578,
 * "Unknown ORC entry type 5 on RHEL 9 kernel"). @patch: the text behind "5.14"
 */
static bool
is_rhel_9(UprofSlice patch)
{
    UprofSlice before, build;
    uint64_t number;

    return uprof_slice_find(patch, ".el9", NULL) &&
           uprof_slice_split(patch, '-', &before, &build) && take_number(&build, &number) &&
           number >= RHEL_9_BUILD;
}

static UprofOrcVersion
find_release_version(const char *release)
{
    UprofSlice text = { release, strlen(release) }, rest;
    uint64_t major, minor;

    if (!take_number(&text, &major) || !uprof_slice_starts(text, ".") ||
        !uprof_slice_sub(text, 1, text.len - 1, &rest) || !take_number(&rest, &minor))
        return UPROF_ORC_UNKNOWN;
    if (major == 5 && minor == 14 && is_rhel_9(rest))
        return UPROF_ORC_6_4;
    for (size_t i = 0; i < G_N_ELEMENTS(releases); i++)
        if (major > releases[i].major || (major == releases[i].major && minor >= releases[i].minor))
            return releases[i].version;
    return UPROF_ORC_UNKNOWN;
}

UprofOrcVersion
uprof_orc_version(UprofSlice header, const char *release)
{
    if (header.len == 0)
        return find_release_version(release);
    for (size_t i = 0; i < G_N_ELEMENTS(headers); i++)
        if (header.len == UPROF_ORC_HEADER_BYTES &&
            memcmp(header.data, headers[i].hash, UPROF_ORC_HEADER_BYTES) == 0)
            return headers[i].version;
    return UPROF_ORC_UNKNOWN;
}

const char *
uprof_orc_version_name(unsigned version)
{
    static const char *const names[UPROF_ORC_N_VERSIONS] = {
        [UPROF_ORC_UNKNOWN] = "?", [UPROF_ORC_4_14] = "4.14", [UPROF_ORC_5_12] = "5.12",
        [UPROF_ORC_6_3] = "6.3",   [UPROF_ORC_6_4] = "6.4",   [UPROF_ORC_7_1] = "7.1",
    };

    return names[version < UPROF_ORC_N_VERSIONS ? version : UPROF_ORC_UNKNOWN];
}

/* ---- The table ---- */

/* Addresses wrap as in the kernel. Sorted addresses within 4 GiB need no other check. */
static bool
read_ips(UprofOrc *orc, UprofBytes *bytes, uint64_t ips_at, GError **error)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < orc->n; i++) {
        uint32_t raw = 0;
        uprof_bytes_u32(bytes, &raw);
        const uint64_t ip =
            ips_at + (uint64_t)i * UPROF_ORC_IP_BYTES + (uint64_t)(int64_t)(int32_t)raw;
        if (i == 0)
            orc->base = ip;
        const uint64_t offset = ip - orc->base;
        if (offset > UINT32_MAX || offset < last)
            return uprof_bytes_fail(bytes, error, "addresses are not sorted");
        last = orc->ips[i] = (uint32_t)offset;
        if (i % BLOCK == 0)
            orc->blocks[i / BLOCK] = last;
    }
    return true;
}

UprofOrc *
uprof_orc_parse(UprofSlice ips, uint64_t ips_at, UprofSlice entries, UprofOrcVersion version,
                GError **error)
{
    UprofBytes bytes = { .name = "ORC table", .all = ips };
    const size_t n = ips.len / UPROF_ORC_IP_BYTES;
    g_autoptr(UprofOrc) orc = NULL;

    g_assert(version > UPROF_ORC_UNKNOWN && version < UPROF_ORC_N_VERSIONS);
    if (n == 0 || ips.len % UPROF_ORC_IP_BYTES != 0 || entries.len % UPROF_ORC_ENTRY_BYTES != 0 ||
        entries.len / UPROF_ORC_ENTRY_BYTES != n) {
        uprof_bytes_fail(&bytes, error, "%zu bytes of addresses do not match %zu bytes of entries",
                         ips.len, entries.len);
        return NULL;
    }
    if (n > UPROF_ORC_ENTRIES_MAX) {
        uprof_bytes_fail(&bytes, error, "%zu entries are too many", n);
        return NULL;
    }
    orc = g_new0(UprofOrc, 1);
    orc->format = &formats[version];
    orc->n = (uint32_t)n;
    orc->ips = g_new(uint32_t, n);
    orc->blocks = g_new(uint32_t, (n + BLOCK - 1) / BLOCK);
    if (!read_ips(orc, &bytes, ips_at, error))
        return NULL;
    orc->entries = g_memdup2(entries.data, entries.len);
    orc->start = orc->base;
    orc->len = orc->ips[n - 1];
    return g_steal_pointer(&orc);
}

void
uprof_orc_free(UprofOrc *orc)
{
    if (!orc)
        return;
    g_free(orc->ips);
    g_free(orc->blocks);
    g_free(orc->entries);
    g_free(orc);
}

unsigned
uprof_orc_n(const UprofOrc *orc)
{
    return orc->n;
}

void
uprof_orc_limit(UprofOrc *orc, uint64_t start, uint64_t len)
{
    orc->start = start;
    orc->len = len;
}

/* ---- Entries ---- */

static bool
take_type(const Format *format, uint16_t flags, UprofOrcRule *rule)
{
    const unsigned type = flags >> TYPE_SHIFT & format->type_mask;

    if (format->end && (flags & REG_MASK) == 0) {
        rule->type = flags & format->end ? UPROF_ORC_END : UPROF_ORC_UNDEFINED;
        return true;
    }
    if (type >= format->n_types)
        return false;
    rule->type = format->types[type];
    /* versions without the bit: frames of interrupts have the registers that interrupts save */
    rule->is_signal = format->signal ? flags & format->signal : rule->type != UPROF_ORC_CALL;
    return true;
}

static bool
take_regs(const Format *format, uint16_t flags, UprofOrcRule *rule)
{
    const unsigned sp_reg = flags & REG_MASK, bp_reg = flags >> REG_BITS & REG_MASK;

    if (sp_reg >= N_REGS || bp_reg >= N_REGS)
        return false;
    rule->sp_reg = format->regs[sp_reg];
    rule->bp_reg = format->regs[bp_reg];
    return rule->sp_reg != UPROF_ORC_REG_SAME && rule->sp_reg != UPROF_ORC_REG_CFA &&
           (rule->bp_reg == UPROF_ORC_REG_SAME || rule->bp_reg == UPROF_ORC_REG_CFA ||
            rule->bp_reg == UPROF_ORC_REG_BP);
}

static bool
decode_entry(const UprofOrc *orc, uint32_t i, UprofOrcRule *rule)
{
    UprofBytes bytes = { .name = "ORC entry",
                         .all = { orc->entries + (size_t)i * UPROF_ORC_ENTRY_BYTES,
                                  UPROF_ORC_ENTRY_BYTES } };
    uint16_t sp_offset = 0, bp_offset = 0, flags = 0;
    UprofOrcRule found = { 0 };

    uprof_bytes_u16(&bytes, &sp_offset);
    uprof_bytes_u16(&bytes, &bp_offset);
    uprof_bytes_u16(&bytes, &flags);
    if (!take_type(orc->format, flags, &found))
        return false;
    if (found.type == UPROF_ORC_UNDEFINED || found.type == UPROF_ORC_END) {
        *rule = (UprofOrcRule){ .type = found.type };
        return true;
    }
    if (!take_regs(orc->format, flags, &found))
        return false;
    found.sp_offset = (int16_t)sp_offset;
    found.bp_offset = (int16_t)bp_offset;
    *rule = found;
    return true;
}

/* @numbers: sorted; the first one is at most @value. Returns: index of the last such number */
static uint32_t
find_last(const uint32_t *numbers, uint32_t n, uint32_t value)
{
    uint32_t first = 0;

    /* the steps do not depend on the comparisons, so the processor predicts all branches */
    while (n > 1) {
        const uint32_t half = n / 2;

        first = numbers[first + half] <= value ? first + half : first;
        n -= half;
    }
    return first;
}

bool
uprof_orc_find(const UprofOrc *orc, uint64_t pc, UprofOrcRule *rule)
{
    const uint64_t offset = pc - orc->base;

    if (pc - orc->start >= orc->len || offset >= orc->ips[orc->n - 1])
        return false;
    /* if several entries have one address, the last counts; the others only end the entry before */
    const uint32_t block =
        BLOCK * find_last(orc->blocks, (orc->n + BLOCK - 1) / BLOCK, (uint32_t)offset);
    const uint32_t len = MIN(orc->n - block, (uint32_t)BLOCK);
    return decode_entry(orc, block + find_last(orc->ips + block, len, (uint32_t)offset), rule);
}
