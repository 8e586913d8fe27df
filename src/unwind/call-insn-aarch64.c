/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Branches of A64 (Arm ARM, C4.1.66, "Branches, Exception Generating and System instructions")
 */
#include "call-insn-priv.h"

enum { INSN_BYTES = 4 };

/* The signed number in bits @low to @low + @n - 1 of an instruction: a distance in words */
static uint64_t
get_distance(uint32_t insn, unsigned low, unsigned n)
{
    const int32_t number = (int32_t)(insn << (32 - low - n)) >> (32 - n);

    return (uint64_t)(int64_t)number * INSN_BYTES;
}

static void
match_call(const uint8_t *code, unsigned len, uint64_t pc, G_GNUC_UNUSED unsigned word_bytes,
           UprofCallMatch *match)
{
    *match = (UprofCallMatch){ 0 };
    if (len < INSN_BYTES || pc % INSN_BYTES != 0)
        return;
    const uint32_t insn = uprof_read_le32(code + len - INSN_BYTES);
    match->is_direct = (insn & 0xfc000000) == 0x94000000; /* BL */
    if (match->is_direct)
        match->target = pc - INSN_BYTES + get_distance(insn, 0, 26);
    /* BLR, and BLRAA and its kin, which check a signature first */
    match->is_indirect = (insn & 0xfffffc1f) == 0xd63f0000 || (insn & 0xfefff800) == 0xd63f0800;
}

static bool
read_jump(const uint8_t *code, uint64_t pc, UprofJump *jump)
{
    const uint32_t insn = uprof_read_le32(code);

    *jump = (UprofJump){ 0 };
    if ((insn & 0xfc000000) == 0x14000000) /* B */
        jump->target = pc + get_distance(insn, 0, 26);
    else if ((insn & 0xff000000) == 0x54000000 || (insn & 0x7e000000) == 0x34000000)
        jump->target = pc + get_distance(insn, 5, 19); /* B.cond, CBZ, CBNZ */
    else if ((insn & 0x7e000000) == 0x36000000)
        jump->target = pc + get_distance(insn, 5, 14); /* TBZ, TBNZ */
    else
        return false;
    return true;
}

/* stub = [bti c] adrp x16, page; ldr x17, [x16, offset] ... (ELF for the Arm 64-bit Architecture)
 */
static bool
find_stub_pointer(const UprofUnwindContext *context, uint64_t target, uint64_t *pointer)
{
    enum { BTI_C = 0xd503245f, PAGE_MASK = 0xfff };
    uint8_t code[3 * INSN_BYTES];

    if (!uprof_unwind_read_code(context, target, code, sizeof(code)))
        return false;
    const size_t at = uprof_read_le32(code) == BTI_C ? INSN_BYTES : 0;
    const uint32_t page = uprof_read_le32(code + at);
    const uint32_t load = uprof_read_le32(code + at + INSN_BYTES);
    if ((page & 0x9f00001f) != 0x90000010 || (load & 0xffc003ff) != 0xf9400211)
        return false;
    /* ADRP: bits 23:5 are the upper part of the number of pages, bits 30:29 the lower part. */
    const int64_t n_pages = (int64_t)((int32_t)(page << 8) >> 13) * 4 + (page >> 29 & 3);
    *pointer = ((target + at) & ~(uint64_t)PAGE_MASK) + (uint64_t)n_pages * (PAGE_MASK + 1) +
               (load >> 10 & PAGE_MASK) * sizeof(uint64_t);
    return true;
}

const UprofCallInsns uprof_call_insns_aarch64 = {
    .call_bytes_min = INSN_BYTES,
    .call_bytes_max = INSN_BYTES,
    .insn_align = INSN_BYTES,
    .match_call = match_call,
    .read_jump = read_jump,
    .find_stub_pointer = find_stub_pointer,
};
