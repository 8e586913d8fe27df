/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/chains.h"

enum { N_CHAINS = 2 * UPROF_CHAIN_SLOTS };

static void
publish(UprofChains *chains, const UprofChain *chain)
{
    uprof_chains_set(chains, uprof_chains_choose_slot(chains, chain->memory, chain->thread), chain);
}

/* @start: of the chain that must be found; 0: none */
static void
check_find(const UprofChains *chains, uint64_t memory, uint64_t thread, uint64_t start)
{
    UprofChain chain;

    g_assert_true(uprof_chains_find(chains, memory, thread, &chain) == (start != 0));
    if (start != 0)
        g_assert_cmphex(chain.starts[0], ==, start);
}

static void
test_find(void)
{
    static UprofChains chains;
    const UprofChain all = { .memory = 0x1000, .starts = { 1 } },
                     one = { .memory = 0x1000, .thread = 0x7000, .starts = { 2 } },
                     newer = { .memory = 0x1000, .thread = 0x7000, .starts = { 3 } },
                     other = { .memory = 0x2000, .thread = 0x7000, .starts = { 4 } };

    check_find(&chains, 0x1000, 0x7000, 0);
    publish(&chains, &all);
    check_find(&chains, 0x1000, 0x7000, 1);
    publish(&chains, &other);
    publish(&chains, &one);
    check_find(&chains, 0x1000, 0x7000, 2);
    check_find(&chains, 0x1000, 0x8000, 1);
    check_find(&chains, 0x1000, 0, 1);
    check_find(&chains, 0x2000, 0x7000, 4);
    check_find(&chains, 0x2000, 0x8000, 0);
    publish(&chains, &newer);
    check_find(&chains, 0x1000, 0x7000, 3);
    uprof_chains_clear(&chains);
    g_assert_false(chains.has_any);
    check_find(&chains, 0x1000, 0x7000, 0);
    publish(&chains, &one);
    check_find(&chains, 0x1000, 0x7000, 2);
}

/* If there are too many, old ones give way; the others are still found. */
static void
test_full(void)
{
    static UprofChains chains;
    unsigned n_found = 0;
    UprofChain chain = { 0 };

    for (unsigned pass = 0; pass < 2; pass++)
        for (unsigned i = 0; i < N_CHAINS; i++) {
            chain.memory = UINT64_C(0xffff888000001000) + i / 4 * UINT64_C(0x480);
            chain.thread = UINT64_C(0x7f0000000740) + i % 4 * UINT64_C(0x801000);
            if (pass == 0)
                publish(&chains, &chain);
            const bool is_found = uprof_chains_find(&chains, chain.memory, chain.thread, &chain);
            g_assert_true(is_found || pass == 1);
            n_found += pass == 1 && is_found;
        }
    g_assert_cmpuint(n_found, <=, UPROF_CHAIN_SLOTS);
    g_assert_cmpuint(n_found, >=, UPROF_CHAIN_SLOTS * 3 / 4);
}

static void
test_equal(void)
{
    const UprofChain chain = { .memory = 1, .thread = 2, .starts = { 3, 4 } };
    UprofChain others[6];

    g_assert_true(uprof_chain_is_equal(&chain, &chain));
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++)
        others[i] = chain;
    others[0].memory++;
    others[1].thread++;
    others[2].starts[1]++;
    others[3].steps[0].op = UPROF_CHAIN_LOAD;
    others[4].steps[UPROF_CHAIN_STEPS_MAX - 1].offset = 8;
    others[5].steps[1].len = 8;
    for (unsigned i = 0; i < G_N_ELEMENTS(others); i++)
        g_assert_false(uprof_chain_is_equal(&chain, &others[i]));
}

/* A reader gets whole chains only, while a writer changes them all the time. */
static UprofChains shared;
static gint ends; /* atomic */

static gpointer
write_chains(gpointer data)
{
    UprofChain chain = { .memory = 0x1000 };

    for (uint64_t i = 1; !g_atomic_int_get(&ends); i++) {
        chain.starts[0] = chain.starts[1] = i;
        for (unsigned step = 0; step < UPROF_CHAIN_STEPS_MAX; step++)
            chain.steps[step].offset = (int32_t)i;
        uprof_chains_set(&shared, uprof_chains_choose_slot(&shared, 0x1000, 0), &chain);
        g_usleep(1);
    }
    return NULL;
}

static void
test_threads(void)
{
    GThread *writer = g_thread_new("writer", write_chains, NULL);
    UprofChain chain;
    unsigned n_found = 0;

    for (unsigned i = 0; i < 200000 || n_found == 0; i++) {
        if (!uprof_chains_find(&shared, 0x1000, 0, &chain))
            continue;
        n_found++;
        g_assert_cmpuint(chain.starts[0], ==, chain.starts[1]);
        for (unsigned step = 0; step < UPROF_CHAIN_STEPS_MAX; step++)
            g_assert_cmpint(chain.steps[step].offset, ==, (int32_t)chain.starts[0]);
    }
    g_atomic_int_set(&ends, 1);
    g_thread_join(writer);
    g_assert_cmpuint(n_found, >, 0);
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
    { "differ-own",     1, { UPROF_CHAIN_SKIP_IF_EQUAL, 0, 1, 0, 0 },                           false },
    { "list",           1, { UPROF_CHAIN_LIST, 0, 0, 88, 80 },                           true },
    { "list-next-out",  1, { UPROF_CHAIN_LIST, 0, 0, 88, 81 },                           false },
    { "list-next-low",  1, { UPROF_CHAIN_LIST, 0, 0, 88, -8 },                           false },
    { "list-empty",     1, { UPROF_CHAIN_LIST, 0, 0, 0, 0 },                             false },
    { "list-long",      1, { UPROF_CHAIN_LIST, 0, 0, UPROF_CHAIN_NODE_BYTES_MAX + 1, 0 }, false },
    { "copied",         1, { UPROF_CHAIN_SKIP_UNLESS_COPIED, 0, 0, 2, -800 },            true },
    { "copied-far",     1, { UPROF_CHAIN_SKIP_UNLESS_COPIED, 0, 0, 2, INT32_MIN },       false },
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
    g_test_add_func("/chains/equal", test_equal);
    g_test_add_func("/chains/threads", test_threads);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/chains/sound/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_sound);
    }
    return g_test_run();
}
