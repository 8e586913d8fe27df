/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chain-table-priv.h"

struct _UprofChainTable {
    UprofChains chains;
    GQueue changed; /* slots that were not taken yet */
};

UprofChainTable *
uprof_chain_table_new(void)
{
    UprofChainTable *table = g_new0(UprofChainTable, 1);

    g_queue_init(&table->changed);
    return table;
}

void
uprof_chain_table_free(UprofChainTable *table)
{
    if (!table)
        return;
    g_queue_clear(&table->changed);
    g_free(table);
}

void
uprof_chain_table_publish(UprofChainTable *table, const UprofChain *chain)
{
    const unsigned slot = uprof_chains_choose_slot(&table->chains, chain->memory, chain->thread);
    const UprofChainSlot *before = &table->chains.slots[slot];

    if (!uprof_chain_is_sound(chain) ||
        (before->is_used && uprof_chain_is_equal(&before->chain, chain)))
        return;
    uprof_chains_set(&table->chains, slot, chain);
    if (!g_queue_find(&table->changed, GUINT_TO_POINTER(slot)))
        g_queue_push_tail(&table->changed, GUINT_TO_POINTER(slot));
}

bool
uprof_chain_table_take(UprofChainTable *table, uint32_t *slot, UprofChain *chain)
{
    if (g_queue_is_empty(&table->changed))
        return false;
    *slot = GPOINTER_TO_UINT(g_queue_pop_head(&table->changed));
    *chain = table->chains.slots[*slot].chain;
    return true;
}
