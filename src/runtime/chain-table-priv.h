/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * chain-table-priv.h - the chains that holds should follow, and those that the sampler does not have yet
 */
#pragma once

#include "uprof/chains.h"

typedef struct _UprofChainTable UprofChainTable;

UprofChainTable *uprof_chain_table_new(void);
void uprof_chain_table_free(UprofChainTable *table);

/** uprof_chain_table_publish: @chain: copied; replaces an older one with the same keys */
void uprof_chain_table_publish(UprofChainTable *table, const UprofChain *chain);

/** uprof_chain_table_has: is there a chain for this thread, or for all threads of the process? */
bool uprof_chain_table_has(const UprofChainTable *table, uint64_t memory, uint64_t thread);

/** uprof_chain_table_take: see uprof_runtimes_take_chain() */
bool uprof_chain_table_take(UprofChainTable *table, uint32_t *slot, UprofChain *chain);
