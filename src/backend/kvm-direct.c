/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access `direct`: local guests on KVM, one vCPU at a time. ptrace stops the thread of the
 * vCPU and is attached for the length of the hold only. Registers come from the page that
 * the kernel shares with QEMU, memory from QEMU's process. During sampling virt-uprof asks QEMU
 * nothing, unless memory or vCPUs are plugged. A profiler that dies leaves nothing stopped,
 * because the kernel detaches its tracees.
 *
 * Three threads use a guest: main opens and closes; the sampler vets, holds and reads; the
 * poller polls. kvm-vcpu-priv.h says who owns a vCPU in which state. Everything else that
 * threads share is atomic.
 *
 * The guardian has nothing to release here. The guardian only kills a profiler that SIGSTOP has
 * stopped in a hold.
 */
#include "kvm-vcpu-priv.h"
#include "qemu-priv.h"

#include "uprof/backend.h"
#include "uprof/clock.h"
#include "uprof/histogram.h"
#include "uprof/qemu-regs.h"
#include "uprof/scan.h"
#include "uprof/signal-mask.h"
#include "uprof/thread-number.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STOP_LIMIT_MS = 50, /* default; a vCPU may have to wait for a CPU before it stops */
    CHECK_TRIES = 10,
    CHECK_STEP_US = 500,
    VALID_TRIES = 200,
    VALID_STEP_US = 1000,
    LATE_MS = 2000, /* open retries this long if a vCPU does not stop in time */
    LATE_STEP_US = 1000,
    OPEN_TRIES_MAX = 5, /* to open vCPUs that were plugged in */
    MEASURED_HOLDS = 16,
    MEASURED_STEP_US = 300,
    CAP_PTRACE = 19, /* CAP_SYS_PTRACE, linux/capability.h */
    YAMA_NOBODY = 3, /* Documentation/admin-guide/LSM/Yama.rst */
};

typedef struct {
    UprofGuest base;
    UprofQemu *qemu;        /* owned */
    UprofTracer tracer;     /* of the sampler's thread */
    UprofKvmVcpu *vcpus;    /* owned: base.n_vcpus of them */
    uint64_t stop_limit_ns; /* how long a hold waits for a vCPU to stop */
    bool idle_stacks;       /* see UprofTarget */
    UprofQemuPaging paging; /* the sampler's */

    /* the poller's */
    unsigned long memory_kib; /* by libvirt's last answer */
    unsigned n_present;       /* vCPUs, by libvirt's last answer */
    unsigned n_open_tries;    /* since n_present changed */
    gint seen_resets;         /* base.resets at the last poll */
} DirectGuest;

static DirectGuest *
as_direct(UprofGuest *guest)
{
    g_assert(!guest->ops || guest->ops == &uprof_direct_ops);
    return (DirectGuest *)guest;
}

/* Reads a number from a small file of /proc. Returns: false if there is no such file or number */
static bool
read_number(const char *path, uint64_t *number)
{
    g_autofree char *text = NULL;
    gsize len = 0;

    return g_file_get_contents(path, &text, &len, NULL) &&
           uprof_slice_to_uint(uprof_slice_trim((UprofSlice){ text, len }), 10, 0, UINT64_MAX,
                               number);
}

/* Reads CapEff, a hexadecimal number (proc(5), /proc/PID/status). */
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

/* True also if this process may not open /dev/kvm. In that case the check in open decides. */
static bool
kvm_shares_regs(void)
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
    return kvm_shares_regs() ? NULL
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
is_known_cpu(const DirectGuest *direct, const UprofQmpCpu *cpu)
{
    return cpu->index < direct->base.n_vcpus && cpu->thread > 0;
}

static void
close_lost_vcpus(DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++)
        if (uprof_kvm_vcpu_is_lost(&direct->vcpus[i]))
            uprof_kvm_vcpu_close(&direct->vcpus[i]);
}

/* Sets is_plugged of all vCPUs by QEMU's last list of vCPUs. */
static void
mark_plugged_vcpus(DirectGuest *direct)
{
    const GArray *cpus = direct->qemu->cpus;

    for (unsigned i = 0; i < direct->base.n_vcpus; i++)
        g_atomic_int_set(&direct->vcpus[i].is_plugged, 0);
    for (guint i = 0; i < cpus->len; i++) {
        const UprofQmpCpu *cpu = &g_array_index(cpus, UprofQmpCpu, i);
        if (is_known_cpu(direct, cpu))
            g_atomic_int_set(&direct->vcpus[cpu->index].is_plugged, 1);
    }
}

/*
 * @why: (out): why a vCPU could not be opened; literal
 *
 * Returns: how many vCPUs are open
 */
static unsigned
open_plugged_vcpus(DirectGuest *direct, UprofTracer *tracer, const char **why)
{
    const UprofQemu *qemu = direct->qemu;
    unsigned n_open = 0;

    for (guint i = 0; i < qemu->cpus->len; i++) {
        const UprofQmpCpu *cpu = &g_array_index(qemu->cpus, UprofQmpCpu, i);
        if (!is_known_cpu(direct, cpu))
            continue;
        UprofKvmVcpu *vcpu = &direct->vcpus[cpu->index];
        if (uprof_kvm_vcpu_is_open(vcpu) ||
            uprof_kvm_vcpu_open(vcpu, tracer, qemu->pid, qemu->pidfd, cpu->thread, why))
            n_open++;
        else if (vcpu->tracee.state == UPROF_TRACEE_LATE)
            break; /* only the end of this thread detaches the vCPU */
    }
    return n_open;
}

/*
 * One hold in the calling thread.
 *
 * Returns: false if the registers could not be read, or the vCPU could not be released: then QEMU
 * must not be asked, because it would wait for the vCPU
 */
static bool
hold_once(const DirectGuest *direct, UprofKvmVcpu *vcpu, UprofTracer *tracer, UprofRegs *regs,
          uint64_t *hold_ns)
{
    UprofTracee *tracee = &vcpu->tracee;
    bool ok = false;

    *hold_ns = 0;
    if (uprof_kvm_vcpu_stop(vcpu, tracer, direct->stop_limit_ns) == UPROF_TRACE_STOPPED) {
        ok = uprof_kvm_vcpu_check_page(vcpu);
        if (ok)
            uprof_kvm_vcpu_regs(vcpu, regs);
        ok = uprof_tracee_release(tracee) == UPROF_TRACE_RELEASED && ok;
        *hold_ns = tracee->released_ns - tracee->asked_ns;
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
    /* older versions of QEMU always print the current CPU only */
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
        unsigned reg;
        uint64_t ignored_bits;
        const char *name;
    } constant[] = {
        { UPROF_X86_CR0, UPROF_X86_CR0_TS, "CR0" },
        { UPROF_X86_CR4, 0, "CR4" },
        { UPROF_X86_EFER, 0, "EFER" },
        { UPROF_X86_GDT, 0, "the GDT's base" },
        { UPROF_X86_IDT, 0, "the IDT's base" },
        { UPROF_X86_TR, 0, "TR's base" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(constant); i++)
        if ((before->sys[constant[i].reg] | constant[i].ignored_bits) !=
            (held->sys[constant[i].reg] | constant[i].ignored_bits))
            return constant[i].name;
    /* CR3 changes with each process: compared only if the monitor gave the same value twice */
    if (before->sys[UPROF_X86_CR3] == after->sys[UPROF_X86_CR3] &&
        before->sys[UPROF_X86_CR3] != held->sys[UPROF_X86_CR3])
        return "CR3";
    return NULL;
}

/* Repeats holds until the vCPU has run in the guest once. On a busy host this may take a while. */
static bool
hold_until_valid(DirectGuest *direct, UprofKvmVcpu *vcpu, UprofTracer *tracer)
{
    UprofRegs regs;
    uint64_t hold_ns;

    for (unsigned i = 0; i < VALID_TRIES; i++) {
        if (hold_once(direct, vcpu, tracer, &regs, &hold_ns))
            return true;
        g_usleep(VALID_STEP_US);
    }
    return false;
}

/*
 * Releases a vCPU that did not stop in time. Such a vCPU stops as soon as it can, and stands
 * still until the release. Before the release the monitor must not be asked for registers: QEMU
 * would wait for the vCPU, and this thread for QEMU.
 *
 * Returns: false if the vCPU has still not stopped
 */
static bool
release_soon(UprofKvmVcpu *vcpu)
{
    const uint64_t until_ns = uprof_clock_now_ns() + VALID_TRIES * VALID_STEP_US * UPROF_NS_PER_US;

    while (uprof_tracee_release_late(&vcpu->tracee) == UPROF_TRACE_LATE) {
        if (uprof_clock_now_ns() >= until_ns)
            return false;
        g_usleep(LATE_STEP_US);
    }
    return true;
}

/*
 * Compares the registers in the page with those that the monitor shows.
 *
 * Returns: (nullable): the difference; literal
 */
static const char *
check_vcpu(DirectGuest *direct, unsigned index, UprofTracer *tracer)
{
    UprofRegs before, held, after;
    const char *differs = "its registers could not be read";
    uint64_t hold_ns;

    if (!hold_until_valid(direct, &direct->vcpus[index], tracer))
        return differs;
    for (unsigned i = 0; i < CHECK_TRIES && release_soon(&direct->vcpus[index]); i++) {
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
    /* all vCPUs have the same memory */
    if (index == 0 && (held.sys[UPROF_X86_CR0] & UPROF_X86_CR0_PG) &&
        uprof_qemu_compare_bytes(direct->qemu, held.sys[UPROF_X86_CR3] & ~UINT64_C(0xfff)))
        return "the memory of the page tables";
    return NULL;
}

/* Measures the length of holds on this host, for the budget. */
static void
measure_holds(DirectGuest *direct, UprofTracer *tracer)
{
    UprofHistogram holds = { 0 };
    UprofRegs regs;
    uint64_t hold_ns;

    for (unsigned i = 0; i < MEASURED_HOLDS; i++) {
        UprofKvmVcpu *vcpu = &direct->vcpus[i % direct->base.n_vcpus];
        if (uprof_kvm_vcpu_is_open(vcpu) && hold_once(direct, vcpu, tracer, &regs, &hold_ns))
            uprof_histogram_add(&holds, hold_ns);
        g_usleep(MEASURED_STEP_US);
    }
    /* a low percentile: an undisturbed hold. The sampler corrects this value by real holds. */
    direct->base.probe_ns = holds.count > 0 ? uprof_histogram_percentile(&holds, 25) : 0;
}

static bool
prove_vcpus(DirectGuest *direct, UprofTracer *tracer, GError **error)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++) {
        if (!uprof_kvm_vcpu_is_open(&direct->vcpus[i]))
            continue;
        const char *differs = check_vcpu(direct, i, tracer);
        if (!differs)
            continue;
        if (uprof_kvm_vcpu_status(&direct->vcpus[i]) == UPROF_KVM_VCPU_LATE)
            return fail_direct(direct, UPROF_KVM_LATE, error);
        g_autofree char *why =
            g_strdup_printf("vCPU %u: the registers that the kernel shows differ from "
                            "those of QEMU's monitor: %s",
                            i, differs);
        return fail_direct(direct, why, error);
    }
    measure_holds(direct, tracer);
    return true;
}

static bool
open_vcpus(DirectGuest *direct, UprofTracer *tracer, GError **error)
{
    const char *why = "QEMU reports no vCPU";

    close_lost_vcpus(direct);
    mark_plugged_vcpus(direct);
    return open_plugged_vcpus(direct, tracer, &why) == direct->n_present ||
           fail_direct(direct, why, error);
}

static bool
open_and_prove_vcpus(DirectGuest *direct, UprofTracer *tracer, GError **error)
{
    return open_vcpus(direct, tracer, error) && prove_vcpus(direct, tracer, error);
}

/*
 * pthread_join() returns before the kernel has ended the thread, and only that end detaches
 * its tracees.
 */
static void
wait_until_gone(pid_t thread)
{
    const uint64_t until_ns = uprof_clock_now_ns() + LATE_MS * UPROF_NS_PER_MS;

    while (syscall(SYS_tgkill, getpid(), thread, 0) == 0 && uprof_clock_now_ns() < until_ns)
        g_usleep(LATE_STEP_US);
}

/* Work in a tracing thread, and its result. */
typedef struct {
    DirectGuest *direct; /* borrowed */
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

    tracing->thread = uprof_thread_number();
    uprof_tracer_init(&tracer);
    tracing->ok = tracing->work(tracing->direct, &tracer, tracing->error);
    uprof_tracer_clear(&tracer);
    return NULL;
}

/*
 * Runs @work, which holds vCPUs but takes no samples, in a thread of its own. The end of the
 * thread detaches vCPUs that did not stop in time.
 * @is_late: (out): a vCPU did not stop in time
 */
static bool
trace_in_thread(DirectGuest *direct,
                bool (*work)(DirectGuest *direct, UprofTracer *tracer, GError **error),
                bool *is_late, GError **error)
{
    Tracing tracing = { .direct = direct, .work = work, .error = error };

    *is_late = false;
    if (!uprof_signal_mask_run("tracer", run_tracing, &tracing, error))
        return false;
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

/* Retries, because a vCPU that waits for a CPU cannot stop, and may soon get one. */
static bool
open_with_retries(DirectGuest *direct, GError **error)
{
    const uint64_t until_ns = uprof_clock_now_ns() + LATE_MS * UPROF_NS_PER_MS;
    bool is_late, ok;

    do {
        g_clear_error(error);
        ok = trace_in_thread(direct, open_and_prove_vcpus, &is_late, error);
    } while (!ok && is_late && uprof_clock_now_ns() < until_ns);
    return ok;
}

static bool
attach_guest(DirectGuest *direct, const UprofTarget *target, GError **error)
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
    direct->n_open_tries = OPEN_TRIES_MAX;
    return open_with_retries(direct, error);
}

static UprofGuest *
direct_open(const UprofTarget *target, GError **error)
{
    DirectGuest *direct = g_new0(DirectGuest, 1);

    uprof_tracer_init(&direct->tracer);
    if (target->rescue_only)
        return &direct->base; /* the kernel has detached the tracees of a dead profiler */
    direct->idle_stacks = target->idle_stacks;
    direct->stop_limit_ns =
        target->max_pause_ns > 0 ? target->max_pause_ns : STOP_LIMIT_MS * UPROF_NS_PER_MS;
    direct->qemu = uprof_qemu_open(target, error);
    if (!direct->qemu || !attach_guest(direct, target, error)) {
        direct_close(&direct->base);
        return NULL;
    }
    return &direct->base;
}

/* A mapped page would keep the memory of the dead guest allocated. */
static UprofAnswer
end_guest(DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++)
        if (uprof_kvm_vcpu_is_open(&direct->vcpus[i]))
            uprof_kvm_vcpu_close(&direct->vcpus[i]);
    return UPROF_GONE;
}

static void
set_hindrance(DirectGuest *direct, UprofHindrance hindrance)
{
    g_atomic_int_set(&direct->base.hindrance, (gint)hindrance);
}

static UprofAnswer
vet_vcpu(DirectGuest *direct, UprofKvmVcpu *vcpu)
{
    const UprofKvmVcpuStatus status = uprof_kvm_vcpu_status(vcpu);

    switch (status) {
    case UPROF_KVM_VCPU_UNPLUGGED:
    case UPROF_KVM_VCPU_LOST:
        return UPROF_ABSENT;
    case UPROF_KVM_VCPU_UNOPENED:
        return UPROF_BUSY; /* the vCPU exists and runs, so its ticks are counted */
    default:
        if (g_atomic_int_get(&direct->base.hindrance) != UPROF_HINDRANCE_NONE)
            return UPROF_BUSY;
        return status == UPROF_KVM_VCPU_LATE ? UPROF_STUCK
                                             : uprof_kvm_vcpu_check(vcpu, direct->idle_stacks);
    }
}

static UprofAnswer
direct_vet(UprofGuest *guest, unsigned index, GError **error)
{
    DirectGuest *direct = as_direct(guest);
    const UprofAnswer answer = vet_vcpu(direct, &direct->vcpus[index]);

    if (answer == UPROF_OK || answer == UPROF_IDLE || answer == UPROF_SAME)
        return answer;
    return uprof_qemu_is_gone(direct->qemu) ? end_guest(direct) : answer;
}

/* Returns: false if the vCPU has still not stopped */
static bool
release_late_vcpu(UprofKvmVcpu *vcpu)
{
    UprofTracee *tracee = &vcpu->tracee;

    /* the thread that tried to stop the vCPU has ended, so the kernel has detached the vCPU */
    if (tracee->owner != uprof_thread_number())
        *tracee = (UprofTracee){
            .thread = tracee->thread,
            .lost_ns = tracee->lost_ns + uprof_clock_now_ns() - tracee->checked_ns,
        };
    return uprof_tracee_release_late(tracee) != UPROF_TRACE_LATE;
}

static void
direct_release_late(UprofGuest *guest)
{
    DirectGuest *direct = as_direct(guest);
    bool any = false;

    for (unsigned i = 0; i < guest->n_vcpus; i++) {
        UprofKvmVcpu *vcpu = &direct->vcpus[i];
        if (uprof_kvm_vcpu_status(vcpu) == UPROF_KVM_VCPU_LATE && !release_late_vcpu(vcpu))
            any = true;
    }
    g_atomic_int_set(&guest->has_late_stops, any);
}

static UprofAnswer
explain_failed_stop(DirectGuest *direct, UprofKvmVcpu *vcpu, UprofTraceAnswer answer,
                    GError **error)
{
    switch (answer) {
    case UPROF_TRACE_LATE:
        g_atomic_int_set(&direct->base.has_late_stops, 1);
        return UPROF_STUCK;
    case UPROF_TRACE_GROUP_STOP:
        set_hindrance(direct, UPROF_HINDRANCE_STOPPED);
        return UPROF_BUSY;
    case UPROF_TRACE_OTHER_TRACER:
        g_atomic_int_set(&direct->base.tracer, vcpu->tracee.other_tracer);
        set_hindrance(direct, UPROF_HINDRANCE_TRACED);
        return UPROF_BUSY;
    case UPROF_TRACE_GONE:
        if (uprof_qemu_is_gone(direct->qemu))
            return end_guest(direct);
        uprof_kvm_vcpu_lose(vcpu);
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

    guest->released_ns = tracee->released_ns;
    uprof_tracer_disarm(&direct->tracer);
    /* the thread was killed in the hold: QEMU cannot end until the thread is reaped */
    if (answer == UPROF_TRACE_LATE)
        g_atomic_int_set(&guest->has_late_stops, 1);
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
        uprof_kvm_vcpu_stop(vcpu, &direct->tracer, direct->stop_limit_ns);

    guest->asked_ns = vcpu->tracee.asked_ns;
    if (answer == UPROF_TRACE_STOPPED && uprof_kvm_vcpu_check_page(vcpu))
        return UPROF_OK;
    if (answer != UPROF_TRACE_STOPPED) {
        uprof_tracer_disarm(&direct->tracer);
        return explain_failed_stop(direct, vcpu, answer, error);
    }
    /* the vCPU was not in the guest since the page was mapped, so this stop gives no sample */
    const UprofAnswer released = direct_release(guest, index, error);
    if (released != UPROF_OK)
        return released;
    vcpu->tracee.lost_ns += vcpu->tracee.released_ns - vcpu->tracee.asked_ns;
    return UPROF_BUSY;
}

static uint64_t
direct_take_lost_ns(UprofGuest *guest, unsigned index)
{
    UprofKvmVcpu *vcpu = &as_direct(guest)->vcpus[index];

    if (!uprof_kvm_vcpu_is_open(vcpu))
        return 0;
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

    /* QEMU cannot end unnoticed while one of its threads is held */
    if (lane == UPROF_LANE_SAMPLER)
        uprof_qemu_read_held(qemu, spans, n);
    else
        uprof_qemu_read(qemu, lane, spans, n);
}

/*
 * Is the tracer of a vCPU a thread of another process? A thread of this process that has just ended
 * may still be shown as the tracer, but has no status any more.
 */
static bool
is_of_other_process(pid_t thread)
{
    UprofThreadStatus status;

    return uprof_thread_status(thread, &status) && status.process != getpid();
}

/* Looks for other tracers of the vCPU threads, and for signals that have stopped them. */
static UprofHindrance
check_threads(DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++) {
        const UprofKvmVcpu *vcpu = &direct->vcpus[i];
        UprofThreadStatus status;
        if (!uprof_kvm_vcpu_is_open(vcpu) || !uprof_thread_status(vcpu->tracee.thread, &status))
            continue;
        if (status.tracer > 0 && is_of_other_process(status.tracer)) {
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
    return check_threads(direct);
}

static bool
has_lost_vcpu(const DirectGuest *direct)
{
    for (unsigned i = 0; i < direct->base.n_vcpus; i++)
        if (uprof_kvm_vcpu_is_lost(&direct->vcpus[i]))
            return true;
    return false;
}

/* Opens vCPUs that were plugged in. Stops trying after a while if some cannot be opened. */
static void
open_new_vcpus(DirectGuest *direct, unsigned n_present)
{
    bool is_late;

    if (n_present != direct->n_present || has_lost_vcpu(direct))
        direct->n_open_tries = 0;
    direct->n_present = n_present;
    if (direct->n_open_tries >= OPEN_TRIES_MAX || !uprof_qemu_ask_cpus(direct->qemu, NULL))
        return;
    direct->n_open_tries++;
    if (trace_in_thread(direct, open_vcpus, &is_late, NULL))
        direct->n_open_tries = OPEN_TRIES_MAX;
}

/* Asks QEMU for its memory and vCPUs if they may have changed. */
static void
check_machine(DirectGuest *direct, const virDomainInfo *info)
{
    const gint resets = g_atomic_int_get(&direct->base.resets);

    if (info->maxMem != direct->memory_kib || resets != direct->seen_resets)
        uprof_qemu_refresh(direct->qemu);
    direct->memory_kib = info->maxMem;
    direct->seen_resets = resets;
    open_new_vcpus(direct, info->nrVirtCpu);
}

static void
direct_poll(UprofGuest *guest)
{
    DirectGuest *direct = as_direct(guest);
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(direct->qemu);
    virDomainInfo info;

    if (uprof_qemu_is_gone(direct->qemu))
        return;
    if (!vir || uprof_libvirt.DomainGetInfo(vir, &info) < 0) {
        /* the daemon does not answer, but /proc shows some hindrances */
        set_hindrance(direct, check_threads(direct));
        uprof_qemu_reconnect(direct->qemu);
        return;
    }
    if (direct->memory_kib == 0)
        direct->memory_kib = info.maxMem;
    const UprofHindrance hindrance = find_hindrance(direct, &info);
    set_hindrance(direct, hindrance);
    if (hindrance == UPROF_HINDRANCE_NONE)
        check_machine(direct, &info);
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
    .poll = direct_poll,
    .release_late = direct_release_late,
    .take_lost_ns = direct_take_lost_ns,
    .facts = direct_facts,
    .rescue = direct_rescue,
};
