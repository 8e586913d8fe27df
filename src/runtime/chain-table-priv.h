/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * chain-table-priv.h - the chains that holds should follow, and those that the sampler does not
 * have yet
 */
#pragma once

#include "uprof/chains.h"

typedef struct _UprofChainTable UprofChainTable;

UprofChainTable *uprof_chain_table_new(void);
void uprof_chain_table_free(UprofChainTable *table);

/**
 * uprof_chain_table_publish: replaces an older chain with the same keys
 * @chain: copied; ignored if it is the same as before, or breaks the limits of chains
 */
void uprof_chain_table_publish(UprofChainTable *table, const UprofChain *chain);

/** uprof_chain_table_take: see uprof_runtimes_take_chain() */
bool uprof_chain_table_take(UprofChainTable *table, uint32_t *slot, UprofChain *chain);
