/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "../../../src/round/turn-order-priv.h"

#define S G_GUINT64_CONSTANT(1000000000)

static UprofCandidate *
make(const char *name, int64_t last_s)
{
    UprofCandidate *candidate = g_new0(UprofCandidate, 1);

    candidate->name = g_strdup(name);
    candidate->last_s = last_s;
    return candidate;
}

static GPtrArray *
make_list(void)
{
    return g_ptr_array_new_with_free_func((GDestroyNotify)uprof_candidate_free);
}

static char *
names_of(const GPtrArray *candidates)
{
    GString *names = g_string_new(NULL);

    for (guint i = 0; i < candidates->len; i++)
        g_string_append(names, ((UprofCandidate *)g_ptr_array_index(candidates, i))->name);
    return g_string_free(names, FALSE);
}

static void
test_oldest_first(void)
{
    g_autoptr(GPtrArray) candidates = make_list();
    g_autoptr(GRand) random = g_rand_new_with_seed(1);

    g_ptr_array_add(candidates, make("c", 300));
    g_ptr_array_add(candidates, make("a", 0));
    g_ptr_array_add(candidates, make("d", 301));
    g_ptr_array_add(candidates, make("b", 299));
    uprof_order_sort(candidates, 400, random);
    g_autofree char *names = names_of(candidates);
    g_assert_cmpstr(names, ==, "abcd");
}

/* A domain whose last turn is in the future, because the clock was set back, comes first. */
static void
test_clock_back(void)
{
    g_autoptr(GPtrArray) candidates = make_list();
    g_autoptr(GRand) random = g_rand_new_with_seed(1);

    g_ptr_array_add(candidates, make("b", 300));
    g_ptr_array_add(candidates, make("a", 86400));
    g_ptr_array_add(candidates, make("c", 400));
    uprof_order_sort(candidates, 400, random);
    g_autofree char *names = names_of(candidates);
    g_assert_cmpstr(names, ==, "abc");
}

/* Domains with equal times, or with times in the future, come in random order. */
static void
test_ties(void)
{
    enum { ROUNDS = 300 };
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    unsigned first[3] = { 0 };

    for (unsigned i = 0; i < ROUNDS; i++) {
        g_autoptr(GPtrArray) candidates = make_list();
        g_ptr_array_add(candidates, make("a", 5));
        g_ptr_array_add(candidates, make("b", 5));
        g_ptr_array_add(candidates, make("c", 900)); /* in the future */
        g_ptr_array_add(candidates, make("d", 7));
        g_ptr_array_add(candidates, make("c", 901));
        uprof_order_sort(candidates, 10, random);
        g_autofree char *names = names_of(candidates);
        g_assert_true(g_str_has_prefix(names, "cc") && g_str_has_suffix(names, "d"));
        first[names[2] - 'a']++;
    }
    g_assert_cmpuint(first[0], >, ROUNDS / 4);
    g_assert_cmpuint(first[1], >, ROUNDS / 4);
}

/*
 * Each round has time for seven of fifty domains. After eight rounds each domain has had a turn.
 * After sixty rounds the numbers of turns differ by at most one. If the clock was set back in
 * between, they differ by at most six.
 */
static void
test_fair(gconstpointer data)
{
    enum { DOMAINS = 50, ROUNDS = 60 };
    const bool is_set_back = GPOINTER_TO_INT(data);
    g_autoptr(GRand) random = g_rand_new_with_seed(3);
    int64_t last_s[DOMAINS] = { 0 }, now_s = 1000000;
    unsigned turns[DOMAINS] = { 0 }, least = G_MAXUINT, most = 0;

    for (unsigned round = 0; round < ROUNDS; round++, now_s += 600) {
        g_autoptr(GPtrArray) candidates = make_list();
        uint64_t gone_ns = 0;
        if (is_set_back && round == ROUNDS / 2)
            now_s -= 1200;
        for (unsigned i = 0; i < DOMAINS; i++) {
            g_autofree char *name = g_strdup_printf("%u", i);
            g_ptr_array_add(candidates, make(name, last_s[i]));
        }
        uprof_order_sort(candidates, now_s, random);
        for (guint i = 0; i < DOMAINS; i++) {
            const UprofCandidate *candidate = g_ptr_array_index(candidates, i);
            const guint64 number = g_ascii_strtoull(candidate->name, NULL, 10);
            if (!uprof_order_has_time(gone_ns, 20 * S, 150 * S, i == 0))
                break;
            gone_ns += 20 * S;
            turns[number]++;
            last_s[number] = now_s + i;
        }
        for (unsigned i = 0; i < DOMAINS && round == 7; i++)
            g_assert_cmpuint(turns[i], >=, 1);
    }
    for (unsigned i = 0; i < DOMAINS; i++) {
        least = MIN(least, turns[i]);
        most = MAX(most, turns[i]);
    }
    g_assert_cmpuint(least, >=, is_set_back ? 5 : 8);
    g_assert_cmpuint(most - least, <=, is_set_back ? 6 : 1);
}

static void
test_draws(void)
{
    enum { DRAWS = 10000 };
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    unsigned n = 0;

    for (unsigned i = 0; i < DRAWS; i++) {
        n += uprof_order_is_selected(200000, random);
        g_assert_true(uprof_order_is_selected(1000000, random));
        g_assert_false(uprof_order_is_selected(0, random));
    }
    g_assert_cmpuint(n, >, DRAWS / 6);
    g_assert_cmpuint(n, <, DRAWS / 4);
}

static void
test_time(void)
{
    g_assert_true(uprof_order_has_time(0, 20 * S, 480 * S, false));
    g_assert_true(uprof_order_has_time(460 * S, 20 * S, 480 * S, false));
    g_assert_false(uprof_order_has_time(460 * S + 1, 20 * S, 480 * S, false));
    g_assert_false(uprof_order_has_time(500 * S, 20 * S, 480 * S, false));
    /* the first domain has its turn even if it takes longer than the round may take */
    g_assert_true(uprof_order_has_time(1 * S, 20 * S, 10 * S, true));
    uprof_candidate_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/order/oldest-first", test_oldest_first);
    g_test_add_func("/order/clock-back", test_clock_back);
    g_test_add_func("/order/ties", test_ties);
    g_test_add_data_func("/order/fair", GINT_TO_POINTER(false), test_fair);
    g_test_add_data_func("/order/fair/clock-back", GINT_TO_POINTER(true), test_fair);
    g_test_add_func("/order/draws", test_draws);
    g_test_add_func("/order/time", test_time);
    return g_test_run();
}
