/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kvm-vcpu-priv.h - one vCPU of a local KVM guest on x86: its thread, and the page in which
 * the kernel leaves its registers
 *
 * `struct kvm_run` (linux/kvm.h, Documentation/virt/kvm/api.rst, "KVM_RUN" and
 * "KVM_CAP_SYNC_REGS") is a page that the kernel shares with QEMU for each vCPU. If bits are
 * set in its kvm_valid_regs, the kernel stores the registers in the page at every exit to
 * QEMU. A thread that ptrace has stopped has just made such an exit.
 *
 * kvm_valid_regs is the only word that virt-uprof writes outside of its own process, and it
 * is restored at the end. virt-uprof never writes the neighboring kvm_dirty_regs: the kernel
 * would then load the registers of the page into the guest.
 *
 * The states of a vCPU. Its owner alone may use and change its other members. An atomic word
 * hands it from owner to owner, so no lock is needed:
 *
 *   status     owner    what ends it
 *   UNPLUGGED  poller   QEMU reports the vCPU as plugged in      -> UNOPENED
 *   UNOPENED   poller   uprof_kvm_vcpu_open() succeeds           -> OPEN
 *                       QEMU reports the vCPU as unplugged       -> UNPLUGGED
 *   OPEN       sampler  a hold stops it                          -> HELD
 *                       a hold times out                         -> LATE
 *                       its thread has ended                     -> LOST
 *   HELD       sampler  the release detaches it                  -> OPEN
 *                       it was killed in the hold                -> LATE
 *   LATE       sampler  it stops after all and is detached       -> OPEN
 *   LOST       poller   uprof_kvm_vcpu_close()                   -> UNOPENED, UNPLUGGED
 *
 * If the guest has ended, the sampler closes all vCPUs that it owns. Before sampling begins,
 * the thread that opens the guest is poller and sampler at once.
 */
#pragma once

#include "thread-priv.h"
#include "tracer-priv.h"

#include "uprof/guest.h"

/* Why there is no access, for messages. */
#define UPROF_KVM_LATE "a vCPU thread did not stop in time"

struct kvm_run;

typedef enum {
    UPROF_KVM_VCPU_UNPLUGGED,
    UPROF_KVM_VCPU_UNOPENED,
    UPROF_KVM_VCPU_OPEN,
    UPROF_KVM_VCPU_HELD,
    UPROF_KVM_VCPU_LATE,
    UPROF_KVM_VCPU_LOST,
} UprofKvmVcpuStatus;

/** UprofKvmVcpuOwner: the word that hands a vCPU from owner to owner */
typedef enum {
    UPROF_KVM_VCPU_CLOSED,   /* the poller's: nothing is open */
    UPROF_KVM_VCPU_SAMPLED,  /* the sampler's */
    UPROF_KVM_VCPU_RETURNED, /* the poller's: to be closed */
} UprofKvmVcpuOwner;

/** UprofKvmVcpu: all zero: closed */
typedef struct {
    gint owner;      /* UprofKvmVcpuOwner; atomic */
    gint is_plugged; /* QEMU has this vCPU, by its own report; atomic, set by the poller */
    UprofTracee tracee;
    UprofThread *thread;          /* owned */
    volatile struct kvm_run *run; /* owned: mapped, shared with QEMU and the kernel */
    uint64_t found_valid;         /* kvm_valid_regs before virt-uprof changed it */
    int fd;                       /* on which QEMU calls KVM_RUN; a number in QEMU's process */
    /* the vCPU was in KVM_RUN since the bits were set: the page has its registers */
    bool is_page_valid;
    /* at the last check the thread slept in KVM_RUN: the vCPU was halted, or never started */
    bool is_asleep;
    /* the vCPU was held at least once, so @times is set */
    bool has_sample;
    /* @times are from before the last hold: the hold itself may have changed them */
    bool was_just_held;
    /* no check has seen the thread asleep since the last hold: it may wait for a CPU */
    bool is_waking;
    UprofThreadTimes times; /* of the thread, at the last check or hold */
    uint64_t seen_ns;       /* monotonic: the thread existed at that time, by its files in /proc */
} UprofKvmVcpu;

/** uprof_kvm_vcpu_status: only in the owner's thread */
UprofKvmVcpuStatus uprof_kvm_vcpu_status(const UprofKvmVcpu *vcpu);

/** uprof_kvm_vcpu_is_open: from any thread; true for OPEN, HELD and LATE */
static inline bool
uprof_kvm_vcpu_is_open(const UprofKvmVcpu *vcpu)
{
    return g_atomic_int_get(&vcpu->owner) == UPROF_KVM_VCPU_SAMPLED;
}

/** uprof_kvm_vcpu_is_lost: from any thread */
static inline bool
uprof_kvm_vcpu_is_lost(const UprofKvmVcpu *vcpu)
{
    return g_atomic_int_get(&vcpu->owner) == UPROF_KVM_VCPU_RETURNED;
}

/** uprof_kvm_vcpu_lose: hands an open vCPU whose thread has ended to the poller */
void uprof_kvm_vcpu_lose(UprofKvmVcpu *vcpu);

/**
 * uprof_kvm_vcpu_open:
 * @vcpu: closed
 * @tracer: of the calling thread
 * @pid: of QEMU
 * @pidfd: of QEMU
 * @thread: number of the thread that runs the vCPU
 * @why: (out): literal: why the vCPU cannot be opened; untouched on success
 *
 * The function holds the thread a few times to find the descriptor on which the thread calls
 * KVM_RUN. Then it copies that descriptor and maps its page. The name of a descriptor does not
 * identify the vCPU: the name contains the APIC id, and QEMU numbers its vCPUs differently.
 *
 * If the vCPU's thread does not stop in time, @vcpu's tracee is late. Only the end of the calling
 * thread detaches it then, so the calling thread must end soon.
 *
 * Returns: false if the vCPU cannot be opened now, or at all
 */
bool uprof_kvm_vcpu_open(UprofKvmVcpu *vcpu, UprofTracer *tracer, int pid, int pidfd, int thread,
                         const char **why);

/**
 * uprof_kvm_vcpu_stop: as uprof_tracee_stop(), but only for the thread of the vCPU
 *
 * ptrace(2) takes the number of a thread. If the vCPU's thread has just ended, another thread may
 * have its number by now. The function releases such a thread at once. Linux gives a number to
 * another thread only after it has given all other numbers, which takes longer than a millisecond.
 * So the function does not look for such a thread if the vCPU's thread existed less than a
 * millisecond before the hold.
 *
 * Returns: as uprof_tracee_stop(); %UPROF_TRACE_GONE also if another thread has the number
 */
UprofTraceAnswer uprof_kvm_vcpu_stop(UprofKvmVcpu *vcpu, UprofTracer *tracer, uint64_t limit_ns);

/** uprof_kvm_vcpu_close: restores kvm_valid_regs; does nothing if @vcpu is closed */
void uprof_kvm_vcpu_close(UprofKvmVcpu *vcpu);

/**
 * uprof_kvm_vcpu_check: before a hold; only reads /proc
 * @vcpu: open
 * @exact: hold a halted vCPU once more if it has run since its last sample
 *
 * Returns: %UPROF_OK to hold it; %UPROF_IDLE; %UPROF_SAME; or %UPROF_ABSENT if its thread
 *   has ended, and the vCPU is lost
 */
UprofAnswer uprof_kvm_vcpu_check(UprofKvmVcpu *vcpu, bool exact);

/**
 * uprof_kvm_vcpu_check_page: in a hold
 *
 * Returns: false if the page does not have the registers of this hold. The bits are set
 *   then, so that a later hold may succeed.
 */
bool uprof_kvm_vcpu_check_page(UprofKvmVcpu *vcpu);

/** uprof_kvm_vcpu_regs: in a hold, after uprof_kvm_vcpu_check_page() */
void uprof_kvm_vcpu_regs(const UprofKvmVcpu *vcpu, UprofRegs *regs);
