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
#include "ahead-priv.h"

enum {
    UPROF_XEN_VCPUS_MAX = 512, /* Xen's own limit is 128 for PVH and HVM, more for PV */
    UPROF_XEN_NAME_BYTES = 64,
    UPROF_XEN_COPIES_MAX = 16, /* vCPUs of a domain whose stacks Xen may copy */
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

/** UprofXenCopy: memory of a domain: @len bytes from guest-virtual @gva on; @len 0: none */
typedef struct {
    uint64_t gva;
    uint32_t len; /* up to UPROF_AHEAD_BYTES_MAX */
} UprofXenCopy;

/**
 * uprof_xen_call_shoot:
 * @wanted: of all vCPUs, those whose contexts are copied
 * @copies: of all vCPUs, up to %UPROF_XEN_COPIES_MAX; addresses are what they are to vCPU 0
 * @unpaused: (out): of the unpause, as of uprof_xen_call_unpause_timed(); EAGAIN: it was
 *   not made, and the domain is still paused
 *
 * All of a hold in one hypercall: pause, contexts, copies, unpause. Xen makes the copies,
 * as for its debugger: it walks the tables that vCPU 0 uses at that moment. (It would walk
 * others too, from a frame that it is given; but whether that still holds tables of the
 * domain it does not look, so it is given none.)
 *
 * The unpause is made whatever becomes of the pause, so a pause must not fail where an
 * unpause would not: both must have succeeded before, and the domain must run. What is
 * left is that somebody else pauses it between a look at it and this call, and Xen cannot
 * pause it once more (it counts to 255), or cannot read the order any more.
 *
 * Returns: as uprof_xen_call_contexts(); unless that is 0, or EINPROGRESS, @unpaused
 *   says nothing
 */
int uprof_xen_call_shoot(UprofXenCall *call, const bool *wanted, const UprofXenCopy *copies,
                         int *unpaused);

/**
 * uprof_xen_call_copied:
 * @bytes: (out): those of the last uprof_xen_call_shoot(), all of them
 *
 * Returns: 0; EFAULT: some are not there; ENOSYS, EOPNOTSUPP: this Xen makes no copies
 */
int uprof_xen_call_copied(UprofXenCall *call, unsigned vcpu, const uint8_t **bytes);

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
