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

static bool
has_keys(const UprofChainSlot *slot, uint64_t memory, uint64_t thread)
{
    return slot->is_used && slot->chain.memory == memory && slot->chain.thread == thread;
}

/*
 * The writer makes the version odd before it changes a slot, and even again afterwards. A reader
 * that finds the same even version before and after its copy has copied a whole chain.
 */
static bool
copy_slot(const UprofChainSlot *slot, uint64_t memory, uint64_t thread, UprofChain *chain)
{
    const gint version = g_atomic_int_get(&slot->version);

    if (version & 1 || !has_keys(slot, memory, thread))
        return false;
    *chain = slot->chain;
    __sync_synchronize();
    return g_atomic_int_get(&slot->version) == version && chain->memory == memory &&
           chain->thread == thread;
}

static bool
find_chain(const UprofChains *chains, uint64_t memory, uint64_t thread, UprofChain *chain)
{
    const unsigned set = find_set(memory, thread);

    for (unsigned slot = set; slot < set + WAYS; slot++)
        if (copy_slot(&chains->slots[slot], memory, thread, chain))
            return true;
    return false;
}

bool
uprof_chains_find(const UprofChains *chains, uint64_t memory, uint64_t thread, UprofChain *chain)
{
    return (thread != 0 && find_chain(chains, memory, thread, chain)) ||
           find_chain(chains, memory, 0, chain);
}

unsigned
uprof_chains_choose_slot(const UprofChains *chains, uint64_t memory, uint64_t thread)
{
    const unsigned set = find_set(memory, thread);

    for (unsigned slot = set; slot < set + WAYS; slot++)
        if (has_keys(&chains->slots[slot], memory, thread))
            return slot;
    for (unsigned slot = set; slot < set + WAYS; slot++)
        if (!chains->slots[slot].is_used)
            return slot;
    return set + (unsigned)(thread >> 12 ^ memory >> 6) % WAYS;
}

static void
write_slot(UprofChainSlot *slot, bool is_used, const UprofChain *chain)
{
    g_atomic_int_inc(&slot->version);
    __sync_synchronize();
    slot->is_used = is_used;
    slot->chain = *chain;
    __sync_synchronize();
    g_atomic_int_inc(&slot->version);
}

void
uprof_chains_set(UprofChains *chains, unsigned slot, const UprofChain *chain)
{
    write_slot(&chains->slots[slot], true, chain);
    g_atomic_int_set(&chains->has_any, 1);
}

void
uprof_chains_clear(UprofChains *chains)
{
    const UprofChain none = { 0 };

    g_atomic_int_set(&chains->has_any, 0);
    for (unsigned i = 0; i < UPROF_CHAIN_SLOTS; i++)
        if (chains->slots[i].is_used)
            write_slot(&chains->slots[i], false, &none);
}

static bool
is_equal_step(const UprofChainStep *one, const UprofChainStep *other)
{
    return one->op == other->op && one->from == other->from && one->other == other->other &&
           one->len == other->len && one->offset == other->offset;
}

bool
uprof_chain_is_equal(const UprofChain *one, const UprofChain *other)
{
    if (one->memory != other->memory || one->thread != other->thread)
        return false;
    for (unsigned i = 0; i < UPROF_CHAIN_STARTS; i++)
        if (one->starts[i] != other->starts[i])
            return false;
    for (unsigned i = 0; i < UPROF_CHAIN_STEPS_MAX; i++)
        if (!is_equal_step(&one->steps[i], &other->steps[i]))
            return false;
    return true;
}

static bool
is_sound_step(const UprofChainStep *step, int number)
{
    if (step->op == UPROF_CHAIN_END)
        return true;
    if (step->op >= UPROF_CHAIN_N_OPS || step->from < -UPROF_CHAIN_STARTS || step->from >= number)
        return false;
    switch (step->op) {
    case UPROF_CHAIN_SKIP_IF_EQUAL:
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
