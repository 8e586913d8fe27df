/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/clock.h"
#include "uprof/ring.h"

#include <poll.h>

enum {
    SLOTS_MAX = 64,
    PASSED = 20000,
    PRODUCERS = 3,
    ALONE =
        UPROF_SNAPSHOT_BYTES_MAX - 1, /* index of a byte that identifies the producer of the slot */
};

/* Takes all free slots and gives them back. Returns: their number */
static size_t
count_room(UprofRing *ring)
{
    UprofSnapshot *slots[SLOTS_MAX];
    size_t n = 0;

    while (uprof_ring_take(ring, slots + n, 1))
        g_assert_cmpuint(++n, <, SLOTS_MAX);
    uprof_ring_give(ring, slots, n);
    return n;
}

/* Returns: (nullable): the oldest filled slot */
static const UprofSnapshot *
peek_slot(UprofRing *ring)
{
    const UprofSnapshot *slot;

    return uprof_ring_peek(ring, &slot, 1) == 1 ? slot : NULL;
}

/* Waits until a slot is filled, as a consumer does. */
static void
wait_for_slot(UprofRing *ring, uint64_t until_ns)
{
    struct pollfd wait = { .fd = uprof_ring_fd(ring), .events = POLLIN };

    while (!peek_slot(ring)) {
        const uint64_t now_ns = uprof_clock_now_ns();
        if (now_ns >= until_ns)
            return;
        poll(&wait, 1, (int)MIN((until_ns - now_ns) / UPROF_NS_PER_MS + 1, 5));
        uprof_ring_calm(ring);
    }
}

static void
test_order(void)
{
    enum { N = 3 };
    g_autoptr(UprofRing) ring = uprof_ring_new(N, NULL);
    uint64_t next = 0, expected = 0;

    g_assert_null(peek_slot(ring));
    for (unsigned round = 0; round < 10; round++) {
        UprofSnapshot *slots[N];
        g_assert_cmpuint(count_room(ring), ==, N);
        g_assert_true(uprof_ring_take(ring, slots, N));
        for (size_t i = 0; i < N; i++)
            slots[i]->hold = next++;
        g_assert_null(peek_slot(ring));
        uprof_ring_publish(ring, slots, 2, false);
        uprof_ring_publish(ring, slots + 2, 1, false);
        g_assert_cmpuint(count_room(ring), ==, 0);
        for (size_t i = 0; i < N; i++) {
            g_assert_cmpuint(peek_slot(ring)->hold, ==, expected++);
            uprof_ring_drop(ring);
            g_assert_cmpuint(count_room(ring), ==, i + 1);
        }
        g_assert_null(peek_slot(ring));
    }
}

static void
test_several(void)
{
    enum { N = 6 };
    g_autoptr(UprofRing) ring = uprof_ring_new(N, NULL);
    UprofSnapshot *slots[N];
    const UprofSnapshot *peeked[N];
    int one, other;
    void *const owners[N] = { &one, &one, &one, &other, &other, &one };

    g_assert_cmpuint(uprof_ring_peek(ring, peeked, N), ==, 0);
    g_assert_true(uprof_ring_take(ring, slots, N));
    for (size_t i = 0; i < N; i++)
        slots[i]->owner = owners[i];
    uprof_ring_publish(ring, slots, N, false);

    g_assert_cmpuint(uprof_ring_peek(ring, peeked, 2), ==, 2);
    g_assert_cmpuint(uprof_ring_peek(ring, peeked, N), ==, 3);
    for (size_t i = 0; i < 3; i++) {
        g_assert_true(peeked[i] == slots[i]);
        uprof_ring_drop(ring);
    }
    g_assert_cmpuint(uprof_ring_peek(ring, peeked, N), ==, 2);
    g_assert_true(peeked[1] == slots[4]);
    uprof_ring_drop(ring);
    uprof_ring_drop(ring);
    g_assert_cmpuint(uprof_ring_peek(ring, peeked, N), ==, 1);
    uprof_ring_drop(ring);
    g_assert_cmpuint(uprof_ring_peek(ring, peeked, N), ==, 0);
}

/* A sampler gets all slots or none, so that two samplers cannot each wait for the other's half. */
static void
test_all_or_none(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(4, NULL);
    UprofSnapshot *some[3], *more[4] = { NULL };

    g_assert_true(uprof_ring_take(ring, some, 3));
    g_assert_false(uprof_ring_take(ring, more, 2));
    g_assert_null(more[0]);
    g_assert_cmpuint(count_room(ring), ==, 1);
    g_assert_true(uprof_ring_take(ring, more, 0));
    g_assert_false(uprof_ring_take(ring, more, 5));
    uprof_ring_give(ring, some, 3);
    g_assert_true(uprof_ring_take(ring, more, 4));
    g_assert_cmpuint(count_room(ring), ==, 0);
    uprof_ring_give(ring, more, 4);
}

static void
test_given_back(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(3, NULL);
    UprofSnapshot *slots[2], *again[2];

    g_assert_true(uprof_ring_take(ring, slots, 2));
    g_assert_true(slots[0] != slots[1]);
    uprof_ring_publish(ring, slots, 0, false);
    uprof_ring_give(ring, slots, 0);
    g_assert_cmpuint(count_room(ring), ==, 1);
    uprof_ring_give(ring, slots, 2);
    g_assert_null(peek_slot(ring));
    /* The slot that was freed last comes first. */
    g_assert_true(uprof_ring_take(ring, again, 2));
    g_assert_true(again[0] == slots[0] && again[1] == slots[1]);
    /* One of the two is used. */
    uprof_ring_publish(ring, again, 1, false);
    uprof_ring_give(ring, again + 1, 1);
    g_assert_true(peek_slot(ring) == again[0]);
    uprof_ring_drop(ring);
    g_assert_cmpuint(count_room(ring), ==, 3);
}

/* Slots can be added while the consumer has others. */
static void
test_reserve(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(1, NULL);
    UprofSnapshot *slots[9];

    uprof_ring_reserve(ring, 1);
    g_assert_cmpuint(count_room(ring), ==, 1);
    g_assert_true(uprof_ring_take(ring, slots, 1));
    slots[0]->hold = 7;
    uprof_ring_publish(ring, slots, 1, false);
    uprof_ring_reserve(ring, 9);
    g_assert_cmpuint(count_room(ring), ==, 8);
    uprof_ring_reserve(ring, 4);
    g_assert_cmpuint(count_room(ring), ==, 8);
    g_assert_cmpuint(peek_slot(ring)->hold, ==, 7);
    uprof_ring_drop(ring);

    /* All of them can be published, and written to their last byte. */
    g_assert_true(uprof_ring_take(ring, slots, 9));
    for (size_t i = 0; i < 9; i++) {
        slots[i]->hold = i;
        slots[i]->bytes[ALONE] = (uint8_t)i;
    }
    uprof_ring_publish(ring, slots, 9, false);
    for (size_t i = 0; i < 9; i++) {
        g_assert_cmpuint(peek_slot(ring)->hold, ==, i);
        g_assert_cmpuint(peek_slot(ring)->bytes[ALONE], ==, i);
        uprof_ring_drop(ring);
    }
    g_assert_null(peek_slot(ring));
}

static void
test_wait_ends(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(1, NULL);
    const uint64_t until_ns = uprof_clock_now_ns() + 5 * UPROF_NS_PER_MS;
    UprofSnapshot *slot;

    wait_for_slot(ring, until_ns);
    g_assert_cmpuint(uprof_clock_now_ns(), >=, until_ns);

    wait_for_slot(ring, 0);
    g_assert_true(uprof_ring_take(ring, &slot, 1));
    uprof_ring_publish(ring, &slot, 1, false);
    wait_for_slot(ring, UINT64_MAX / 2); /* returns at once */
    uprof_ring_drop(ring);
    wait_for_slot(ring, uprof_clock_now_ns() + UPROF_NS_PER_MS); /* a stale wakeup */
    g_assert_null(peek_slot(ring));
}

static bool
wakes_consumer(UprofRing *ring)
{
    struct pollfd wait = { .fd = uprof_ring_fd(ring), .events = POLLIN };

    return poll(&wait, 1, 0) > 0;
}

static void
test_urgent(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(16, NULL);
    UprofSnapshot *slots[2];

    g_assert_true(uprof_ring_take(ring, slots, 2));
    uprof_ring_publish(ring, slots, 1, false);
    g_assert_false(wakes_consumer(ring));
    uprof_ring_publish(ring, slots + 1, 1, true);
    g_assert_true(wakes_consumer(ring));
    uprof_ring_calm(ring);
    g_assert_false(wakes_consumer(ring));
}

typedef struct {
    UprofRing *ring;
    gint is_done;
} Flush;

static gpointer
flush(gpointer data)
{
    Flush *asked = data;

    uprof_ring_flush(asked->ring);
    g_atomic_int_set(&asked->is_done, 1);
    return NULL;
}

/* Returns: true if a flush has ended although two slots, filled after it began, were still filled
 */
static bool
flush_two_of_four(void)
{
    g_autoptr(UprofRing) ring = uprof_ring_new(4, NULL);
    Flush asked = { .ring = ring };
    UprofSnapshot *slots[4];

    g_assert_true(uprof_ring_take(ring, slots, 4));
    uprof_ring_flush(ring); /* a taken slot does not count */
    uprof_ring_publish(ring, slots, 2, false);
    GThread *thread = g_thread_new("flush", flush, &asked);
    g_usleep(20 * 1000);
    g_assert_cmpint(g_atomic_int_get(&asked.is_done), ==, 0);
    uprof_ring_publish(ring, slots + 2, 2, false);
    g_assert_nonnull(peek_slot(ring));
    uprof_ring_drop(ring);
    g_usleep(20 * 1000);
    g_assert_cmpint(g_atomic_int_get(&asked.is_done), ==, 0);
    uprof_ring_drop(ring);
    for (unsigned i = 0; i < 100 && !g_atomic_int_get(&asked.is_done); i++)
        g_usleep(10 * 1000);
    const bool is_done = g_atomic_int_get(&asked.is_done);
    uprof_ring_drop(ring);
    uprof_ring_drop(ring);
    g_thread_join(thread);
    g_assert_cmpuint(count_room(ring), ==, 4);
    return is_done;
}

/*
 * A flush waits for the slots that are filled now, not for later ones. On a busy machine its thread
 * may begin after all four are filled, and wait for all.
 */
static void
test_flush(void)
{
    enum { TRIES = 20 };
    g_autoptr(UprofRing) ring = uprof_ring_new(1, NULL);
    bool is_done = false;

    uprof_ring_flush(ring); /* no slot is filled */
    for (unsigned i = 0; i < TRIES && !is_done; i++)
        is_done = flush_two_of_four();
    g_assert_true(is_done);
}

typedef struct {
    UprofRing *ring;
    uint8_t number;
    size_t n_at_once;
} Producer;

/* A taken slot belongs to one producer: its first write is still there at the end. */
static gpointer
produce(gpointer data)
{
    const Producer *producer = data;
    UprofSnapshot *slots[SLOTS_MAX];

    for (uint64_t i = 0; i < PASSED;) {
        const size_t n = MIN(producer->n_at_once, PASSED - i);
        if (!uprof_ring_take(producer->ring, slots, n)) {
            g_thread_yield();
            continue;
        }
        for (size_t j = 0; j < n; j++) {
            slots[j]->vcpu = producer->number;
            slots[j]->bytes[ALONE] = producer->number;
        }
        if (i % 7 == 3)
            g_thread_yield();
        for (size_t j = 0; j < n; j++) {
            g_assert_cmpuint(slots[j]->vcpu, ==, producer->number);
            g_assert_cmpuint(slots[j]->bytes[ALONE], ==, producer->number);
            slots[j]->hold = i + j;
        }
        /* Sometimes the slots are not needed. */
        if (g_random_int_range(0, 4) == 0) {
            uprof_ring_give(producer->ring, slots, n);
            continue;
        }
        uprof_ring_publish(producer->ring, slots, n, false);
        i += n;
    }
    return NULL;
}

/* The slots of each producer arrive once, in their order. */
static void
test_threads(gconstpointer data)
{
    const unsigned n_producers = GPOINTER_TO_UINT(data);
    g_autoptr(UprofRing) ring = uprof_ring_new(8, NULL);
    Producer producers[PRODUCERS];
    GThread *threads[PRODUCERS];
    uint64_t next[PRODUCERS] = { 0 };

    for (unsigned i = 0; i < n_producers; i++) {
        producers[i] = (Producer){ .ring = ring, .number = (uint8_t)i, .n_at_once = i + 1 };
        threads[i] = g_thread_new("producer", produce, &producers[i]);
    }
    for (uint64_t i = 0; i < n_producers * PASSED; i++) {
        const UprofSnapshot *slot;

        while (!(slot = peek_slot(ring)))
            wait_for_slot(ring, uprof_clock_now_ns() + 10 * UPROF_NS_PER_S);
        g_assert_cmpuint(slot->vcpu, <, n_producers);
        g_assert_cmpuint(slot->bytes[ALONE], ==, slot->vcpu);
        g_assert_cmpuint(slot->hold, ==, next[slot->vcpu]++);
        if (i == PASSED / 2)
            uprof_ring_reserve(ring, 16);
        g_assert_true(peek_slot(ring) == slot);
        uprof_ring_drop(ring);
    }
    for (unsigned i = 0; i < n_producers; i++)
        g_thread_join(threads[i]);
    g_assert_null(peek_slot(ring));
    g_assert_cmpuint(count_room(ring), ==, 16);
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
    g_test_add_func("/ring/peek-several", test_several);
    g_test_add_func("/ring/all-or-none", test_all_or_none);
    g_test_add_func("/ring/given-back", test_given_back);
    g_test_add_func("/ring/reserve", test_reserve);
    g_test_add_func("/ring/wait-ends", test_wait_ends);
    g_test_add_func("/ring/urgent", test_urgent);
    g_test_add_func("/ring/flush", test_flush);
    g_test_add_data_func("/ring/threads/1", GUINT_TO_POINTER(1), test_threads);
    g_test_add_data_func("/ring/threads/several", GUINT_TO_POINTER(PRODUCERS), test_threads);
    g_test_add_func("/ring/free-null", test_free_null);
    return g_test_run();
}
