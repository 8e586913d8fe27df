/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/clock.h"
#include "uprof/ring.h"

static void
test_order(void)
{
    enum { N = 3 };
    g_autoptr(UprofRing) ring = uprof_ring_new(N);
    uint64_t next = 0, expected = 0;

    g_assert_null(uprof_ring_peek(ring));
    for (unsigned round = 0; round < 10; round++) {
        g_assert_cmpuint(uprof_ring_room(ring), ==, N);
        for (size_t i = 0; i < N; i++)
            uprof_ring_slot(ring, i)->hold = next++;
        uprof_ring_publish(ring, 2);
        g_assert_cmpuint(uprof_ring_room(ring), ==, 1);
        uprof_ring_publish(ring, 1);
        g_assert_cmpuint(uprof_ring_room(ring), ==, 0);
        for (size_t i = 0; i < N; i++) {
            g_assert_cmpuint(uprof_ring_peek(ring)->hold, ==, expected++);
            uprof_ring_drop(ring);
            g_assert_cmpuint(uprof_ring_room(ring), ==, i + 1);
        }
        g_assert_null(uprof_ring_peek(ring));
    }
}

static void
test_unpublished_is_reused(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(2);

    UprofSnapshot *slot = uprof_ring_slot(ring, 0);
    uprof_ring_publish(ring, 0);
    g_assert_true(uprof_ring_slot(ring, 0) == slot);
    g_assert_null(uprof_ring_peek(ring));
}

static void
test_wait_ends(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(1);
    const uint64_t until_ns = uprof_clock_now_ns() + 5 * UPROF_NS_PER_MS;

    uprof_ring_wait(ring, until_ns);
    g_assert_cmpuint(uprof_clock_now_ns(), >=, until_ns);

    uprof_ring_wait(ring, 0);
    uprof_ring_publish(ring, 1);
    uprof_ring_wait(ring, UINT64_MAX / 2); /* returns at once */
    uprof_ring_drop(ring);
    uprof_ring_wait(ring, uprof_clock_now_ns() + UPROF_NS_PER_MS); /* a stale wakeup */
    g_assert_null(uprof_ring_peek(ring));
}

enum { N_PASSED = 20000 };

static gpointer
produce(gpointer data)
{
    UprofRing *ring = data;

    for (uint64_t i = 0; i < N_PASSED;) {
        if (uprof_ring_room(ring) == 0) {
            g_thread_yield();
            continue;
        }
        UprofSnapshot *slot = uprof_ring_slot(ring, 0);
        slot->hold = i;
        slot->bytes[UPROF_SNAPSHOT_BYTES_MAX - 1] = i;
        uprof_ring_publish(ring, 1);
        i++;
    }
    return NULL;
}

static void
test_two_threads(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(4);
    GThread *producer = g_thread_new("producer", produce, ring);

    for (uint64_t i = 0; i < N_PASSED; i++) {
        const UprofSnapshot *slot;

        while (!(slot = uprof_ring_peek(ring)))
            uprof_ring_wait(ring, uprof_clock_now_ns() + 10 * UPROF_NS_PER_S);
        g_assert_cmpuint(slot->hold, ==, i);
        g_assert_cmpuint(slot->bytes[UPROF_SNAPSHOT_BYTES_MAX - 1], ==, i & 0xff);
        uprof_ring_drop(ring);
    }
    g_thread_join(producer);
    g_assert_null(uprof_ring_peek(ring));
}

static void
test_free_null(void)
{
    uprof_ring_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/ring/order", test_order);
    g_test_add_func("/ring/unpublished-is-reused", test_unpublished_is_reused);
    g_test_add_func("/ring/wait-ends", test_wait_ends);
    g_test_add_func("/ring/two-threads", test_two_threads);
    g_test_add_func("/ring/free-null", test_free_null);
    return g_test_run();
}
