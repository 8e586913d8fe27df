/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/ring.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "uprof/clock.h"

/*
 * Both counters only rise; their difference is what is published and not yet
 * dropped. The producer alone writes `published`, the consumer alone
 * `dropped`. The semaphore wakes the consumer and decides nothing: posting to
 * it never waits, and that it is full does not matter.
 */
struct _UprofRing {
    UprofSnapshot *slots;
    size_t n_slots;
    size_t len; /* bytes mapped */
    sem_t wakeup;
    _Atomic uint64_t published;
    _Atomic uint64_t dropped;
};

UprofRing *
uprof_ring_new(size_t n_slots)
{
    size_t len;

    g_assert(n_slots > 0 && !__builtin_mul_overflow(n_slots, sizeof(UprofSnapshot), &len));

    void *slots =
        mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (slots == MAP_FAILED)
        g_error("no memory for %zu slots: %s", n_slots, g_strerror(errno)); /* as g_malloc() */

    /* Best effort: all is touched, and without the lock only swapping can undo it. */
    mlock(slots, len);

    UprofRing *ring = g_new0(UprofRing, 1);
    ring->slots = slots;
    ring->n_slots = n_slots;
    ring->len = len;
    sem_init(&ring->wakeup, 0, 0);
    return ring;
}

void
uprof_ring_free(UprofRing *ring)
{
    if (!ring)
        return;
    munmap(ring->slots, ring->len);
    sem_destroy(&ring->wakeup);
    g_free(ring);
}

size_t
uprof_ring_room(const UprofRing *ring)
{
    const uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_acquire);

    return ring->n_slots - (atomic_load_explicit(&ring->published, memory_order_relaxed) - dropped);
}

UprofSnapshot *
uprof_ring_slot(UprofRing *ring, size_t i)
{
    const uint64_t published = atomic_load_explicit(&ring->published, memory_order_relaxed);

    g_assert(i < uprof_ring_room(ring));
    return &ring->slots[(published + i) % ring->n_slots];
}

void
uprof_ring_publish(UprofRing *ring, size_t n)
{
    g_assert(n <= uprof_ring_room(ring));
    if (n == 0)
        return;

    atomic_fetch_add_explicit(&ring->published, n, memory_order_release);
    sem_post(&ring->wakeup);
}

const UprofSnapshot *
uprof_ring_peek(UprofRing *ring)
{
    const uint64_t dropped = atomic_load_explicit(&ring->dropped, memory_order_relaxed);

    if (atomic_load_explicit(&ring->published, memory_order_acquire) == dropped)
        return NULL;
    return &ring->slots[dropped % ring->n_slots];
}

void
uprof_ring_drop(UprofRing *ring)
{
    g_assert(uprof_ring_peek(ring));
    atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_release);
}

void
uprof_ring_wait(UprofRing *ring, uint64_t until_ns)
{
    const struct timespec until = {
        .tv_sec = until_ns / UPROF_NS_PER_S,
        .tv_nsec = until_ns % UPROF_NS_PER_S,
    };

    /* A post for slots that were taken without waiting costs one round. */
    while (!uprof_ring_peek(ring))
        if (sem_clockwait(&ring->wakeup, CLOCK_MONOTONIC, &until) != 0 && errno == ETIMEDOUT)
            return;
}
