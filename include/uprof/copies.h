/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * copies.h - small pieces of a guest's memory in one window of a snapshot
 *
 * A snapshot has few windows, and a list or a tree has many small parts. So their copies are packed
 * into one window, at an address that no guest has. Each copy has a head and is padded to 8 bytes.
 * The bytes may be of a capture, so a reader checks each head.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/snapshot.h"

/** %UPROF_COPIES_AT: the address of the window; no virtual address of x86 or aarch64 */
#define UPROF_COPIES_AT (UINT64_C(1) << 63)

/** UprofCopies: packs copies into a snapshot */
typedef struct {
    UprofSnapshot *snapshot; /* borrowed */
    size_t max, used;        /* bytes */
    uint32_t offset;         /* of the window's bytes */
} UprofCopies;

/** uprof_copies_begin: @snapshot: gets no other window until uprof_copies_end() */
void uprof_copies_begin(UprofCopies *copies, UprofSnapshot *snapshot);

/**
 * uprof_copies_add: reserves room for a copy
 * @gva: guest-virtual address of its first byte
 * @len: bytes
 *
 * Returns: (nullable): where the caller writes the @len bytes; %NULL if there is no room
 */
uint8_t *uprof_copies_add(UprofCopies *copies, uint64_t gva, size_t len);

/** uprof_copies_drop: removes the last copy, of @len bytes */
void uprof_copies_drop(UprofCopies *copies, size_t len);

/** uprof_copies_end: adds the window, if there is a copy */
void uprof_copies_end(UprofCopies *copies);

/** uprof_copies_find: Returns: the packed copies of a snapshot; borrowed; empty if it has none */
UprofSlice uprof_copies_find(const UprofSnapshot *snapshot);

/**
 * uprof_copies_read:
 * @packed: of uprof_copies_find()
 * @into: (out): @len bytes; untouched on failure
 *
 * Returns: false unless one copy has all of the bytes
 */
bool uprof_copies_read(UprofSlice packed, uint64_t gva, void *into, size_t len);
