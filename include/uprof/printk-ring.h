/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printk-ring.h - reads the records of a Linux kernel's log
 *
 * From 5.10, the kernel keeps its log in a ring of descriptors, a ring of infos and a ring of text
 * (Linux, kernel/printk/printk_ringbuffer.c and printk_ringbuffer.h). The kernel writes while the
 * rings are copied. A record counts only if its descriptor is the same before and after its text
 * was copied. A hostile guest may write any bytes: all places are checked against the copies. The
 * largest rings that are accepted, with the largest structures, take 128 MiB with both copies of
 * the descriptors; those of the kernel's own size take 66 MiB. All texts together are at most as
 * long as the ring of text, as blocks of a kernel never overlap.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_PRINTK_COUNT_BITS_MAX = 18, /* 262,144 descriptors */
    UPROF_PRINTK_SIZE_BITS_MAX = 25,  /* 32 MiB of text */
};

/** UprofPrintkLayout: of a kernel's structures, from its type information; all are bytes but
 * @level_bits */
typedef struct {
    /* struct prb_desc: its size, its state, and where its text begins and where the next one does
     */
    uint64_t desc_bytes, state, begin, next;
    /* struct printk_info: its size and members */
    uint64_t info_bytes, sequence, time, text_len, facility, caller;
    /* offset of the three bits of the level in struct printk_info, in bits */
    uint64_t level_bits;
} UprofPrintkLayout;

/** UprofPrintkRing: copies of the rings; borrowed */
typedef struct {
    const UprofPrintkLayout *layout;
    unsigned count_bits;    /* logarithm of the number of descriptors; up to the maximum above */
    unsigned size_bits;     /* logarithm of the bytes of text; likewise */
    uint64_t tail, head;    /* ids of the oldest and newest descriptor */
    UprofSlice descs;       /* before the other rings were copied */
    UprofSlice descs_after; /* and afterwards */
    UprofSlice infos, text;
} UprofPrintkRing;

/** UprofPrintkRecord: a record of the log */
typedef struct {
    uint64_t sequence; /* its number since boot */
    uint64_t time_ns;  /* of the kernel's own clock, about since boot */
    uint32_t caller;   /* number of the task; with the highest bit, number of the CPU */
    uint8_t facility, level;
    /* (nullable): any bytes, borrowed from the copies; %NULL: the text is lost, or overlaps others
     */
    UprofSlice text;
} UprofPrintkRecord;

/** uprof_printk_layout_is_valid: do all members lie in structures that are not too large? */
bool uprof_printk_layout_is_valid(const UprofPrintkLayout *layout);

/**
 * uprof_printk_ring_list:
 * @ring: with a valid layout
 *
 * Linear in the number of descriptors. The array takes 40 bytes for each, and up to as much again.
 *
 * Returns: (transfer full) (nullable): array of UprofPrintkRecord, by sequence, which borrows from
 * the copies; %NULL with %UPROF_ERROR_BAD_DATA if the copies are not as long as the rings
 */
GArray *uprof_printk_ring_list(const UprofPrintkRing *ring, GError **error);
