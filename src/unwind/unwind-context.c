/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "unwind-context-priv.h"

const UprofRegs *
uprof_unwind_tables(const UprofUnwindContext *context)
{
    const UprofRegs *own = context->space ? uprof_space_tables(context->space) : NULL;

    return own ? own : &context->snapshot->regs;
}

bool
uprof_unwind_read_code(const UprofUnwindContext *context, uint64_t gva, void *into, size_t len)
{
    return uprof_mem_read(context->mem, context->snapshot->vcpu, uprof_unwind_tables(context), gva,
                          into, len) ||
           (context->space && uprof_space_read_code(context->space, gva, into, len));
}

bool
uprof_unwind_read_word(const UprofUnwindContext *context, const UprofRegs *frame, uint64_t gva,
                       uint64_t *word)
{
    uint64_t wide;
    uint32_t narrow;

    if (frame->word_bytes == sizeof(wide)) {
        if (!uprof_snapshot_read(context->snapshot, gva, &wide, sizeof(wide)))
            return false;
        *word = GUINT64_FROM_LE(wide);
        return true;
    }
    if (!uprof_snapshot_read(context->snapshot, gva, &narrow, sizeof(narrow)))
        return false;
    *word = GUINT32_FROM_LE(narrow);
    return true;
}

uint64_t
uprof_unwind_symbol_address(const UprofUnwindContext *context, uint64_t pc)
{
    return context->space ? uprof_space_symbol_address(context->space, pc) : pc;
}

bool
uprof_unwind_function(const UprofUnwindContext *context, const UprofCursor *frame,
                      UprofFunction *function)
{
    const uint64_t pc = frame->regs.pc - frame->is_return;
    const uint64_t symbol_address = uprof_unwind_symbol_address(context, pc);

    if (!uprof_sym_function(context->sym, symbol_address, &function->symbol_address, &function->len,
                            &function->is_entry))
        return false;
    function->start = function->symbol_address + (pc - symbol_address);
    return true;
}
