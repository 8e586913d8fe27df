/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory-guest.h"
#include "uprof/clock.h"
#include "uprof/keeper.h"

enum { PATIENCE_S = 30, STEP_US = 1000, ROUND_US = 1000 * 1000 };

static gint in_tend;

static MemoryGuest *
open_guest(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_VCPU };

    return memory_guest_open(&plan);
}

static gint
count_tends(const MemoryGuest *guest)
{
    return g_atomic_int_get(&guest->tally->calls[MEMORY_TEND]);
}

static void
wait_for_tends(const MemoryGuest *guest, gint n)
{
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;

    while (count_tends(guest) < n) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        g_usleep(STEP_US);
    }
}

static void
take_long(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call != MEMORY_TEND)
        return;
    g_atomic_int_set(&in_tend, 1);
    g_usleep(200 * 1000);
    g_atomic_int_set(&in_tend, 0);
}

/* Each is looked after, round by round, and not after it was removed. */
static void
test_rounds(void)
{
    g_autoptr(MemoryGuest) one = open_guest();
    g_autoptr(MemoryGuest) other = open_guest();
    g_autoptr(UprofKeeper) keeper = uprof_keeper_new();

    uprof_keeper_add(keeper, &one->base);
    uprof_keeper_add(keeper, &other->base);
    wait_for_tends(one, 2);
    wait_for_tends(other, 2);
    uprof_keeper_remove(keeper, &one->base);
    const gint one_tends = count_tends(one), other_tends = count_tends(other);
    wait_for_tends(other, other_tends + 2);
    g_assert_cmpint(count_tends(one), ==, one_tends);
    uprof_keeper_remove(keeper, &one->base); /* need not be known */
    g_assert_cmpint(one->tally->calls[MEMORY_VET] + one->tally->calls[MEMORY_HOLD], ==, 0);
}

/* It asks about once a second, and not as often as it can. */
static void
test_pace(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofKeeper) keeper = uprof_keeper_new();
    const uint64_t began_ns = uprof_clock_now_ns();

    uprof_keeper_add(keeper, &guest->base);
    g_usleep(ROUND_US);
    const gint tends = count_tends(guest);
    g_assert_cmpint(tends, <=, 2 + (gint)((uprof_clock_now_ns() - began_ns) / UPROF_NS_PER_S));
}

/* Who removes a guest may close it at once. */
static void
test_remove_waits(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofKeeper) keeper = uprof_keeper_new();
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;

    guest->hook = take_long;
    uprof_keeper_add(keeper, &guest->base);
    while (!g_atomic_int_get(&in_tend)) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        g_usleep(STEP_US);
    }
    uprof_keeper_remove(keeper, &guest->base);
    g_assert_cmpint(g_atomic_int_get(&in_tend), ==, 0);
}

static void
test_free_waits(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    UprofKeeper *keeper = uprof_keeper_new();
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;

    guest->hook = take_long;
    uprof_keeper_add(keeper, &guest->base);
    while (!g_atomic_int_get(&in_tend)) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        g_usleep(STEP_US);
    }
    uprof_keeper_free(keeper);
    g_assert_cmpint(g_atomic_int_get(&in_tend), ==, 0);
}

/* The end need not wait for a round: twenty of them take less than ten. */
static void
test_free_at_once(void)
{
    const uint64_t began_ns = uprof_clock_now_ns();

    for (unsigned i = 0; i < 20; i++) {
        UprofKeeper *keeper = uprof_keeper_new();
        g_usleep(STEP_US);
        uprof_keeper_free(keeper);
    }
    g_assert_cmpuint(uprof_clock_now_ns() - began_ns, <, 10 * UPROF_NS_PER_S);
    uprof_keeper_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/keeper/rounds", test_rounds);
    g_test_add_func("/keeper/pace", test_pace);
    g_test_add_func("/keeper/remove-waits", test_remove_waits);
    g_test_add_func("/keeper/free-waits", test_free_waits);
    g_test_add_func("/keeper/free-at-once", test_free_at_once);
    return g_test_run();
}
