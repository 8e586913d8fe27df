/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fake-xen.h - a hypervisor with one domain, in place of Xen's libraries
 *
 * A test links this file instead of libxencall, libxenforeignmemory and libxenstore. The file
 * answers the calls of access `xen` with the structures of Xen's own headers, and counts pauses
 * as Xen does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_VCPUS_MAX = 4, FAKE_CONTEXT_BYTES = 5168, FAKE_PAGE_BYTES = 4096 };
enum { FAKE_DOMCTL_NS = 1000 }; /* time of one domctl in a multicall, by Xen's clock */

/* Offsets in a context: ctrlreg[0] and [4] */
enum { FAKE_CR0 = 4984, FAKE_CR4 = 5016 };

/** FakeVcpu: a vCPU of the domain; errno values are 0 if the call succeeds */
typedef struct {
    bool online, blocked;
    uint64_t time_ns;                    /* CPU time */
    int context_errno;                   /* the answer in place of @context */
    int hvm_errno;                       /* the answer in place of struct hvm_hw_cpu */
    uint8_t context[FAKE_CONTEXT_BYTES]; /* struct vcpu_guest_context */
} FakeVcpu;

/** FakeXen: the hypervisor and its domain; errno values are 0 if the call succeeds */
typedef struct {
    int open_errno;   /* of opening the device */
    uint32_t version; /* of the interface */
    int refused;      /* errno of every domctl */
    bool is_there;    /* the domain @domid exists */
    int domid;
    int next_domid; /* if @domid does not exist: the next domain, with the same UUID; 0: none */
    uint8_t uuid[16];
    uint32_t flags;  /* XEN_DOMINF_*, without the flag of paused domains */
    unsigned pauses; /* of the domain, by all callers */
    uint64_t tot_pages;
    unsigned address_bits;
    unsigned n_vcpus;
    FakeVcpu vcpus[FAKE_VCPUS_MAX];
    unsigned fail_at;  /* number of the domctl, from 1, that fails; 0: none */
    int fail_errno;    /* of the domctl @fail_at */
    int stop_at;       /* the entry, from 0, before which a multicall stops; -1: none */
    int stop_errno;    /* of the multicall that stops */
    int fault_at;      /* the entry that is done, but whose result cannot be written; -1: none */
    uint64_t clock_ns; /* Xen's clock */
    int clock_errno;   /* of reading the clock */
    unsigned n_calls;  /* hypercalls so far */
    unsigned n_domctls;
    unsigned n_pauses, n_unpauses; /* that succeeded */
    int n_mapped;                  /* pieces of memory that are mapped now */
    unsigned n_maps;               /* mappings so far */
    int map_errno;                 /* of every mapping */
    int frame_errno;               /* of every frame in a mapping */
    uint8_t *ram;                  /* borrowed; memory of the domain, from frame 0 on */
    size_t ram_pages;              /* in @ram */
    const char *name;              /* (nullable): borrowed; the name in xenstore */
} FakeXen;

extern FakeXen fake_xen;
