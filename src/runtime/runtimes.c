/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/runtimes.h"

#include "chain-table-priv.h"
#include "go-stacks-priv.h"

struct _UprofRuntimes {
    UprofChainTable *chains;       /* owned */
    UprofGoStacks *go;             /* owned */
    const UprofSnapshot *snapshot; /* borrowed */
};

UprofRuntimes *
uprof_runtimes_new(UprofSpace *space, UprofSym *sym)
{
    UprofRuntimes *runtimes = g_new0(UprofRuntimes, 1);

    runtimes->chains = uprof_chain_table_new();
    runtimes->go = uprof_go_stacks_new(space, sym, runtimes->chains);
    return runtimes;
}

void
uprof_runtimes_free(UprofRuntimes *runtimes)
{
    if (!runtimes)
        return;
    uprof_go_stacks_free(runtimes->go);
    uprof_chain_table_free(runtimes->chains);
    g_free(runtimes);
}

void
uprof_runtimes_begin(UprofRuntimes *runtimes, const UprofSnapshot *snapshot)
{
    runtimes->snapshot = snapshot;
}

bool
uprof_runtimes_leave_go_stack(UprofRuntimes *runtimes, uint64_t start, uint64_t symbol_address,
                              UprofRegs *regs, bool *is_return)
{
    return uprof_go_stacks_leave(runtimes->go, runtimes->snapshot, start, symbol_address, regs,
                                 is_return);
}

bool
uprof_runtimes_take_chain(UprofRuntimes *runtimes, uint32_t *slot, UprofChain *chain)
{
    return uprof_chain_table_take(runtimes->chains, slot, chain);
}
