/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kvm-vcpu-priv.h - one vCPU of a local KVM guest on x86: its thread, and the
 * page in which the kernel leaves its registers
 *
 * `struct kvm_run` (linux/kvm.h, Documentation/virt/kvm/api.rst, "KVM_RUN" and
 * "KVM_CAP_SYNC_REGS") is a page that the kernel shares with QEMU for each vCPU.
 * With bits set in its kvm_valid_regs the kernel stores the registers there at
 * every exit to QEMU; a thread that is stopped by ptrace has just made one. That
 * one word is all that is ever written outside of this process, and it is put
 * back at the end. Never its neighbour kvm_dirty_regs: with that the kernel
 * would load what stands in the page into the guest.
 */
#pragma once

#include "thread-priv.h"
#include "tracer-priv.h"

#include "uprof/guest.h"

/* Why there is no access, in words. */
#define UPROF_KVM_LATE "a vCPU thread did not stop in time"

struct kvm_run;

/**
 * UprofKvmVcpuState: whose it is
 *
 * The keeper fills an empty place, the sampler uses a ready one, and gives it
 * back when its thread is gone.
 */
typedef enum {
    UPROF_KVM_VCPU_EMPTY,
    UPROF_KVM_VCPU_READY,
    UPROF_KVM_VCPU_LOST,
} UprofKvmVcpuState;

/**
 * UprofKvmVcpu:
 * @state: UprofKvmVcpuState, atomic
 * @run: mapped, shared with QEMU and the kernel
 * @found_valid: what kvm_valid_regs was before
 * @fd: of KVM_RUN, as QEMU's process has it
 * @is_primed: it was found in KVM_RUN since the bits were set: what the page says
 *   is true from then on
 * @is_asleep: when looked at last it slept in KVM_RUN: halted, or never started
 * @is_plugged: QEMU has it, by its own word; atomic
 * @has_sample: it was held; @times: of its thread before that, or since;
 *   @was_just_held: the hold itself may be all that has changed them
 * @is_waking: it was held, and not seen asleep since: it may wait for a CPU
 */
typedef struct {
    gint state;
    gint is_plugged;
    UprofTracee tracee;
    UprofThread *thread;
    volatile struct kvm_run *run;
    uint64_t found_valid;
    int fd;
    bool is_primed;
    bool is_asleep;
    bool has_sample;
    bool was_just_held;
    bool is_waking;
    UprofThreadTimes times;
} UprofKvmVcpu;

/**
 * uprof_kvm_vcpu_open:
 * @pidfd: of the process; @thread: one of its threads, that runs a vCPU
 * @tracer: of the calling thread
 * @why: (out): literal: why not
 *
 * In a thread that ends soon afterwards: what did not stop in time is let go for
 * good by that. Holds the vCPU's thread a few times to see by which descriptor it calls KVM_RUN (the
 * name of a descriptor has the APIC id, not QEMU's number of the vCPU), copies
 * that descriptor and maps its page. Leaves the vCPU ready.
 *
 * Returns: false if that cannot be had, or cannot be had now
 */
bool uprof_kvm_vcpu_open(UprofKvmVcpu *vcpu, UprofTracer *tracer, int pid, int pidfd, int thread,
                         const char **why);

/** uprof_kvm_vcpu_close: puts back what was found, unmaps; empty afterwards */
void uprof_kvm_vcpu_close(UprofKvmVcpu *vcpu);

/**
 * uprof_kvm_vcpu_look: without touching it
 * @exact: whether a halted vCPU that may have run since its last sample counts
 *   as one to hold
 *
 * Returns: %UPROF_OK to hold it, %UPROF_IDLE, %UPROF_SAME, or %UPROF_ABSENT if
 *   its thread has ended
 */
UprofAnswer uprof_kvm_vcpu_look(UprofKvmVcpu *vcpu, bool exact);

/**
 * uprof_kvm_vcpu_prime: stopped
 *
 * Returns: whether its page can be believed in this hold
 */
bool uprof_kvm_vcpu_prime(UprofKvmVcpu *vcpu);

/** uprof_kvm_vcpu_regs: stopped and primed; what the page says */
void uprof_kvm_vcpu_regs(const UprofKvmVcpu *vcpu, UprofRegs *regs);
