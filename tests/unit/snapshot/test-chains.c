/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/chains.h"

enum { N_CHAINS = 2 * UPROF_CHAIN_SLOTS };

static void
publish(UprofChains *chains, const UprofChain *chain)
{
    uprof_chains_set(chains, uprof_chains_choose_slot(chains, chain->memory, chain->thread), chain);
}

static void
test_find(void)
{
    static UprofChains chains;
    const UprofChain all = { .memory = 0x1000 }, one = { .memory = 0x1000, .thread = 0x7000 },
                     newer = { .memory = 0x1000, .thread = 0x7000, .starts = { 1 } },
                     other = { .memory = 0x2000, .thread = 0x7000 };

    g_assert_null(uprof_chains_find(&chains, 0x1000, 0x7000));
    publish(&chains, &all);
    g_assert_true(uprof_chains_find(&chains, 0x1000, 0x7000) == &all);
    publish(&chains, &other);
    publish(&chains, &one);
    g_assert_true(uprof_chains_find(&chains, 0x1000, 0x7000) == &one);
    g_assert_true(uprof_chains_find(&chains, 0x1000, 0x8000) == &all);
    g_assert_true(uprof_chains_find(&chains, 0x1000, 0) == &all);
    g_assert_true(uprof_chains_find(&chains, 0x2000, 0x7000) == &other);
    g_assert_null(uprof_chains_find(&chains, 0x2000, 0x8000));
    publish(&chains, &newer);
    g_assert_true(uprof_chains_find(&chains, 0x1000, 0x7000) == &newer);
}

/* If there are too many, old ones give way; the others are still found. */
static void
test_full(void)
{
    static UprofChains chains;
    static UprofChain all[N_CHAINS];
    unsigned n_found = 0;

    for (unsigned i = 0; i < N_CHAINS; i++) {
        all[i].memory = UINT64_C(0xffff888000001000) + i / 4 * UINT64_C(0x480);
        all[i].thread = UINT64_C(0x7f0000000740) + i % 4 * UINT64_C(0x801000);
        publish(&chains, &all[i]);
        g_assert_true(uprof_chains_find(&chains, all[i].memory, all[i].thread) == &all[i]);
    }
    for (unsigned i = 0; i < N_CHAINS; i++)
        n_found += uprof_chains_find(&chains, all[i].memory, all[i].thread) == &all[i];
    g_assert_cmpuint(n_found, <=, UPROF_CHAIN_SLOTS);
    g_assert_cmpuint(n_found, >=, UPROF_CHAIN_SLOTS * 3 / 4);
}

/* clang-format off */
static const struct {
    const char *name;
    unsigned at;
    UprofChainStep step;
    bool is_sound;
} cases[] = {
    { "end",            0, { 0 },                                                        true },
    { "load",           0, { UPROF_CHAIN_LOAD, -1, 0, 0, -8 },                           true },
    { "load-own",       1, { UPROF_CHAIN_LOAD, 1, 0, 0, 0 },                             false },
    { "load-second",    1, { UPROF_CHAIN_LOAD, -2, 0, 0, 0 },                            true },
    { "load-before",    1, { UPROF_CHAIN_LOAD, -3, 0, 0, 0 },                            false },
    { "load-far",       1, { UPROF_CHAIN_LOAD, 0, 0, 0, UPROF_CHAIN_OFFSET_MAX + 1 },    false },
    { "load-far-below", 1, { UPROF_CHAIN_LOAD, 0, 0, 0, -UPROF_CHAIN_OFFSET_MAX - 1 },   false },
    { "differ-own",     1, { UPROF_CHAIN_DIFFER, 0, 1, 0, 0 },                           false },
    { "list",           1, { UPROF_CHAIN_LIST, 0, 0, 88, 80 },                           true },
    { "list-next-out",  1, { UPROF_CHAIN_LIST, 0, 0, 88, 81 },                           false },
    { "list-next-low",  1, { UPROF_CHAIN_LIST, 0, 0, 88, -8 },                           false },
    { "list-empty",     1, { UPROF_CHAIN_LIST, 0, 0, 0, 0 },                             false },
    { "list-long",      1, { UPROF_CHAIN_LIST, 0, 0, UPROF_CHAIN_NODE_BYTES_MAX + 1, 0 }, false },
    { "unknown",        1, { UPROF_CHAIN_N_OPS, 0, 0, 0, 0 },                            false },
};
/* clang-format on */

static void
test_sound(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofChain chain = { 0 };

    chain.steps[cases[i].at] = cases[i].step;
    g_assert_true(uprof_chain_is_sound(&chain) == cases[i].is_sound);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/chains/find", test_find);
    g_test_add_func("/chains/full", test_full);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/chains/sound/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_sound);
    }
    return g_test_run();
}
