/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/ring.h"

#include "uprof/error.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FLUSH_STEP_US = 200,
    WAKE_PART = 4, /* the consumer is woken when this part of the slots is filled */
};

/* Slots of one mapping */
typedef struct {
    UprofSnapshot *slots;
    size_t len; /* bytes mapped */
} Chunk;

/*
 * The slot that was freed last is taken next, because its bytes may still be in the cache.
 * The descriptor only wakes the consumer; the queue decides whether there is a slot.
 */
struct _UprofRing {
    GMutex lock;     /* protects all members except the descriptor; never taken during a hold */
    GArray *chunks;  /* (element-type Chunk) */
    GPtrArray *idle; /* (element-type UprofSnapshot): free slots */
    GQueue filled;   /* (element-type UprofSnapshot): filled slots, oldest first */
    GQueue links;    /* unused links for `filled`, so that a run allocates nothing */
    size_t n_slots;
    uint64_t published, dropped;
    int wakeup; /* eventfd */
};

static bool
add_chunk(UprofRing *ring, size_t n_slots, GError **error)
{
    Chunk chunk;

    g_assert(n_slots > 0 && !__builtin_mul_overflow(n_slots, sizeof(UprofSnapshot), &chunk.len));
    chunk.slots = mmap(NULL, chunk.len, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (chunk.slots == MAP_FAILED)
        return uprof_error_fail_errno(error, "no memory for %zu samples", n_slots);

    /* A failure does no harm: all pages were touched, and only swapping could remove them. */
    mlock(chunk.slots, chunk.len);
    g_array_append_val(ring->chunks, chunk);
    for (size_t i = n_slots; i-- > 0;) {
        g_ptr_array_add(ring->idle, &chunk.slots[i]);
        g_queue_push_tail(&ring->links, NULL);
    }
    ring->n_slots += n_slots;
    return true;
}

UprofRing *
uprof_ring_new(size_t n_slots, GError **error)
{
    g_autoptr(UprofRing) ring = g_new0(UprofRing, 1);

    g_mutex_init(&ring->lock);
    g_queue_init(&ring->filled);
    g_queue_init(&ring->links);
    ring->chunks = g_array_new(FALSE, FALSE, sizeof(Chunk));
    ring->idle = g_ptr_array_new();
    ring->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->wakeup < 0) {
        uprof_error_fail_errno(error, "no descriptor for samples");
        return NULL;
    }
    return add_chunk(ring, n_slots, error) ? g_steal_pointer(&ring) : NULL;
}

void
uprof_ring_free(UprofRing *ring)
{
    if (!ring)
        return;
    for (guint i = 0; i < ring->chunks->len; i++) {
        const Chunk *chunk = &g_array_index(ring->chunks, Chunk, i);
        munmap(chunk->slots, chunk->len);
    }
    g_array_unref(ring->chunks);
    g_ptr_array_unref(ring->idle);
    g_queue_clear(&ring->filled);
    g_queue_clear(&ring->links);
    g_mutex_clear(&ring->lock);
    if (ring->wakeup >= 0)
        close(ring->wakeup);
    g_free(ring);
}

void
uprof_ring_reserve(UprofRing *ring, size_t n_slots)
{
    g_autoptr(GError) error = NULL;

    g_mutex_lock(&ring->lock);
    if (n_slots > ring->n_slots && !add_chunk(ring, n_slots - ring->n_slots, &error))
        g_error("%s", error->message); /* like g_malloc() */
    g_mutex_unlock(&ring->lock);
}

bool
uprof_ring_take(UprofRing *ring, UprofSnapshot **slots, size_t n)
{
    g_mutex_lock(&ring->lock);
    const bool ok = n <= ring->idle->len;
    for (size_t i = 0; ok && i < n; i++)
        slots[i] = g_ptr_array_steal_index_fast(ring->idle, ring->idle->len - 1);
    g_mutex_unlock(&ring->lock);
    return ok;
}

void
uprof_ring_publish(UprofRing *ring, UprofSnapshot **slots, size_t n, bool is_urgent)
{
    if (n == 0)
        return;
    g_mutex_lock(&ring->lock);
    for (size_t i = 0; i < n; i++) {
        GList *link = g_queue_pop_head_link(&ring->links);
        g_assert(link); /* there are as many links as slots */
        link->data = slots[i];
        g_queue_push_tail_link(&ring->filled, link);
    }
    ring->published += n;
    const bool is_filling = ring->filled.length >= MAX(ring->n_slots / WAKE_PART, 1);
    g_mutex_unlock(&ring->lock);
    if (is_filling || is_urgent)
        eventfd_write(ring->wakeup, 1);
}

void
uprof_ring_give(UprofRing *ring, UprofSnapshot **slots, size_t n)
{
    g_mutex_lock(&ring->lock);
    for (size_t i = n; i-- > 0;)
        g_ptr_array_add(ring->idle, slots[i]);
    g_assert(ring->idle->len <= ring->n_slots);
    g_mutex_unlock(&ring->lock);
}

size_t
uprof_ring_peek(UprofRing *ring, const UprofSnapshot **slots, size_t n_max)
{
    size_t n = 0;

    g_mutex_lock(&ring->lock);
    for (const GList *link = ring->filled.head; link && n < n_max; link = link->next) {
        const UprofSnapshot *slot = link->data;
        if (n > 0 && slot->owner != slots[0]->owner)
            break;
        slots[n++] = slot;
    }
    g_mutex_unlock(&ring->lock);
    return n;
}

void
uprof_ring_drop(UprofRing *ring)
{
    g_mutex_lock(&ring->lock);
    GList *link = g_queue_pop_head_link(&ring->filled);
    g_assert(link);
    g_ptr_array_add(ring->idle, link->data);
    g_queue_push_head_link(&ring->links, link);
    ring->dropped++;
    g_mutex_unlock(&ring->lock);
}

int
uprof_ring_fd(const UprofRing *ring)
{
    return ring->wakeup;
}

void
uprof_ring_calm(UprofRing *ring)
{
    eventfd_t count;

    eventfd_read(ring->wakeup, &count);
}

void
uprof_ring_flush(UprofRing *ring)
{
    g_mutex_lock(&ring->lock);
    const uint64_t until = ring->published;
    if (ring->dropped < until)
        eventfd_write(ring->wakeup, 1);
    while (ring->dropped < until) {
        g_mutex_unlock(&ring->lock);
        g_usleep(FLUSH_STEP_US);
        g_mutex_lock(&ring->lock);
    }
    g_mutex_unlock(&ring->lock);
}
