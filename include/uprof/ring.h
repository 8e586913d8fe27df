/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ring.h - the way from samplers to the worker: fixed slots, used over and over
 *
 * One pool of slots for all samplers of a run, one queue of those that are
 * filled, one consumer. A sampler takes its slots before a hold; in one it only
 * fills them. Slots are touched and locked in memory beforehand, so that no page
 * fault happens in a hold, and few, so that a stack is unwound while its bytes
 * are still in the processor's cache.
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

/** uprof_ring_reserve: makes sure that there are @n_slots in all, so that as many can be taken */
void uprof_ring_reserve(UprofRing *ring, size_t n_slots);

/**
 * uprof_ring_take: any producer
 * @slots: (out): @n slots, the caller's until they are published or given back
 *
 * Returns: false, with none taken, if there are not as many
 */
bool uprof_ring_take(UprofRing *ring, UprofSnapshot **slots, size_t n);

/** uprof_ring_publish: hands @n taken slots to the consumer, in this order */
void uprof_ring_publish(UprofRing *ring, UprofSnapshot **slots, size_t n);

/** uprof_ring_give: gives @n taken slots back unused */
void uprof_ring_give(UprofRing *ring, UprofSnapshot **slots, size_t n);

/** uprof_ring_peek: Returns: (nullable) (transfer none): the oldest published slot */
const UprofSnapshot *uprof_ring_peek(UprofRing *ring);

/** uprof_ring_drop: the consumer is done with the slot of uprof_ring_peek() */
void uprof_ring_drop(UprofRing *ring);

/**
 * uprof_ring_wait:
 * @until_ns: monotonic; returns then at the latest
 *
 * Waits in the consumer until something is published.
 */
void uprof_ring_wait(UprofRing *ring, uint64_t until_ns);

/**
 * uprof_ring_flush:
 *
 * Waits in another thread until the consumer has dropped all that has been
 * published so far.
 */
void uprof_ring_flush(UprofRing *ring);
