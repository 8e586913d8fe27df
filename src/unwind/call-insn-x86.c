/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call is E8 with a distance of 32 bits, or FF /2 with any operand (Intel SDM, volume 2, CALL
 * and table 2-2).
 *
 * Instructions cannot be decoded backwards, so a match may be the end of another instruction. If
 * the match is a direct call into known code, this hardly ever happens.
 */
#include "call-insn-priv.h"

#include <string.h>

enum {
    CALL_BYTES_MIN = 2,
    CALL_DIRECT = 0xe8,
    CALL_DIRECT_BYTES = 5,
    CALL_GROUP = 0xff, /* the instruction is in the operand's byte, bits 3 to 5 */
    CALL_NEAR = 2,
    STUB_BYTES_MAX = 11,
};

/* Is @code an indirect call that is exactly @len bytes long? */
static bool
is_indirect(const uint8_t *code, unsigned len)
{
    const unsigned mode = code[1] >> 6, operand = code[1] & 7;
    const bool has_index = mode != 3 && operand == 4;
    unsigned n = 2 + has_index;

    if (code[0] != CALL_GROUP || (code[1] >> 3 & 7) != CALL_NEAR || len < n)
        return false;
    if (mode == 1)
        n += 1;
    else if (mode == 2 || (mode == 0 && (has_index ? (code[2] & 7) == 5 : operand == 5)))
        n += 4;
    return n == len;
}

static void
match_call(const uint8_t *code, unsigned len, uint64_t pc, unsigned word_bytes,
           UprofCallMatch *match)
{
    *match = (UprofCallMatch){ 0 };
    if (len >= CALL_DIRECT_BYTES && code[len - CALL_DIRECT_BYTES] == CALL_DIRECT) {
        const uint32_t distance = uprof_read_le32(code + len - sizeof(distance));
        match->target = pc + (uint64_t)(int64_t)(int32_t)distance;
        if (word_bytes == 4)
            match->target &= UINT32_MAX;
        match->is_direct = true;
    }
    for (unsigned n = CALL_BYTES_MIN; n <= len && !match->is_indirect; n++)
        match->is_indirect = is_indirect(code + len - n, n);
}

/*
 * Decodes JMP and Jcc with distances of 8 and 32 bits (Intel SDM, volume 2). Callers try every
 * byte, because a byte that is not a jump hardly ever seems to lead to the function.
 */
static bool
read_jump(const uint8_t *code, uint64_t pc, UprofJump *jump)
{
    const unsigned skip = code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 1;

    jump->is_short = code[0] == 0xeb || (code[0] & 0xf0) == 0x70;
    if (jump->is_short) {
        jump->target = pc + 2 + (uint64_t)(int64_t)(int8_t)code[1];
        return true;
    }
    jump->target =
        pc + skip + sizeof(uint32_t) + (uint64_t)(int64_t)(int32_t)uprof_read_le32(code + skip);
    return code[0] == 0xe9 || skip == 2;
}

/* stub = [endbr64] [bnd] jmp *distance(%rip) (System V psABI for x86_64, section 5.2) */
static bool
find_stub_pointer(const UprofUnwindContext *context, uint64_t target, uint64_t *pointer)
{
    static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa }, jump[] = { 0xff, 0x25 };
    uint8_t code[STUB_BYTES_MAX];
    size_t at = 0;

    if (!uprof_unwind_read_code(context, target, code, sizeof(code)))
        return false;
    if (memcmp(code, endbr, sizeof(endbr)) == 0)
        at = sizeof(endbr);
    if (code[at] == 0xf2)
        at++;
    if (memcmp(code + at, jump, sizeof(jump)) != 0)
        return false;
    at += sizeof(jump);
    *pointer =
        target + at + sizeof(uint32_t) + (uint64_t)(int64_t)(int32_t)uprof_read_le32(code + at);
    return true;
}

const UprofCallInsns uprof_call_insns_x86 = {
    .call_bytes_min = CALL_BYTES_MIN,
    .call_bytes_max = UPROF_CALL_BYTES_MAX,
    .insn_align = 1,
    .match_call = match_call,
    .read_jump = read_jump,
    .find_stub_pointer = find_stub_pointer,
};
