/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/live/busy-share-priv.h"

#include "uprof/clock.h"

static void
test_half(void)
{
    UprofBusyShare share = { 0 };
    UprofBusyCounts counts = { .rate_mhz = 100 * 1000, .n_vcpus = 2, .ran = 100 };

    for (unsigned i = 1; i <= 3; i++) {
        counts.elapsed_ns = i * UPROF_NS_PER_S;
        uprof_busy_share_add(&share, &counts);
        g_assert_cmpuint(share.ticks, ==, 200);
        g_assert_cmpuint(share.ran, ==, 100);
        g_assert_cmpuint(share.sampled_ns, ==, UPROF_NS_PER_S);
    }
}

/* A second in which nothing could be sampled says nothing: neither busy nor idle. */
static void
test_missed(bool is_whole)
{
    UprofBusyShare share = { 0 };
    UprofBusyCounts counts = {
        .elapsed_ns = UPROF_NS_PER_S,
        .rate_mhz = 50 * 1000,
        .n_vcpus = 4,
        .is_whole = is_whole,
        .missed = is_whole ? 50 : 200,
    };

    uprof_busy_share_add(&share, &counts);
    g_assert_cmpuint(share.ticks, ==, 0);
    g_assert_cmpuint(share.sampled_ns, ==, 0);
    /* half of the next second is missed */
    counts.elapsed_ns *= 2;
    counts.missed += is_whole ? 25 : 100;
    uprof_busy_share_add(&share, &counts);
    g_assert_cmpuint(share.ticks, ==, 100);
    g_assert_cmpuint(share.sampled_ns, ==, UPROF_NS_PER_S / 2);
}

static void
test_missed_ticks(void)
{
    test_missed(false);
    test_missed(true);
}

/* At half a tick a second, every second step has a tick. */
static void
test_low_rate(void)
{
    UprofBusyShare share = { 0 };
    UprofBusyCounts counts = { .rate_mhz = 500, .n_vcpus = 1 };
    uint64_t ticks = 0, sampled_ns = 0;

    for (unsigned i = 1; i <= 20; i++) {
        counts.elapsed_ns = i * UPROF_NS_PER_S;
        uprof_busy_share_add(&share, &counts);
        g_assert_cmpuint(share.ticks, <=, 1);
        ticks += share.ticks;
        sampled_ns += share.sampled_ns;
    }
    g_assert_cmpuint(ticks, ==, 10);
    g_assert_cmpuint(sampled_ns, ==, 20 * UPROF_NS_PER_S);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/busy-share/half", test_half);
    g_test_add_func("/busy-share/missed-ticks", test_missed_ticks);
    g_test_add_func("/busy-share/low-rate", test_low_rate);
    return g_test_run();
}
