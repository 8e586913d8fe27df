/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "cache-priv.h"
#include "unwind-priv.h"

/*
 * What calls go through in a Linux kernel that could lead anywhere: those by a register
 * where processors must not guess, and those that are patched (Linux, arch/x86/lib/retpoline.S
 * and arch/x86/include/asm/static_call.h).
 */
static bool
is_thunk(const UprofUnwindContext *context, uint64_t target)
{
    const char *name = uprof_name_text(
        uprof_sym_find(context->sym, uprof_unwind_place(context, target), false).name);

    return g_str_has_prefix(name, "__x86_indirect_") || g_str_has_prefix(name, "__SCT__");
}

/* @callee: place of the function that was called, 0: it has no name; @callee_pc: where it is */
static UprofCachedCall
check_call(const UprofUnwindContext *context, const UprofFrame *frame, uint64_t callee,
           uint64_t callee_pc)
{
    uint64_t target;
    const UprofCall call = uprof_x86_64_call_before(context, frame->pc, &target);

    return (UprofCachedCall){
        .pc = frame->place,
        .callee = callee,
        .is_checked = call != UPROF_CALL_UNREADABLE,
        .is_agreed = call == UPROF_CALL_INDIRECT ||
                     (call == UPROF_CALL_DIRECT &&
                      (callee == 0 || target == callee_pc || is_thunk(context, target))),
    };
}

void
uprof_unwind_check_calls(const UprofUnwindContext *context, const UprofStack *stack,
                         unsigned *n_checked, unsigned *n_agreed)
{
    *n_checked = *n_agreed = 0;
    for (unsigned i = 1; i < stack->n; i++) {
        const UprofFrame *frame = &stack->frames[i], *inner = &stack->frames[i - 1];
        if (!frame->is_return)
            continue;
        /* 0 if it has no name */
        const uint64_t callee = uprof_sym_find(context->sym, inner->place, inner->is_return).start;
        UprofCachedCall own = { 0 }, *call = uprof_cache_call(context, frame->place);
        if (!call)
            call = &own;
        if (call->pc != frame->place || call->callee != callee)
            *call = check_call(context, frame, callee, callee + (inner->pc - inner->place));
        *n_checked += call->is_checked;
        *n_agreed += call->is_agreed;
    }
}
