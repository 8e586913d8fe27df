/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ring.h - fixed slots from one producer to one consumer
 *
 * The sampler asks for room before it holds a guest, fills slots in the hold
 * and publishes them after it; the worker takes them in order and gives them
 * back. No locks, no allocation after uprof_ring_new(); all memory is touched
 * and, as far as the limits allow, locked, so that no page fault happens in a
 * hold.
 */
#pragma once

#include "uprof/snapshot.h"

typedef struct _UprofRing UprofRing;

/**
 * uprof_ring_new:
 * @n_slots: at least 1
 */
UprofRing *uprof_ring_new(size_t n_slots);
void uprof_ring_free(UprofRing *ring);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRing, uprof_ring_free)

/** uprof_ring_room: Returns: slots that the producer may still fill */
size_t uprof_ring_room(const UprofRing *ring);

/**
 * uprof_ring_slot:
 * @i: less than uprof_ring_room(); 0 is the next to be published
 *
 * Returns: (transfer none): that slot, the producer's until it is published
 */
UprofSnapshot *uprof_ring_slot(UprofRing *ring, size_t i);

/** uprof_ring_publish: hands the next @n slots to the consumer */
void uprof_ring_publish(UprofRing *ring, size_t n);

/** uprof_ring_peek: Returns: (nullable) (transfer none): the oldest published slot */
const UprofSnapshot *uprof_ring_peek(UprofRing *ring);

/** uprof_ring_drop: gives the slot of uprof_ring_peek() back to the producer */
void uprof_ring_drop(UprofRing *ring);

/**
 * uprof_ring_wait:
 * @until_ns: monotonic; returns then at the latest
 *
 * Waits in the consumer until something is published.
 */
void uprof_ring_wait(UprofRing *ring, uint64_t until_ns);
