/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "chain-table-priv.h"

struct _UprofChainTable {
    UprofChains chains; /* each is owned */
    GQueue changed;     /* slots that were not taken yet */
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
    for (unsigned i = 0; i < UPROF_CHAIN_SLOTS; i++)
        g_free((UprofChain *)table->chains.slots[i]);
    g_queue_clear(&table->changed);
    g_free(table);
}

void
uprof_chain_table_publish(UprofChainTable *table, const UprofChain *chain)
{
    const unsigned slot = uprof_chains_choose_slot(&table->chains, chain->memory, chain->thread);

    g_free((UprofChain *)table->chains.slots[slot]);
    uprof_chains_set(&table->chains, slot, g_memdup2(chain, sizeof(*chain)));
    if (!g_queue_find(&table->changed, GUINT_TO_POINTER(slot)))
        g_queue_push_tail(&table->changed, GUINT_TO_POINTER(slot));
}

bool
uprof_chain_table_has(const UprofChainTable *table, uint64_t memory, uint64_t thread)
{
    return uprof_chains_find(&table->chains, memory, thread) != NULL;
}

bool
uprof_chain_table_take(UprofChainTable *table, uint32_t *slot, UprofChain *chain)
{
    if (g_queue_is_empty(&table->changed))
        return false;
    *slot = GPOINTER_TO_UINT(g_queue_pop_head(&table->changed));
    *chain = *table->chains.slots[*slot];
    return true;
}
