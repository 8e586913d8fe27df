/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory-guest.h"
#include "uprof/clock.h"
#include "uprof/poller.h"

enum { PATIENCE_S = 30, STEP_US = 1000, ROUND_US = 1000 * 1000 };

static gint in_poll;

static MemoryGuest *
open_guest(void)
{
    const MemoryPlan plan = { .n_vcpus = 1, .grain = UPROF_GRAIN_VCPU };

    return memory_guest_open(&plan);
}

static gint
count_polls(const MemoryGuest *guest)
{
    return g_atomic_int_get(&guest->tally->calls[MEMORY_POLL]);
}

static void
wait_for_polls(const MemoryGuest *guest, gint n)
{
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;

    while (count_polls(guest) < n) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        g_usleep(STEP_US);
    }
}

static void
poll_slowly(MemoryGuest *guest, MemoryCall call, gint n)
{
    if (call != MEMORY_POLL)
        return;
    g_atomic_int_set(&in_poll, 1);
    g_usleep(200 * 1000);
    g_atomic_int_set(&in_poll, 0);
}

/* Each guest is polled in each round, until it is removed. */
static void
test_rounds(void)
{
    g_autoptr(MemoryGuest) one = open_guest();
    g_autoptr(MemoryGuest) other = open_guest();
    g_autoptr(UprofPoller) poller = uprof_poller_new(NULL);

    uprof_poller_add(poller, &one->base);
    uprof_poller_add(poller, &other->base);
    wait_for_polls(one, 2);
    wait_for_polls(other, 2);
    uprof_poller_remove(poller, &one->base);
    const gint one_polls = count_polls(one), other_polls = count_polls(other);
    wait_for_polls(other, other_polls + 2);
    g_assert_cmpint(count_polls(one), ==, one_polls);
    uprof_poller_remove(poller, &one->base); /* an unknown guest is ignored */
    g_assert_cmpint(one->tally->calls[MEMORY_VET] + one->tally->calls[MEMORY_HOLD], ==, 0);
}

/* The poller polls about once a second, not as often as it can. */
static void
test_pace(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofPoller) poller = uprof_poller_new(NULL);
    const uint64_t began_ns = uprof_clock_now_ns();

    uprof_poller_add(poller, &guest->base);
    g_usleep(ROUND_US);
    const gint n_polls = count_polls(guest);
    g_assert_cmpint(n_polls, <=, 2 + (gint)((uprof_clock_now_ns() - began_ns) / UPROF_NS_PER_S));
}

/* After a removal the caller may close the guest at once. */
static void
test_remove_waits(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    g_autoptr(UprofPoller) poller = uprof_poller_new(NULL);
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;

    guest->hook = poll_slowly;
    uprof_poller_add(poller, &guest->base);
    while (!g_atomic_int_get(&in_poll)) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        g_usleep(STEP_US);
    }
    uprof_poller_remove(poller, &guest->base);
    g_assert_cmpint(g_atomic_int_get(&in_poll), ==, 0);
}

static void
test_free_waits(void)
{
    g_autoptr(MemoryGuest) guest = open_guest();
    UprofPoller *poller = uprof_poller_new(NULL);
    const uint64_t until_ns = uprof_clock_now_ns() + PATIENCE_S * UPROF_NS_PER_S;

    guest->hook = poll_slowly;
    uprof_poller_add(poller, &guest->base);
    while (!g_atomic_int_get(&in_poll)) {
        g_assert_cmpuint(uprof_clock_now_ns(), <, until_ns);
        g_usleep(STEP_US);
    }
    uprof_poller_free(poller);
    g_assert_cmpint(g_atomic_int_get(&in_poll), ==, 0);
}

/* Freeing does not wait for the next round: twenty times take less than ten seconds. */
static void
test_free_at_once(void)
{
    const uint64_t began_ns = uprof_clock_now_ns();

    for (unsigned i = 0; i < 20; i++) {
        UprofPoller *poller = uprof_poller_new(NULL);
        g_usleep(STEP_US);
        uprof_poller_free(poller);
    }
    g_assert_cmpuint(uprof_clock_now_ns() - began_ns, <, 10 * UPROF_NS_PER_S);
    uprof_poller_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/poller/rounds", test_rounds);
    g_test_add_func("/poller/pace", test_pace);
    g_test_add_func("/poller/remove-waits", test_remove_waits);
    g_test_add_func("/poller/free-waits", test_free_waits);
    g_test_add_func("/poller/free-at-once", test_free_at_once);
    return g_test_run();
}
