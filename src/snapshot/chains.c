/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/chains.h"

enum { WAYS = 4 }; /* slots in which a chain may be */

/* Returns: the first of the slots in which a chain with these keys may be */
static unsigned
find_set(uint64_t memory, uint64_t thread)
{
    const uint64_t mixed = (memory ^ thread >> 4) * UINT64_C(0x9e3779b97f4a7c15);

    return (unsigned)(mixed >> 40) % (UPROF_CHAIN_SLOTS / WAYS) * WAYS;
}

static const UprofChain *
get_chain(const UprofChains *chains, unsigned slot)
{
    return g_atomic_pointer_get((const UprofChain **)&chains->slots[slot]);
}

static bool
has_keys(const UprofChain *chain, uint64_t memory, uint64_t thread)
{
    return chain && chain->memory == memory && chain->thread == thread;
}

static const UprofChain *
find_chain(const UprofChains *chains, uint64_t memory, uint64_t thread)
{
    const unsigned set = find_set(memory, thread);

    for (unsigned slot = set; slot < set + WAYS; slot++) {
        const UprofChain *chain = get_chain(chains, slot);
        if (has_keys(chain, memory, thread))
            return chain;
    }
    return NULL;
}

const UprofChain *
uprof_chains_find(const UprofChains *chains, uint64_t memory, uint64_t thread)
{
    const UprofChain *own = thread != 0 ? find_chain(chains, memory, thread) : NULL;

    return own ? own : find_chain(chains, memory, 0);
}

unsigned
uprof_chains_choose_slot(const UprofChains *chains, uint64_t memory, uint64_t thread)
{
    const unsigned set = find_set(memory, thread);

    for (unsigned slot = set; slot < set + WAYS; slot++)
        if (has_keys(get_chain(chains, slot), memory, thread))
            return slot;
    for (unsigned slot = set; slot < set + WAYS; slot++)
        if (!get_chain(chains, slot))
            return slot;
    return set + (unsigned)(thread >> 12 ^ memory >> 6) % WAYS;
}

void
uprof_chains_set(UprofChains *chains, unsigned slot, const UprofChain *chain)
{
    g_atomic_pointer_set(&chains->slots[slot], chain);
    if (chain)
        g_atomic_int_set(&chains->has_any, 1);
}

static bool
is_sound_step(const UprofChainStep *step, int number)
{
    if (step->op == UPROF_CHAIN_END)
        return true;
    if (step->op >= UPROF_CHAIN_N_OPS || step->from < -UPROF_CHAIN_STARTS || step->from >= number)
        return false;
    switch (step->op) {
    case UPROF_CHAIN_DIFFER:
        return step->other >= -UPROF_CHAIN_STARTS && step->other < number;
    case UPROF_CHAIN_LIST:
        return step->len <= UPROF_CHAIN_NODE_BYTES_MAX && step->offset >= 0 &&
               (size_t)step->offset + sizeof(uint64_t) <= step->len;
    default:
        return step->offset >= -UPROF_CHAIN_OFFSET_MAX && step->offset <= UPROF_CHAIN_OFFSET_MAX;
    }
}

bool
uprof_chain_is_sound(const UprofChain *chain)
{
    for (int i = 0; i < UPROF_CHAIN_STEPS_MAX; i++)
        if (!is_sound_step(&chain->steps[i], i))
            return false;
    return true;
}
