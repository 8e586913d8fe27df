/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fp-step-priv.h"

#include <string.h>

/* @record: (out): the caller's frame pointer, and the return address above it */
static bool
read_record(const UprofSnapshot *snapshot, uint64_t fp, unsigned word_bytes, uint64_t record[2])
{
    uint64_t wide[2];
    uint32_t narrow[2];

    if (word_bytes == sizeof(wide[0])) {
        if (!uprof_snapshot_read(snapshot, fp, wide, sizeof(wide)))
            return false;
        record[0] = GUINT64_FROM_LE(wide[0]);
        record[1] = GUINT64_FROM_LE(wide[1]);
        return true;
    }
    if (!uprof_snapshot_read(snapshot, fp, narrow, sizeof(narrow)))
        return false;
    record[0] = GUINT32_FROM_LE(narrow[0]);
    record[1] = GUINT32_FROM_LE(narrow[1]);
    return true;
}

UprofStep
uprof_fp_step(const UprofUnwindContext *context, UprofCursor *cursor)
{
    const UprofArch *arch = uprof_sym_arch(context->sym);
    const UprofStep root = cursor->how == UPROF_HOW_FP ? UPROF_STEP_BASE : UPROF_STEP_PASS;
    UprofRegs *regs = &cursor->regs;
    const unsigned word_bytes = regs->word_bytes;
    uint64_t record[2];

    if (word_bytes != 8 && word_bytes != 4)
        return UPROF_STEP_PASS; /* 16-bit code: firmware, a boot loader */
    if (regs->fp == 0)
        return root;
    if (regs->fp % word_bytes != 0 || regs->fp < regs->sp ||
        regs->fp - regs->sp > UPROF_FRAME_BYTES_MAX)
        return UPROF_STEP_LOST;
    if (!read_record(context->snapshot, regs->fp, word_bytes, record))
        return UPROF_STEP_CUT;
    /* An empty record in memory is the last one of an aarch64 stack (AAPCS64, 6.4.6). */
    if (record[1] == 0 && record[0] == 0 && arch->family == UPROF_FAMILY_ARM && cursor->is_return)
        return UPROF_STEP_BASE;
    if (record[1] == 0)
        return root;

    regs->pc = uprof_regs_plain_address(arch, &context->snapshot->regs, record[1]);
    regs->sp = regs->fp + 2 * word_bytes;
    regs->fp = record[0];
    /* The function may have saved other registers, but nothing says where. */
    cursor->unknown = ~(UINT64_C(1) << arch->fp);
    cursor->is_return = true;
    cursor->how = UPROF_HOW_FP;
    return UPROF_STEP_OK;
}
