/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ring.h - snapshots on their way from the samplers to the worker, in reused slots
 *
 * All samplers of a run share one pool of slots and one queue of filled slots, which one
 * consumer reads. A sampler takes slots before a hold, and only fills them during the hold.
 * All slots are locked in memory, so that a hold has no page faults. There are few slots,
 * so that the bytes of a stack are still in the processor's cache when it is unwound.
 */
#pragma once

#include "uprof/snapshot.h"

typedef struct _UprofRing UprofRing;

/**
 * uprof_ring_new:
 * @n_slots: at least 1
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofRing *uprof_ring_new(size_t n_slots, GError **error);
void uprof_ring_free(UprofRing *ring);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRing, uprof_ring_free)

/**
 * uprof_ring_reserve: adds slots until the ring has @n_slots; ends the program if there is no
 * memory
 */
void uprof_ring_reserve(UprofRing *ring, size_t n_slots);

/**
 * uprof_ring_take: for any sampler
 * @slots: (out): @n slots, which the caller must publish or return with uprof_ring_give()
 *
 * Returns: false, without any slot, if fewer than @n are free
 */
bool uprof_ring_take(UprofRing *ring, UprofSnapshot **slots, size_t n);

/**
 * uprof_ring_publish: passes @n taken slots to the consumer, in this order
 * @is_urgent: wakes the consumer at once: see uprof_ring_fd()
 */
void uprof_ring_publish(UprofRing *ring, UprofSnapshot **slots, size_t n, bool is_urgent);

/** uprof_ring_give: returns @n taken slots unused */
void uprof_ring_give(UprofRing *ring, UprofSnapshot **slots, size_t n);

/**
 * uprof_ring_peek: for the consumer
 * @slots: (out) (transfer none): the oldest filled slots, in order: all that follow each other with
 * one owner, at most @n_max
 *
 * Returns: how many; 0 if no slot is filled
 */
size_t uprof_ring_peek(UprofRing *ring, const UprofSnapshot **slots, size_t n_max);

/** uprof_ring_drop: for the consumer: frees the first slot that uprof_ring_peek() returns */
void uprof_ring_drop(UprofRing *ring);

/**
 * uprof_ring_fd:
 *
 * The consumer should look at the ring ten to fifty times a second and handle several slots at
 * once. This costs less than a wakeup for each slot. The descriptor wakes the consumer early if
 * slots fill faster.
 *
 * Returns: borrowed: a descriptor that is readable when a quarter of the slots is filled, or a slot
 *   is urgent
 */
int uprof_ring_fd(const UprofRing *ring);

/** uprof_ring_calm: makes that descriptor unreadable; call it before a peek */
void uprof_ring_calm(UprofRing *ring);

/**
 * uprof_ring_flush: waits until the consumer has dropped all slots that are filled now
 *
 * Not for the consumer's own thread.
 */
void uprof_ring_flush(UprofRing *ring);
