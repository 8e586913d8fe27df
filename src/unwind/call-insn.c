/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "call-insn-priv.h"

static const UprofCallInsns *const rows[UPROF_N_FAMILIES] = {
    [UPROF_FAMILY_X86] = &uprof_call_insns_x86,
    [UPROF_FAMILY_ARM] = &uprof_call_insns_aarch64,
};

const UprofCallInsns *
uprof_call_insns(const UprofUnwindContext *context)
{
    return rows[uprof_sym_arch(context->sym)->family];
}

UprofCall
uprof_call_before(const UprofUnwindContext *context, uint64_t pc, uint64_t *target)
{
    const UprofCallInsns *insns = uprof_call_insns(context);
    uint8_t code[UPROF_CALL_BYTES_MAX];
    unsigned len = insns->call_bytes_max;
    UprofCallMatch match;

    /* The mapped code may begin right before the call. */
    while (len >= insns->call_bytes_min &&
           (pc < len || !uprof_unwind_read_code(context, pc - len, code, len)))
        len--;
    if (len < insns->call_bytes_min)
        return UPROF_CALL_UNREADABLE;
    insns->match_call(code, len, pc, context->snapshot->regs.word_bytes, &match);
    *target = match.target;
    if (match.is_direct &&
        (!match.is_indirect ||
         uprof_sym_is_code(context->sym, uprof_unwind_symbol_address(context, *target))))
        return UPROF_CALL_DIRECT;
    return match.is_indirect ? UPROF_CALL_INDIRECT : UPROF_CALL_NONE;
}
