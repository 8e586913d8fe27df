/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-call-priv.h - the hypercalls that access `xen` makes
 *
 * All of them are domctls (Xen, xen/include/public/domctl.h), made through libxencall with a
 * buffer that is allocated once. libxenctrl would allocate a buffer for each call, and a call
 * would take five times as long. libxenctrl also supports one version of Xen only. The
 * structures are the same from Xen 4.14 to 4.22, whose interface versions are 0x12 to 0x18.
 */
#pragma once

#include "uprof/xen-vcpu.h"

enum { UPROF_XEN_VCPUS_MAX = 512 }; /* Xen's own limit is 128 for PVH and HVM, more for PV */

typedef struct _UprofXenCall UprofXenCall;

/** UprofXenFlags: of a domain; from the domctl's XEN_DOMINF_* */
typedef struct {
    bool dying;
    bool hvm; /* also set for PVH */
    bool paused;
    bool shut_down;
    uint8_t shutdown_reason; /* UPROF_XEN_SHUTDOWN_* */
} UprofXenFlags;

/* sched.h */
enum {
    UPROF_XEN_SHUTDOWN_SUSPEND = 2, /* for a save or a migration */
    UPROF_XEN_SHUTDOWN_CRASH = 3,   /* the guest has told so, mostly in a panic */
};

typedef struct {
    UprofXenFlags flags;
    uint64_t tot_pages;
    uint64_t cpu_ns;  /* CPU time of all its vCPUs */
    unsigned n_vcpus; /* highest number + 1; some may be offline */
    uint8_t uuid[16];
} UprofXenInfo;

/** UprofXenRun: the state of one vCPU */
typedef struct {
    bool online;
    bool blocked;     /* waits for an event */
    uint64_t time_ns; /* CPU time that it has had */
} UprofXenRun;

/**
 * uprof_xen_call_open:
 * @domid: number of the domain for all calls
 * @name: of the domain, for messages, safe to print; copied
 *
 * Tries all versions of the interface to find the right one.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED (no
 *   Xen, no dom0, or a version that is not known), %UPROF_ERROR_DENIED, or
 *   %UPROF_ERROR_NOT_FOUND without such a domain
 */
UprofXenCall *uprof_xen_call_open(int domid, const char *name, GError **error);
void uprof_xen_call_close(UprofXenCall *call);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofXenCall, uprof_xen_call_close)

/*
 * The functions below return 0 or an errno value. ESRCH: the domain has ended. EACCES, EPERM:
 * Xen's security policy refuses.
 */

/** uprof_xen_call_info: may be called in one other thread at the same time */
int uprof_xen_call_info(UprofXenCall *call, UprofXenInfo *info);

/** uprof_xen_call_word_bytes: @word_bytes: (out): of a PV guest: 4 or 8 */
int uprof_xen_call_word_bytes(UprofXenCall *call, unsigned *word_bytes);

/**
 * uprof_xen_call_reserve: allocates the buffers of the functions below; call it once
 */
bool uprof_xen_call_reserve(UprofXenCall *call, unsigned n_vcpus, GError **error);

/**
 * uprof_xen_call_read_info:
 * @info: (out)
 * @runs: (out): of all vCPUs
 *
 * One hypercall, which disturbs nothing.
 */
int uprof_xen_call_read_info(UprofXenCall *call, UprofXenInfo *info, UprofXenRun *runs);

/**
 * uprof_xen_call_hvm_cpu:
 * @record: (out): UPROF_XEN_HVM_CPU_BYTES, valid until the next call
 *
 * Returns: 0, or an errno value; ENODATA, EINVAL: no such vCPU
 */
int uprof_xen_call_hvm_cpu(UprofXenCall *call, unsigned vcpu, UprofSlice *record);

/**
 * uprof_xen_call_contexts:
 * @pause: pause the domain before the contexts are copied
 * @looks: before that, ask for what uprof_xen_call_read_info() asks; uprof_xen_call_looked() has
 * the answer
 * @wanted: per vCPU: copy its context
 *
 * Makes one hypercall and allocates nothing. uprof_xen_call_context() tells which contexts were
 * copied. With @pause, also prepares uprof_xen_call_unpause_timed().
 *
 * Returns: 0, or an errno value. After EINPROGRESS the domain may be paused; after any other
 *   failure this call has not paused the domain.
 */
int uprof_xen_call_contexts(UprofXenCall *call, bool pause, bool looks, const bool *wanted);

/**
 * uprof_xen_call_looked: the state just before the last uprof_xen_call_contexts() with @looks
 * @info: (out)
 * @runs: (out): of all vCPUs
 *
 * Makes no hypercall.
 */
int uprof_xen_call_looked(UprofXenCall *call, UprofXenInfo *info, UprofXenRun *runs);

/**
 * uprof_xen_call_context:
 * @context: (out): the first @len bytes that the last uprof_xen_call_contexts() copied
 *
 * Returns: 0; ENODATA: the vCPU was never brought up; EINVAL: there is no such vCPU, or its
 *   context was not wanted
 */
int uprof_xen_call_context(UprofXenCall *call, unsigned vcpu, size_t len, UprofSlice *context);

/** uprof_xen_call_unpause: undoes one pause. Returns: EINVAL if the domain is not paused */
int uprof_xen_call_unpause(UprofXenCall *call);

/**
 * uprof_xen_call_unpause_timed: as uprof_xen_call_unpause(), and reads Xen's clock first
 *
 * Call it once for each uprof_xen_call_contexts() that has paused.
 *
 * Returns: 0, or an errno value; EINPROGRESS: it is unknown whether Xen has undone the pause
 */
int uprof_xen_call_unpause_timed(UprofXenCall *call);

/**
 * uprof_xen_call_paused_ns:
 *
 * Xen reads its own clock inside both multicalls, because in dom0 reading a clock is a system
 * call.
 *
 * Returns: the time from right before the last pause to right before its unpause; 0 if Xen did
 *   not write both times
 */
uint64_t uprof_xen_call_paused_ns(const UprofXenCall *call);
