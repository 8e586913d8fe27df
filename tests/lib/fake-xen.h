/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fake-xen.h - a hypervisor with one domain, in place of Xen's libraries
 *
 * Answers what access `xen` asks of libxencall, libxenforeignmemory and
 * libxenstore, by the structures of Xen's own headers, and counts pauses as Xen
 * does. To be linked instead of the libraries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_VCPUS_MAX = 4, FAKE_CONTEXT_BYTES = 5168, FAKE_PAGE_BYTES = 4096 };
enum { FAKE_DOMCTL_NS = 1000 }; /* that one of a multicall takes by Xen's clock */

/* In a context: ctrlreg[0] and [4] */
enum { FAKE_CR0 = 4984, FAKE_CR4 = 5016 };

/** FakeVcpu: @context_errno, @hvm_errno: what is answered in place of its context, and its modes */
typedef struct {
    bool online, blocked;
    uint64_t time_ns;
    int context_errno, hvm_errno;
    uint8_t context[FAKE_CONTEXT_BYTES];
} FakeVcpu;

/**
 * FakeXen:
 * @open_errno: why the device cannot be opened; 0: it can
 * @version: of the interface
 * @refused: errno of every domctl; 0: none
 * @is_there: there is the domain @domid
 * @next_domid: while that is not there: the next one's number, which has its UUID; 0: none
 * @flags: XEN_DOMINF_* besides paused
 * @pauses: of the domain, by whomever
 * @fail_at: number of the domctl (from 1) that fails with @fail_errno; 0: none
 * @stop_at: number of the multicall's entry (from 0) that is not reached, for
 *   @stop_errno; -1: all are
 * @fault_at: number of the one that is done, but whose result cannot be written; -1: none
 * @clock_ns: by Xen's clock; @clock_errno: why it is not said; 0: it is
 * @n_calls, @n_domctls, @n_pauses, @n_unpauses: that were made; the last two: and succeeded
 * @n_mapped: pieces of memory that are mapped now; @n_maps: that were ever
 * @map_errno: why nothing can be mapped; @frame_errno: why no frame can; 0: they can
 * @ram, @ram_pages: from frame 0 on
 * @name: (nullable): in xenstore
 */
typedef struct {
    int open_errno;
    uint32_t version;
    int refused;
    bool is_there;
    int domid;
    int next_domid;
    uint8_t uuid[16];
    uint32_t flags;
    unsigned pauses;
    uint64_t tot_pages;
    unsigned address_bits;
    unsigned n_vcpus;
    FakeVcpu vcpus[FAKE_VCPUS_MAX];
    unsigned fail_at;
    int fail_errno;
    int stop_at, stop_errno;
    int fault_at;
    uint64_t clock_ns;
    int clock_errno;
    unsigned n_calls, n_domctls, n_pauses, n_unpauses;
    int n_mapped;
    unsigned n_maps;
    int map_errno, frame_errno;
    uint8_t *ram;
    size_t ram_pages;
    const char *name;
} FakeXen;

extern FakeXen fake_xen;
