/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call is E8 with a distance of 32 bits, or FF /2 with any operand (Intel SDM, volume 2, CALL
 * and table 2-2).
 *
 * Instructions cannot be decoded backwards, so a match may be the end of another instruction. If
 * the match is a direct call into known code, this hardly ever happens.
 */
#include "call-insn-x86_64-priv.h"

enum {
    CALL_BYTES_MIN = 2,
    CALL_DIRECT = 0xe8,
    CALL_DIRECT_BYTES = 5,
    CALL_GROUP = 0xff, /* the instruction is in the operand's byte, bits 3 to 5 */
    CALL_NEAR = 2,
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

void
uprof_x86_64_match_call(const uint8_t *code, unsigned len, uint64_t pc, unsigned word_bytes,
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

UprofCall
uprof_x86_64_call_before(const UprofUnwindContext *context, uint64_t pc, uint64_t *target)
{
    uint8_t code[UPROF_CALL_BYTES_MAX];
    unsigned len = UPROF_CALL_BYTES_MAX;
    UprofCallMatch match;

    /* The mapped code may begin right before the call. */
    while (len >= CALL_BYTES_MIN &&
           (pc < len || !uprof_unwind_read_code(context, pc - len, code, len)))
        len--;
    if (len < CALL_BYTES_MIN)
        return UPROF_CALL_UNREADABLE;
    uprof_x86_64_match_call(code, len, pc, context->snapshot->regs.word_bytes, &match);
    *target = match.target;
    if (match.is_direct &&
        (!match.is_indirect ||
         uprof_sym_is_code(context->sym, uprof_unwind_symbol_address(context, *target))))
        return UPROF_CALL_DIRECT;
    return match.is_indirect ? UPROF_CALL_INDIRECT : UPROF_CALL_NONE;
}
