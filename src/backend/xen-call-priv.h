/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-call-priv.h - the few questions that are asked of Xen, and the two orders
 *
 * All of them are domctls (Xen, xen/include/public/domctl.h), made by libxencall
 * from a buffer that is allocated once: libxenctrl would make the same calls
 * with buffers of their own, for five times the time, and is of one version of
 * Xen only. The structures below are the same from Xen 4.14 to 4.22, whose
 * interface has version numbers from 0x12 to 0x18.
 */
#pragma once

#include "uprof/xen-vcpu.h"

enum {
    UPROF_XEN_VCPUS_MAX = 512, /* Xen's own limit is 128 for PVH and HVM, more for PV */
    UPROF_XEN_NAME_BYTES = 64,
};

typedef struct _UprofXenCall UprofXenCall;

/** UprofXenFlags: of a domain; from the domctl's XEN_DOMINF_* */
typedef struct {
    bool dying;
    bool hvm; /* PVH too */
    bool paused;
    bool shut_down;
    uint8_t shutdown_reason; /* sched.h: SHUTDOWN_* */
} UprofXenFlags;

enum { UPROF_XEN_SHUTDOWN_SUSPEND = 2 }; /* for a save or a migration */

typedef struct {
    UprofXenFlags flags;
    uint64_t tot_pages;
    uint64_t cpu_ns;  /* CPU time of all its vCPUs */
    unsigned n_vcpus; /* places */
    uint8_t uuid[16];
} UprofXenInfo;

/** UprofXenRun: whether a vCPU runs: @time_ns: of CPU it has had */
typedef struct {
    bool online;
    bool blocked;
    uint64_t time_ns;
} UprofXenRun;

/**
 * uprof_xen_call_open:
 * @domid: the domain that all calls are about
 * @name: of it, clean, for messages; copied
 *
 * Finds the version of the interface by asking.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED (no
 *   Xen, no dom0, or a version that is not known), %UPROF_ERROR_DENIED, or
 *   %UPROF_ERROR_NOT_FOUND without such a domain
 */
UprofXenCall *uprof_xen_call_open(int domid, const char *name, GError **error);
void uprof_xen_call_close(UprofXenCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofXenCall, uprof_xen_call_close)

/*
 * The functions below return 0, or an errno value: ESRCH: there is no such
 * domain any more; EACCES, EPERM: Xen's security policy.
 */

/** uprof_xen_call_info: may be called in any one thread beside that of the rest */
int uprof_xen_call_info(UprofXenCall *call, UprofXenInfo *info);

/** uprof_xen_call_word_bytes: @word_bytes: (out): of a PV guest: 4 or 8 */
int uprof_xen_call_word_bytes(UprofXenCall *call, unsigned *word_bytes);

/**
 * uprof_xen_call_reserve: room for what is asked of @n_vcpus at once; once, before what follows
 */
bool uprof_xen_call_reserve(UprofXenCall *call, unsigned n_vcpus, GError **error);

/**
 * uprof_xen_call_look:
 * @info: (out)
 * @runs: (out): of all vCPUs
 *
 * One hypercall, which disturbs nothing.
 */
int uprof_xen_call_look(UprofXenCall *call, UprofXenInfo *info, UprofXenRun *runs);

/**
 * uprof_xen_call_hvm_cpu:
 * @record: (out): UPROF_XEN_HVM_CPU_BYTES, good until the next call
 *
 * Returns: ENODATA, EINVAL: no such vCPU
 */
int uprof_xen_call_hvm_cpu(UprofXenCall *call, unsigned vcpu, UprofSlice *record);

/**
 * uprof_xen_call_contexts:
 * @pause: pauses the domain first; a failure is returned, and nothing is paused then,
 *   but for EINPROGRESS: it may be paused
 * @wanted: of all vCPUs, those whose contexts are copied
 *
 * One hypercall. What became of each context: uprof_xen_call_context(). Allocates nothing.
 * With @pause it makes all ready for uprof_xen_call_unpause_timed().
 */
int uprof_xen_call_contexts(UprofXenCall *call, bool pause, const bool *wanted);

/**
 * uprof_xen_call_context:
 * @context: (out): @len bytes of what the last uprof_xen_call_contexts() has copied
 *
 * Returns: 0; ENODATA: it was never brought up; EINVAL: no such vCPU, or not asked for
 */
int uprof_xen_call_context(UprofXenCall *call, unsigned vcpu, size_t len, UprofSlice *context);

/** uprof_xen_call_unpause: takes back one pause; EINVAL: there is none */
int uprof_xen_call_unpause(UprofXenCall *call);

/**
 * uprof_xen_call_unpause_timed: likewise, once for each uprof_xen_call_contexts() that
 * has paused; EINPROGRESS: it may have been done, or not
 */
int uprof_xen_call_unpause_timed(UprofXenCall *call);

/**
 * uprof_xen_call_paused_ns: Returns: from just before Xen began the last pause to just
 *   before it began to take it back, by its own clock, which it reads on its way through
 *   both multicalls; 0: it has not said. In dom0 reading a clock is a system call.
 */
uint64_t uprof_xen_call_paused_ns(const UprofXenCall *call);
