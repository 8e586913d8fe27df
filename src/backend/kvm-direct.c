/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access `direct`: local guests on KVM, one vCPU at a time. Its thread is stopped
 * by ptrace, attached for the length of the hold only; registers come from the
 * page that the kernel shares with QEMU, memory from QEMU's process. QEMU is
 * asked nothing while samples are taken, unless the machine changes its shape, and a profiler that dies leaves nothing
 * stopped: the kernel detaches.
 *
 * Three threads: main opens and closes; the sampler vets, holds and reads; the
 * keeper tends. A vCPU's place is the keeper's while it is empty or lost, and the
 * sampler's while it is ready; what else they share is atomic.
 *
 * Only whole guests need a guardian to let them go. This one has it for a
 * profiler that is itself stopped in a hold, by SIGSTOP: it is killed.
 */
#include "kvm-vcpu-priv.h"
#include "qemu-priv.h"

#include "uprof/backend.h"
#include "uprof/clock.h"
#include "uprof/histogram.h"
#include "uprof/qemu-regs.h"
#include "uprof/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STOP_LIMIT_MS = 50, /* for a vCPU to stop: it may have to wait for a CPU */
    CHECK_TRIES = 10,
    CHECK_STEP_US = 500,
    PRIME_TRIES = 200,
    PRIME_STEP_US = 1000,
    LATE_MS = 2000, /* so long is a vCPU waited for at the start that does not stop in time */
    LATE_STEP_US = 1000,
    ADOPTIONS_MAX = 5,
    PROBES = 16,
    PROBE_STEP_US = 300,
    CAP_PTRACE = 19, /* CAP_SYS_PTRACE, linux/capability.h */
    YAMA_NOBODY = 3, /* Documentation/admin-guide/LSM/Yama.rst */
};

typedef struct {
    UprofGuest base;
    UprofQemu *qemu;
    UprofTracer tracer; /* of the sampler's thread */
    UprofKvmVcpu *vcpus;
    uint64_t stop_limit_ns;
    bool idle_stacks;
    UprofQemuPaging paging;

    /* the keeper's */
    unsigned long memory_kib; /* by libvirt, when it was asked last */
    unsigned n_present;       /* vCPUs, likewise */
    unsigned n_adoptions;     /* tries to get at all of them */
    gint seen_resets;
} DirectGuest;

static DirectGuest *
as_direct(UprofGuest *guest)
{
    g_assert(!guest->ops || guest->ops == &uprof_direct_ops);
    return (DirectGuest *)guest;
}

/* A number from a small file of /proc. Returns: false if there is no such file or number */
static bool
read_number(const char *path, uint64_t *number)
{
    g_autofree char *text = NULL;
    gsize len = 0;

    return g_file_get_contents(path, &text, &len, NULL) &&
           uprof_slice_to_uint(uprof_slice_trim((UprofSlice){ text, len }), 10, 0, UINT64_MAX,
                               number);
}

/* proc(5), /proc/PID/status, CapEff: hexadecimal */
static bool
has_capability(unsigned capability)
{
    g_autofree char *text = NULL;
    gsize len = 0;
    UprofSlice line, word;
    uint64_t effective = 0;

    if (!g_file_get_contents("/proc/self/status", &text, &len, NULL))
        return false;
    UprofScan scan = { .name = "status", .rest = { text, len } };
    while (uprof_scan_line(&scan, &line))
        if (uprof_scan_word(&line, &word) && uprof_slice_is(word, "CapEff:") &&
            uprof_scan_word(&line, &word))
            uprof_slice_to_uint(word, 16, 0, UINT64_MAX, &effective);
    return effective >> capability & 1;
}

/* Returns: false only if the kernel says so; who may not open the device learns it by the self-check */
static bool
may_sync_regs(void)
{
    const int wanted = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
    const int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

    if (kvm < 0)
        return true;
    const int found = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_SYNC_REGS);
    close(kvm);
    return (found & wanted) == wanted;
}

const char *
uprof_direct_obstacle(UprofErrorCode *code)
{
    uint64_t yama = 0;

    *code = UPROF_ERROR_DENIED;
    if (!has_capability(CAP_PTRACE))
        return "it needs root, or CAP_SYS_PTRACE";
    if (read_number("/proc/sys/kernel/yama/ptrace_scope", &yama) && yama >= YAMA_NOBODY)
        return "kernel.yama.ptrace_scope is 3: nobody may trace anything until the next boot";
    *code = UPROF_ERROR_UNSUPPORTED;
    if ((syscall(SYS_pidfd_open, -1, 0) < 0 && errno == ENOSYS) ||
        (syscall(SYS_pidfd_getfd, -1, 0, 0) < 0 && errno == ENOSYS))
        return "this kernel has no pidfd_getfd: it needs Linux 5.6";
    return may_sync_regs() ? NULL
                           : "this kernel's KVM does not share registers (KVM_CAP_SYNC_REGS)";
}

static void
direct_close(UprofGuest *guest)
{
    DirectGuest *direct = as_direct(guest);

    for (unsigned i = 0; direct->vcpus && i < guest->n_vcpus; i++)
        uprof_kvm_vcpu_close(&direct->vcpus[i]);
    uprof_tracer_clear(&direct->tracer);
    uprof_qemu_close(direct->qemu);
    g_free(direct->vcpus);
    g_free(direct);
}

static bool
fail_direct(const DirectGuest *direct, const char *why, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "%s: no access 'direct': %s",
                direct->qemu->name, why);
    return false;
}

static bool
has_place(const DirectGuest *direct, const UprofQmpCpu *cpu)
{
    return cpu->index < direct->base.n_vcpus && cpu->thread > 0;
}

/* vCPUs that QEMU has and we have not yet. Returns: how many are ready, with the reason if not all */
static unsigned
adopt_vcpus(DirectGuest *direct, UprofTracer *tracer, const char **why)
{
    const UprofQemu *qemu = direct->qemu;
    bool is_late = false;
    unsigned n_ready = 0;

    for (unsigned i = 0; i < direct->base.n_vcpus; i++) {
        if (g_atomic_int_get(&direct->vcpus[i].state) == UPROF_KVM_VCPU_LOST)
            uprof_kvm_vcpu_close(&direct->vcpus[i]);
        g_atomic_int_set(&direct->vcpus[i].is_plugged, 0);
    }
    for (guint i = 0; i < qemu->cpus->len; i++) {
        const UprofQmpCpu *cpu = &g_array_index(qemu->cpus, UprofQmpCpu, i);
        if (has_place(direct, cpu))
            g_atomic_int_set(&direct->vcpus[cpu->index].is_plugged, 1);
    }
    for (guint i = 0; i < qemu->cpus->len && !is_late; i++) {
        const UprofQmpCpu *cpu = &g_array_index(qemu->cpus, UprofQmpCpu, i);
        if (!has_place(direct, cpu))
            continue;
        UprofKvmVcpu *vcpu = &direct->vcpus[cpu->index];
        if (g_atomic_int_get(&vcpu->state) == UPROF_KVM_VCPU_READY ||
            uprof_kvm_vcpu_open(vcpu, tracer, qemu->pid, qemu->pidfd, cpu->thread, why))
            n_ready++;
        else
            is_late = vcpu->tracee.state == UPROF_TRACEE_LATE; /* our end alone lets it go */
    }
    return n_ready;
}

/* Held in the calling thread. Returns: whether the registers could be read */
static bool
hold_once(const DirectGuest *direct, UprofKvmVcpu *vcpu, UprofTracer *tracer, UprofRegs *regs,
          uint64_t *hold_ns)
{
    UprofTracee *tracee = &vcpu->tracee;
    bool ok = false;

    *hold_ns = 0;
    if (uprof_tracee_stop(tracer, tracee, direct->stop_limit_ns) == UPROF_TRACE_STOPPED) {
        ok = uprof_kvm_vcpu_prime(vcpu);
        if (ok)
            uprof_kvm_vcpu_regs(vcpu, regs);
        uprof_tracee_release(tracee);
        *hold_ns = tracee->freed_ns - tracee->asked_ns;
    }
    uprof_tracer_disarm(tracer);
    return ok;
}

static bool
ask_regs(const DirectGuest *direct, unsigned index, UprofRegs *regs)
{
    g_autofree char *command = g_strdup_printf("info registers %u", index);
    char *answer = uprof_qemu_ask_human(direct->qemu, command, NULL);
    UprofSlice block;

    if (!answer)
        return false;
    const UprofSlice text = { answer, strlen(answer) };
    /* older versions print only the current CPU, whatever they are asked for */
    const bool ok = uprof_qemu_regs_find(text, index, &block) &&
                    uprof_qemu_regs_parse(block, direct->base.arch, regs, NULL);
    free(answer);
    return ok;
}

/* Returns: (nullable): the register that differs; literal */
static const char *
compare_regs(const UprofRegs *before, const UprofRegs *held, const UprofRegs *after)
{
    static const struct {
        unsigned place;
        uint64_t ignore;
        const char *name;
    } same[] = {
        { UPROF_X86_CR0, UPROF_X86_CR0_TS, "CR0" },
        { UPROF_X86_CR4, 0, "CR4" },
        { UPROF_X86_EFER, 0, "EFER" },
        { UPROF_X86_GDT, 0, "the GDT's base" },
        { UPROF_X86_IDT, 0, "the IDT's base" },
        { UPROF_X86_TR, 0, "TR's base" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(same); i++)
        if ((before->sys[same[i].place] | same[i].ignore) !=
            (held->sys[same[i].place] | same[i].ignore))
            return same[i].name;
    /* changes with each process; two answers that agree leave no room for that */
    if (before->sys[UPROF_X86_CR3] == after->sys[UPROF_X86_CR3] &&
        before->sys[UPROF_X86_CR3] != held->sys[UPROF_X86_CR3])
        return "CR3";
    return NULL;
}

/* Until it is found in the guest once; where a host is busy that may take a while. */
static bool
prime_vcpu(DirectGuest *direct, UprofKvmVcpu *vcpu, UprofTracer *tracer)
{
    UprofRegs regs;
    uint64_t hold_ns;

    for (unsigned i = 0; i < PRIME_TRIES; i++) {
        if (hold_once(direct, vcpu, tracer, &regs, &hold_ns))
            return true;
        g_usleep(PRIME_STEP_US);
    }
    return false;
}

/*
 * A vCPU that has not stopped in time does as soon as it can, and stands until it is let go
 * here. To ask the monitor for its registers meanwhile would be to wait for ourselves.
 * Returns: whether it is let go
 */
static bool
settle_soon(UprofKvmVcpu *vcpu)
{
    const uint64_t until_ns = uprof_clock_now_ns() + PRIME_TRIES * PRIME_STEP_US * UPROF_NS_PER_US;

    while (uprof_tracee_settle(&vcpu->tracee) == UPROF_TRACE_LATE) {
        if (uprof_clock_now_ns() >= until_ns)
            return false;
        g_usleep(LATE_STEP_US);
    }
    return true;
}

/* What the page says must be what the monitor says. Returns: (nullable): why it is not; literal */
static const char *
check_vcpu(DirectGuest *direct, unsigned index, UprofTracer *tracer)
{
    UprofRegs before, held, after;
    const char *differs = "its registers could not be read";
    uint64_t hold_ns;

    if (!prime_vcpu(direct, &direct->vcpus[index], tracer))
        return differs;
    for (unsigned i = 0; i < CHECK_TRIES && settle_soon(&direct->vcpus[index]); i++) {
        if (ask_regs(direct, index, &before) &&
            hold_once(direct, &direct->vcpus[index], tracer, &held, &hold_ns) &&
            ask_regs(direct, index, &after)) {
            differs = compare_regs(&before, &held, &after);
            if (!differs)
                break;
        }
        g_usleep(CHECK_STEP_US);
    }
    if (differs)
        return differs;
    /* memory is one for all vCPUs */
    if (index == 0 && (held.sys[UPROF_X86_CR0] & UPROF_X86_CR0_PG) &&
        !uprof_qemu_same_bytes(direct->qemu, held.sys[UPROF_X86_CR3] & ~UINT64_C(0xfff)))
        return "the page tables' memory";
    return NULL;
}

/* How long a hold takes here, for the budget. */
static void
measure_holds(DirectGuest *direct, UprofTracer *tracer)
{
    UprofHistogram holds = { 0 };
    UprofRegs regs;
    uint64_t hold_ns;

    for (unsigned i = 0; i < PROBES; i++) {
        UprofKvmVcpu *vcpu = &direct->vcpus[i % direct->base.n_vcpus];
        if (g_atomic_int_get(&vcpu->state) == UPROF_KVM_VCPU_READY &&
            hold_once(direct, vcpu, tracer, &regs, &hold_ns))
            uprof_histogram_add(&holds, hold_ns);
        g_usleep(PROBE_STEP_US);
    }
    /* what a hold takes when nothing disturbs it; the sampler sees what it really takes */
    direct->base.probe_ns = holds.count > 0 ? uprof_histogram_percentile(&holds, 25) : 0;
}

static bool
prove(DirectGuest *direct, UprofTracer *tracer, GError **error)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++) {
        if (g_atomic_int_get(&direct->vcpus[i].state) != UPROF_KVM_VCPU_READY)
            continue;
        const char *differs = check_vcpu(direct, i, tracer);
        if (!differs)
            continue;
        if (direct->vcpus[i].tracee.state == UPROF_TRACEE_LATE)
            return fail_direct(direct, UPROF_KVM_LATE, error);
        g_autofree char *why = g_strdup_printf("vCPU %u: what the kernel says does not agree with "
                                               "QEMU's monitor: %s",
                                               i, differs);
        return fail_direct(direct, why, error);
    }
    measure_holds(direct, tracer);
    return true;
}

static bool
adopt(DirectGuest *direct, UprofTracer *tracer, GError **error)
{
    const char *why = "no vCPU is there";

    return adopt_vcpus(direct, tracer, &why) == direct->n_present ||
           fail_direct(direct, why, error);
}

static bool
adopt_and_prove(DirectGuest *direct, UprofTracer *tracer, GError **error)
{
    return adopt(direct, tracer, error) && prove(direct, tracer, error);
}

/* Joined is not yet gone: what it was attached to is let go in between. */
static void
wait_until_gone(pid_t thread)
{
    const uint64_t until_ns = uprof_clock_now_ns() + LATE_MS * UPROF_NS_PER_MS;

    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0 && uprof_clock_now_ns() < until_ns)
        g_usleep(LATE_STEP_US);
}

typedef struct {
    DirectGuest *direct;
    bool (*work)(DirectGuest *direct, UprofTracer *tracer, GError **error);
    GError **error;
    pid_t thread;
    bool ok;
} Tracing;

static gpointer
run_tracing(gpointer data)
{
    Tracing *tracing = data;
    UprofTracer tracer;

    tracing->thread = gettid();
    uprof_tracer_init(&tracer);
    tracing->ok = tracing->work(tracing->direct, &tracer, tracing->error);
    uprof_tracer_clear(&tracer);
    return NULL;
}

/*
 * Holds of vCPUs that are no samples: in a thread of their own, whose end lets go
 * whatever did not stop in time, and with all signals blocked, so that none stops
 * this process in a hold.
 * @is_late: (out): something did not
 */
static bool
trace_apart(DirectGuest *direct,
            bool (*work)(DirectGuest *direct, UprofTracer *tracer, GError **error), bool *is_late,
            GError **error)
{
    Tracing tracing = { .direct = direct, .work = work, .error = error };
    sigset_t all, before;

    *is_late = false;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    g_thread_join(g_thread_new("tracer", run_tracing, &tracing));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (unsigned i = 0; i < direct->base.n_vcpus; i++) {
        UprofKvmVcpu *vcpu = &direct->vcpus[i];
        if (vcpu->tracee.state == UPROF_TRACEE_LATE && vcpu->tracee.owner == tracing.thread) {
            vcpu->tracee = (UprofTracee){ .thread = vcpu->tracee.thread };
            *is_late = true;
        }
    }
    if (*is_late)
        wait_until_gone(tracing.thread);
    return tracing.ok;
}

/* A thread that gets no CPU to stop on may have one a moment later. */
static bool
trace_patiently(DirectGuest *direct, GError **error)
{
    const uint64_t until_ns = uprof_clock_now_ns() + LATE_MS * UPROF_NS_PER_MS;
    bool is_late, ok;

    do {
        g_clear_error(error);
        ok = trace_apart(direct, adopt_and_prove, &is_late, error);
    } while (!ok && is_late && uprof_clock_now_ns() < until_ns);
    return ok;
}

static bool
attach(DirectGuest *direct, const UprofTarget *target, GError **error)
{
    UprofQemu *qemu = direct->qemu;
    unsigned n_vcpus;
    bool paused;

    if (!uprof_qemu_check_running(qemu, target, &paused, error))
        return false;
    if (paused)
        return fail_direct(direct, "it is paused", error);
    if (!uprof_qemu_attach(qemu, &n_vcpus, error))
        return false;
    if (!qemu->by_process)
        return fail_direct(direct, qemu->why_slow, error);
    if (qemu->pidfd < 0)
        return fail_direct(direct, "QEMU's process cannot be watched (pidfd_open)", error);
    direct->base.arch = target->arch;
    direct->base.grain = UPROF_GRAIN_VCPU;
    direct->base.n_vcpus = MIN(MAX(n_vcpus, target->n_vcpus), (unsigned)UPROF_VCPUS_MAX);
    direct->vcpus = g_new0(UprofKvmVcpu, direct->base.n_vcpus);
    direct->n_present = qemu->cpus->len;
    direct->n_adoptions = ADOPTIONS_MAX;
    return trace_patiently(direct, error);
}

static UprofGuest *
direct_open(const UprofTarget *target, GError **error)
{
    DirectGuest *direct = g_new0(DirectGuest, 1);

    uprof_tracer_init(&direct->tracer);
    if (target->rescue_only)
        return &direct->base; /* the kernel has let go what a dead profiler held */
    direct->idle_stacks = target->idle_stacks;
    direct->stop_limit_ns =
        target->max_pause_ns > 0 ? target->max_pause_ns : STOP_LIMIT_MS * UPROF_NS_PER_MS;
    direct->qemu = uprof_qemu_open(target, error);
    if (!direct->qemu || !attach(direct, target, error)) {
        direct_close(&direct->base);
        return NULL;
    }
    return &direct->base;
}

/* A mapping keeps the dead guest's memory alive: away with it at once. */
static UprofAnswer
end_guest(DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++)
        if (g_atomic_int_get(&direct->vcpus[i].state) == UPROF_KVM_VCPU_READY)
            uprof_kvm_vcpu_close(&direct->vcpus[i]);
    return UPROF_GONE;
}

static void
hinder(DirectGuest *direct, UprofHindrance hindrance)
{
    g_atomic_int_set(&direct->base.hindrance, (gint)hindrance);
}

static UprofAnswer
direct_vet(UprofGuest *guest, unsigned index, GError **error)
{
    DirectGuest *direct = as_direct(guest);
    UprofKvmVcpu *vcpu = &direct->vcpus[index];
    UprofAnswer answer;

    /* one that is there but not ours has ticks that are missed; one that is not has none */
    if (g_atomic_int_get(&vcpu->state) == UPROF_KVM_VCPU_EMPTY &&
        g_atomic_int_get(&vcpu->is_plugged))
        answer = UPROF_BUSY;
    else if (g_atomic_int_get(&vcpu->state) != UPROF_KVM_VCPU_READY)
        answer = UPROF_ABSENT;
    else if (g_atomic_int_get(&guest->hindrance) != UPROF_HINDRANCE_NONE)
        answer = UPROF_BUSY;
    else if (vcpu->tracee.state == UPROF_TRACEE_LATE)
        answer = UPROF_STUCK;
    else
        answer = uprof_kvm_vcpu_look(vcpu, direct->idle_stacks);
    if (answer == UPROF_OK || answer == UPROF_IDLE || answer == UPROF_SAME)
        return answer;
    return uprof_qemu_is_gone(direct->qemu) ? end_guest(direct) : answer;
}

/* Returns: whether it is let go */
static bool
settle_vcpu(UprofKvmVcpu *vcpu)
{
    UprofTracee *tracee = &vcpu->tracee;

    /* the thread that tried to stop it has ended, and so let it go */
    if (tracee->owner != gettid())
        *tracee = (UprofTracee){
            .thread = tracee->thread,
            .lost_ns = tracee->lost_ns + uprof_clock_now_ns() - tracee->looked_ns,
        };
    return uprof_tracee_settle(tracee) != UPROF_TRACE_LATE;
}

static void
direct_settle(UprofGuest *guest)
{
    DirectGuest *direct = as_direct(guest);
    bool any = false;

    for (unsigned i = 0; i < guest->n_vcpus; i++) {
        UprofKvmVcpu *vcpu = &direct->vcpus[i];
        if (g_atomic_int_get(&vcpu->state) == UPROF_KVM_VCPU_READY &&
            vcpu->tracee.state == UPROF_TRACEE_LATE && !settle_vcpu(vcpu))
            any = true;
    }
    g_atomic_int_set(&guest->unsettled, any);
}

static UprofAnswer
note_refusal(DirectGuest *direct, UprofKvmVcpu *vcpu, UprofTraceAnswer answer, GError **error)
{
    switch (answer) {
    case UPROF_TRACE_LATE:
        g_atomic_int_set(&direct->base.unsettled, 1);
        return UPROF_STUCK;
    case UPROF_TRACE_GROUP_STOP:
        hinder(direct, UPROF_HINDRANCE_STOPPED);
        return UPROF_BUSY;
    case UPROF_TRACE_TAKEN:
        g_atomic_int_set(&direct->base.tracer, vcpu->tracee.taken_by);
        hinder(direct, UPROF_HINDRANCE_TRACED);
        return UPROF_BUSY;
    case UPROF_TRACE_GONE:
        if (uprof_qemu_is_gone(direct->qemu))
            return end_guest(direct);
        g_atomic_int_set(&vcpu->state, UPROF_KVM_VCPU_LOST);
        return UPROF_ABSENT;
    default:
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_DENIED,
                    "%s: tracing its QEMU is not permitted any more", direct->qemu->name);
        return UPROF_FAILED;
    }
}

static UprofAnswer
direct_release(UprofGuest *guest, unsigned index, GError **error)
{
    DirectGuest *direct = as_direct(guest);

    UprofTracee *tracee = &direct->vcpus[index].tracee;
    const UprofTraceAnswer answer = uprof_tracee_release(tracee);

    guest->freed_ns = tracee->freed_ns;
    uprof_tracer_disarm(&direct->tracer);
    /* killed in the hold: it must be reaped, or QEMU cannot end */
    if (answer == UPROF_TRACE_LATE)
        g_atomic_int_set(&guest->unsettled, 1);
    if (answer == UPROF_TRACE_GONE && uprof_qemu_is_gone(direct->qemu))
        return end_guest(direct);
    return UPROF_OK;
}

static UprofAnswer
direct_hold(UprofGuest *guest, unsigned index, GError **error)
{
    DirectGuest *direct = as_direct(guest);
    UprofKvmVcpu *vcpu = &direct->vcpus[index];
    const UprofTraceAnswer answer =
        uprof_tracee_stop(&direct->tracer, &vcpu->tracee, direct->stop_limit_ns);

    guest->asked_ns = vcpu->tracee.asked_ns;
    if (answer == UPROF_TRACE_STOPPED && uprof_kvm_vcpu_prime(vcpu))
        return UPROF_OK;
    if (answer != UPROF_TRACE_STOPPED) {
        uprof_tracer_disarm(&direct->tracer);
        return note_refusal(direct, vcpu, answer, error);
    }
    /* it has not been in the guest since the page was mapped */
    const UprofAnswer released = direct_release(guest, index, error);
    if (released != UPROF_OK)
        return released;
    vcpu->tracee.lost_ns += vcpu->tracee.freed_ns - vcpu->tracee.asked_ns;
    return UPROF_BUSY;
}

static uint64_t
direct_take_lost(UprofGuest *guest, unsigned index)
{
    UprofKvmVcpu *vcpu = &as_direct(guest)->vcpus[index];

    if (g_atomic_int_get(&vcpu->state) != UPROF_KVM_VCPU_READY)
        return 0; /* nobody's, or somebody else's */
    const uint64_t lost_ns = vcpu->tracee.lost_ns;
    vcpu->tracee.lost_ns = 0;
    return lost_ns;
}

static UprofAnswer
direct_read_regs(UprofGuest *guest, unsigned index, UprofRegs *regs, GError **error)
{
    DirectGuest *direct = as_direct(guest);

    uprof_kvm_vcpu_regs(&direct->vcpus[index], regs);
    uprof_qemu_note_paging(guest, &direct->paging, index, regs);
    return UPROF_OK;
}

static void
direct_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    UprofQemu *qemu = as_direct(guest)->qemu;

    /* a process of which we hold a thread cannot end unseen */
    if (lane == UPROF_LANE_SAMPLER)
        uprof_qemu_read_held(qemu, spans, n);
    else
        uprof_qemu_read(qemu, lane, spans, n);
}

/* Whether a thread is one of ours: a tracer is a thread, and the sampler may be at it. */
static bool
is_ours(pid_t thread)
{
    UprofThreadStatus status;

    return uprof_thread_status(thread, &status) && status.process == getpid();
}

/* Who else traces or has stopped the threads that run vCPUs. */
static UprofHindrance
look_at_threads(DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++) {
        const UprofKvmVcpu *vcpu = &direct->vcpus[i];
        UprofThreadStatus status;
        if (g_atomic_int_get(&vcpu->state) != UPROF_KVM_VCPU_READY ||
            !uprof_thread_status(vcpu->tracee.thread, &status))
            continue;
        if (status.tracer > 0 && !is_ours(status.tracer)) {
            g_atomic_int_set(&direct->base.tracer, status.tracer);
            return UPROF_HINDRANCE_TRACED;
        }
        if (status.is_stopped)
            return UPROF_HINDRANCE_STOPPED;
    }
    return UPROF_HINDRANCE_NONE;
}

static UprofHindrance
find_hindrance(DirectGuest *direct, const virDomainInfo *info)
{
    if (info->state == VIR_DOMAIN_PAUSED || info->state == VIR_DOMAIN_PMSUSPENDED)
        return UPROF_HINDRANCE_PAUSED;
    if (uprof_qemu_has_job(direct->qemu))
        return UPROF_HINDRANCE_JOB;
    return look_at_threads(direct);
}

static bool
has_lost_vcpu(const DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++)
        if (g_atomic_int_get(&direct->vcpus[i].state) == UPROF_KVM_VCPU_LOST)
            return true;
    return false;
}

/* Takes over vCPUs that were plugged; those that cannot be had are not tried for ever. */
static void
look_for_vcpus(DirectGuest *direct, unsigned n_present)
{
    bool is_late;

    if (n_present != direct->n_present || has_lost_vcpu(direct))
        direct->n_adoptions = 0;
    direct->n_present = n_present;
    if (direct->n_adoptions >= ADOPTIONS_MAX || !uprof_qemu_ask_cpus(direct->qemu, NULL))
        return;
    direct->n_adoptions++;
    if (trace_apart(direct, adopt, &is_late, NULL))
        direct->n_adoptions = ADOPTIONS_MAX;
}

/* The machine may have another shape: asks for it anew. */
static void
look_again(DirectGuest *direct, const virDomainInfo *info)
{
    const gint resets = g_atomic_int_get(&direct->base.resets);

    if (info->maxMem != direct->memory_kib || resets != direct->seen_resets)
        uprof_qemu_refresh(direct->qemu);
    direct->memory_kib = info->maxMem;
    direct->seen_resets = resets;
    look_for_vcpus(direct, info->nrVirtCpu);
}

static void
direct_tend(UprofGuest *guest)
{
    DirectGuest *direct = as_direct(guest);
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(direct->qemu);
    virDomainInfo info;

    if (uprof_qemu_is_gone(direct->qemu))
        return;
    if (!vir || virDomainGetInfo(vir, &info) < 0) {
        /* the daemon is away: what can be seen without it is seen */
        hinder(direct, look_at_threads(direct));
        uprof_qemu_reconnect(direct->qemu);
        return;
    }
    if (direct->memory_kib == 0)
        direct->memory_kib = info.maxMem;
    const UprofHindrance hindrance = find_hindrance(direct, &info);
    hinder(direct, hindrance);
    if (hindrance == UPROF_HINDRANCE_NONE)
        look_again(direct, &info);
}

static void
direct_facts(UprofGuest *guest, UprofGuestFacts *facts)
{
    uprof_qemu_facts(as_direct(guest)->qemu, facts);
}

static bool
direct_rescue(UprofGuest *guest, bool asked, GError **error)
{
    return true;
}

const UprofGuestOps uprof_direct_ops = {
    .name = "direct",
    .open = direct_open,
    .close = direct_close,
    .vet = direct_vet,
    .hold = direct_hold,
    .release = direct_release,
    .read_regs = direct_read_regs,
    .read = direct_read,
    .tend = direct_tend,
    .settle = direct_settle,
    .take_lost = direct_take_lost,
    .facts = direct_facts,
    .rescue = direct_rescue,
};
