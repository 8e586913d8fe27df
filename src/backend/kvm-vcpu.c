/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "kvm-vcpu-priv.h"

#include "uprof/clock.h"

#include <linux/kvm.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096, /* struct kvm_run; the pages that the kernel maps behind it are not needed */
    FIND_TRIES = 200,  /* on a busy host a vCPU may take a while to enter the guest */
    FIND_STEP_US = 1000,
    FIND_LIMIT_MS = 200,
    /* limits of what a hold itself adds to the run time of a halted vCPU's thread */
    HOLD_SLICES = 3,
    HOLD_RUN_NS = 100 * 1000,
    SEEN_NS = 1000 * 1000, /* in which no other thread can have got the number of the thread */
};

/* The bits that virt-uprof sets in kvm_valid_regs. */
#define OUR_REGS ((uint64_t)(KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS))

/* Newer kernels flag registers of a nested guest (linux/kvm.h). */
#ifndef KVM_RUN_X86_GUEST_MODE
#define KVM_RUN_X86_GUEST_MODE (1 << 2)
#endif

_Static_assert(sizeof(struct kvm_run) <= PAGE_BYTES, "struct kvm_run fits a page");

UprofKvmVcpuStatus
uprof_kvm_vcpu_status(const UprofKvmVcpu *vcpu)
{
    switch (g_atomic_int_get(&vcpu->owner)) {
    case UPROF_KVM_VCPU_CLOSED:
        return g_atomic_int_get(&vcpu->is_plugged) ? UPROF_KVM_VCPU_UNOPENED
                                                   : UPROF_KVM_VCPU_UNPLUGGED;
    case UPROF_KVM_VCPU_RETURNED:
        return UPROF_KVM_VCPU_LOST;
    default:
        break;
    }
    switch (vcpu->tracee.state) {
    case UPROF_TRACEE_STOPPED:
        return UPROF_KVM_VCPU_HELD;
    case UPROF_TRACEE_LATE:
        return UPROF_KVM_VCPU_LATE;
    default:
        return UPROF_KVM_VCPU_OPEN;
    }
}

void
uprof_kvm_vcpu_lose(UprofKvmVcpu *vcpu)
{
    g_atomic_int_set(&vcpu->owner, UPROF_KVM_VCPU_RETURNED);
}

static bool
is_kvm_run(const UprofThreadCall *call)
{
    return call->number == SYS_ioctl && call->args[1] == KVM_RUN;
}

/* Returns: the descriptor of the thread's call of KVM_RUN; -1: the thread is not in KVM_RUN */
static int
find_run_fd(const UprofTracee *tracee)
{
    UprofThreadCall call;
    int64_t result;

    return uprof_tracee_call(tracee, &call, &result) && is_kvm_run(&call) ? (int)call.args[0] : -1;
}

static const char *
describe_answer(UprofTraceAnswer answer)
{
    switch (answer) {
    case UPROF_TRACE_LATE:
        return UPROF_KVM_LATE;
    case UPROF_TRACE_GROUP_STOP:
        return "a signal has stopped QEMU";
    case UPROF_TRACE_OTHER_TRACER:
        return "another process, such as a debugger, traces QEMU";
    case UPROF_TRACE_GONE:
        return "a vCPU thread has just ended";
    default:
        return "tracing QEMU is not permitted (CAP_SYS_PTRACE, yama, AppArmor or SELinux)";
    }
}

UprofTraceAnswer
uprof_kvm_vcpu_stop(UprofKvmVcpu *vcpu, UprofTracer *tracer, uint64_t limit_ns)
{
    const UprofTraceAnswer answer = uprof_tracee_stop(tracer, &vcpu->tracee, limit_ns);

    if (answer != UPROF_TRACE_STOPPED || vcpu->tracee.asked_ns - vcpu->seen_ns < SEEN_NS ||
        uprof_thread_exists(vcpu->thread))
        return answer;
    uprof_tracee_release(&vcpu->tracee);
    return UPROF_TRACE_GONE;
}

static bool
hold_until_in_run(UprofKvmVcpu *vcpu, UprofTracer *tracer, const char **why)
{
    vcpu->fd = -1;
    *why = "a vCPU did not run guest code in time: is it paused?";
    for (unsigned i = 0; i < FIND_TRIES && vcpu->fd < 0; i++) {
        if (i > 0)
            g_usleep(FIND_STEP_US);
        const UprofTraceAnswer answer =
            uprof_kvm_vcpu_stop(vcpu, tracer, FIND_LIMIT_MS * UPROF_NS_PER_MS);
        if (answer == UPROF_TRACE_STOPPED) {
            vcpu->fd = find_run_fd(&vcpu->tracee);
            uprof_tracee_release(&vcpu->tracee);
        }
        uprof_tracer_disarm(tracer);
        if (answer != UPROF_TRACE_STOPPED) {
            *why = describe_answer(answer);
            return false;
        }
    }
    return vcpu->fd >= 0;
}

/* QEMU may have closed the descriptor and used its number for another file. */
static bool
is_vcpu_fd(int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autofree char *target = g_file_read_link(path, NULL);

    return target && g_str_has_prefix(target, "anon_inode:kvm-vcpu:");
}

static bool
map_page(UprofKvmVcpu *vcpu, int pidfd, const char **why)
{
    const int fd = (int)syscall(SYS_pidfd_getfd, pidfd, vcpu->fd, 0);

    *why = "QEMU's vCPU descriptors cannot be copied (pidfd_getfd)";
    if (fd < 0)
        return false;
    void *page = MAP_FAILED;
    if (is_vcpu_fd(fd))
        page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    *why = "the shared page of a vCPU cannot be mapped";
    if (page == MAP_FAILED)
        return false;
    vcpu->run = page;
    return true;
}

/* One atomic store, because the kernel reads the word when the vCPU enters and leaves the guest. */
static void
set_valid_regs(const UprofKvmVcpu *vcpu, uint64_t bits)
{
    __atomic_store_n(&vcpu->run->kvm_valid_regs, bits, __ATOMIC_SEQ_CST);
}

bool
uprof_kvm_vcpu_open(UprofKvmVcpu *vcpu, UprofTracer *tracer, int pid, int pidfd, int thread,
                    const char **why)
{
    *why = "a vCPU thread has just ended";
    vcpu->thread = uprof_thread_open(pid, thread, NULL);
    if (!vcpu->thread)
        return false;
    vcpu->tracee = (UprofTracee){ .thread = thread };
    vcpu->seen_ns = 0;
    if (!hold_until_in_run(vcpu, tracer, why) || !map_page(vcpu, pidfd, why)) {
        g_clear_pointer(&vcpu->thread, uprof_thread_close);
        return false;
    }
    vcpu->found_valid = vcpu->run->kvm_valid_regs;
    /* this run has the domain's lock, so a run that was killed has left these bits */
    if (vcpu->found_valid == OUR_REGS)
        vcpu->found_valid = 0;
    set_valid_regs(vcpu, vcpu->found_valid | OUR_REGS);
    vcpu->is_page_valid = vcpu->is_asleep = vcpu->has_sample = vcpu->was_just_held = false;
    vcpu->is_waking = true;
    g_atomic_int_set(&vcpu->owner, UPROF_KVM_VCPU_SAMPLED);
    return true;
}

void
uprof_kvm_vcpu_close(UprofKvmVcpu *vcpu)
{
    if (g_atomic_int_get(&vcpu->owner) == UPROF_KVM_VCPU_CLOSED)
        return;
    if ((vcpu->run->kvm_valid_regs & OUR_REGS) == OUR_REGS)
        set_valid_regs(vcpu, vcpu->found_valid);
    munmap((void *)vcpu->run, PAGE_BYTES);
    vcpu->run = NULL;
    g_clear_pointer(&vcpu->thread, uprof_thread_close);
    g_atomic_int_set(&vcpu->owner, UPROF_KVM_VCPU_CLOSED);
}

/*
 * Has the sleeping thread of a vCPU not run since the last check or hold? A hold itself makes the
 * thread run for a short time, which does not count.
 */
static bool
has_not_run(UprofKvmVcpu *vcpu)
{
    const UprofThreadTimes before = vcpu->times;
    UprofThreadTimes now;

    if (!vcpu->has_sample || !uprof_thread_times(vcpu->thread, &now) || !now.is_known)
        return false;
    const uint64_t slices = now.slices - before.slices, run_ns = now.run_ns - before.run_ns;
    const bool was_just_held = vcpu->was_just_held;
    vcpu->was_just_held = false;
    vcpu->times = now;
    return was_just_held ? slices <= HOLD_SLICES && run_ns <= HOLD_RUN_NS
                         : slices == 0 && run_ns == 0;
}

static void
store_times(UprofKvmVcpu *vcpu)
{
    if (!uprof_thread_times(vcpu->thread, &vcpu->times))
        vcpu->times = (UprofThreadTimes){ 0 };
}

/*
 * After a release the thread seems to sleep in KVM_RUN until it gets a CPU again. On a busy
 * host this may last until the next tick. Such a vCPU must not be reported as halted.
 */
static UprofThreadWhere
find_thread(UprofKvmVcpu *vcpu, UprofThreadCall *call)
{
    const UprofThreadWhere where = uprof_thread_where(vcpu->thread, call);

    if (where == UPROF_THREAD_IN_CALL && is_kvm_run(call) && vcpu->is_waking) {
        if (!uprof_thread_is_asleep(vcpu->thread))
            return UPROF_THREAD_RUNNING;
        vcpu->is_waking = false;
    }
    return where;
}

/* Without root the kernel does not show where a thread sleeps, so the thread's times decide. */
static UprofAnswer
check_times(UprofKvmVcpu *vcpu)
{
    UprofThreadTimes times;

    if (!uprof_thread_times(vcpu->thread, &times)) {
        uprof_kvm_vcpu_lose(vcpu);
        return UPROF_ABSENT;
    }
    if (!uprof_thread_is_asleep(vcpu->thread))
        return UPROF_OK;
    if (has_not_run(vcpu))
        return UPROF_SAME;
    store_times(vcpu);
    return UPROF_OK;
}

UprofAnswer
uprof_kvm_vcpu_check(UprofKvmVcpu *vcpu, bool exact)
{
    UprofThreadCall call;

    vcpu->is_asleep = false;
    vcpu->seen_ns = uprof_clock_now_ns();
    switch (find_thread(vcpu, &call)) {
    case UPROF_THREAD_GONE:
        uprof_kvm_vcpu_lose(vcpu);
        return UPROF_ABSENT;
    case UPROF_THREAD_IN_CALL:
        if (is_kvm_run(&call)) {
            vcpu->is_asleep = true;
            if (vcpu->has_sample && (!exact || has_not_run(vcpu)))
                return UPROF_IDLE;
        } else if (has_not_run(vcpu)) {
            return UPROF_SAME;
        }
        store_times(vcpu);
        return UPROF_OK;
    case UPROF_THREAD_BLOCKED:
        if (has_not_run(vcpu))
            return UPROF_SAME;
        store_times(vcpu);
        return UPROF_OK;
    case UPROF_THREAD_UNKNOWN:
        return check_times(vcpu);
    default:
        return UPROF_OK; /* the thread runs, so its times have changed */
    }
}

bool
uprof_kvm_vcpu_check_page(UprofKvmVcpu *vcpu)
{
    vcpu->is_waking = true;
    if ((vcpu->run->kvm_valid_regs & OUR_REGS) != OUR_REGS) {
        set_valid_regs(vcpu, vcpu->found_valid | OUR_REGS);
        vcpu->is_page_valid = false;
        return false;
    }
    if (!vcpu->is_page_valid)
        vcpu->is_page_valid = find_run_fd(&vcpu->tracee) == vcpu->fd;
    if (!vcpu->is_page_valid)
        return false;
    vcpu->has_sample = vcpu->was_just_held = true;
    return true;
}

void
uprof_kvm_vcpu_regs(const UprofKvmVcpu *vcpu, UprofRegs *regs)
{
    const struct kvm_run *run = (const struct kvm_run *)vcpu->run;
    const struct kvm_regs *r = &run->s.regs.regs;
    const struct kvm_sregs *s = &run->s.regs.sregs;
    const UprofX86Segments segments = {
        .cs_base = s->cs.base,
        .ss_base = s->ss.base,
        .cs_long = s->cs.l,
        .cs_big = s->cs.db,
        .ss_big = s->ss.db,
    };

    *regs = (UprofRegs){
        .reg = { [UPROF_X86_RAX] = r->rax,
                 [UPROF_X86_RDX] = r->rdx,
                 [UPROF_X86_RCX] = r->rcx,
                 [UPROF_X86_RBX] = r->rbx,
                 [UPROF_X86_RSI] = r->rsi,
                 [UPROF_X86_RDI] = r->rdi,
                 [UPROF_X86_RBP] = r->rbp,
                 [UPROF_X86_RSP] = r->rsp,
                 [UPROF_X86_R8] = r->r8,
                 [UPROF_X86_R8 + 1] = r->r9,
                 [UPROF_X86_R8 + 2] = r->r10,
                 [UPROF_X86_R8 + 3] = r->r11,
                 [UPROF_X86_R8 + 4] = r->r12,
                 [UPROF_X86_R8 + 5] = r->r13,
                 [UPROF_X86_R8 + 6] = r->r14,
                 [UPROF_X86_R15] = r->r15,
                 [UPROF_X86_RIP] = r->rip },
        .flags = r->rflags,
        .sys = { [UPROF_X86_CR0] = s->cr0,
                 [UPROF_X86_CR3] = s->cr3,
                 [UPROF_X86_CR4] = s->cr4,
                 [UPROF_X86_EFER] = s->efer,
                 [UPROF_X86_IDT] = s->idt.base,
                 [UPROF_X86_GDT] = s->gdt.base,
                 [UPROF_X86_TR] = s->tr.base },
        /* the CPL is the DPL of SS: Intel SDM, volume 3, 5.5 and 25.4.1 */
        .privilege = s->ss.dpl & 3,
        .halted = vcpu->is_asleep,
        /* as in SMM, the page tables of a nested guest do not lead through the RAM map */
        .smm = run->flags & (KVM_RUN_X86_SMM | KVM_RUN_X86_GUEST_MODE),
    };
    uprof_x86_finish_regs(regs, &segments);
}
