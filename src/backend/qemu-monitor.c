/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access `monitor`: libvirt suspends the whole guest. One answer of QEMU's monitor has all
 * registers. Memory is read by process_vm_readv or libvirt's peeks. This works on TCG, for
 * every architecture with a register table, remotely, and with no permissions on the host
 * but libvirt's.
 *
 * The guest is stopped by virDomainSuspend and resumed by virDomainResume, never by QEMU's
 * own stop and cont: libvirt releases the leases of its lock manager when QEMU stops by
 * itself, and does not acquire them again when QEMU continues.
 *
 * libvirt's state lags behind QEMU's when suspends and resumes follow each other fast (libvirt
 * handles events later, and they overwrite newer states). So each hold first asks QEMU itself.
 */
#include "qemu-priv.h"

#include "uprof/backend.h"
#include "uprof/clock.h"
#include "uprof/qemu-regs.h"
#include "uprof/text.h"

#include <string.h>

enum {
    RAM_KEEP_S = 10, /* age at which the map is asked for again: memory may be plugged */
    RELEASE_RETRY_S = 60,
    RELEASE_RETRY_MS = 20,
    RESCUE_WATCH_MS = 1000, /* a dead client's suspend may still arrive: up to 4 ms were seen */
    RESCUE_QUICK_MS = 50,
    RESCUE_SLOW_MAX = 10, /* slow answers that restart the watch */
    RESCUE_STEP_US = 1000,
};

typedef struct {
    UprofGuest base;
    UprofQemu *qemu;
    char *regs;         /* owned, malloc: the monitor's answer in this hold; NULL: not asked yet */
    UprofSlice rest;    /* of regs, from the last block that was found */
    unsigned next_vcpu; /* the block of this vCPU is in rest */
    uint64_t ram_ns;    /* monotonic: when the map of RAM was last asked for */
    UprofQemuPaging paging;
} MonitorGuest;

static MonitorGuest *
as_monitor(UprofGuest *guest)
{
    g_assert(!guest->ops || guest->ops == &uprof_monitor_ops);
    return (MonitorGuest *)guest;
}

static void
monitor_close(UprofGuest *guest)
{
    MonitorGuest *monitor = as_monitor(guest);

    uprof_qemu_close(monitor->qemu);
    free(monitor->regs);
    g_free(monitor);
}

static bool
attach_guest(MonitorGuest *monitor, const UprofTarget *target, GError **error)
{
    if (!uprof_qemu_check_running(monitor->qemu, target, &monitor->base.paused, error))
        return false;
    if (target->no_pause && !target->kvm) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                    "'%s' runs on QEMU's emulation, which shows the registers of a stopped "
                    "guest only; leave out --no-pause",
                    monitor->qemu->name);
        return false;
    }
    monitor->base.arch = target->arch;
    monitor->base.needs_roots = target->arch->family == UPROF_FAMILY_ARM;
    monitor->base.grain = target->no_pause ? UPROF_GRAIN_NONE : UPROF_GRAIN_GUEST;
    if (!uprof_qemu_attach(monitor->qemu, &monitor->base.n_vcpus, error))
        return false;
    monitor->ram_ns = uprof_clock_now_ns();
    monitor->base.slow_reads = !monitor->qemu->by_process;
    return true;
}

static UprofGuest *
monitor_open(const UprofTarget *target, GError **error)
{
    MonitorGuest *monitor = g_new0(MonitorGuest, 1);

    monitor->qemu = uprof_qemu_open(target, error);
    if (!monitor->qemu || (!target->rescue_only && !attach_guest(monitor, target, error))) {
        monitor_close(&monitor->base);
        return NULL;
    }
    return &monitor->base;
}

static void
refresh_ram(MonitorGuest *monitor)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    if (now_ns - monitor->ram_ns < RAM_KEEP_S * UPROF_NS_PER_S)
        return;
    monitor->ram_ns = now_ns;
    uprof_qemu_refresh(monitor->qemu);
}

static UprofAnswer
monitor_vet(UprofGuest *guest, unsigned vcpu, GError **error)
{
    UprofQemu *qemu = as_monitor(guest)->qemu;
    g_autoptr(GError) failure = NULL;
    UprofQmpStatus status;

    if (uprof_qemu_is_gone(qemu))
        return UPROF_GONE;
    refresh_ram(as_monitor(guest));
    if (uprof_qemu_has_job(qemu))
        return UPROF_BUSY;
    if (uprof_qemu_ask_status(qemu, &status, &failure)) {
        qemu->lost_ns = 0;
        return status.running ? UPROF_OK : UPROF_BUSY;
    }
    if (uprof_qemu_is_gone(qemu))
        return UPROF_GONE;
    if (!uprof_qemu_reconnect(qemu)) {
        const uint64_t now_ns = uprof_clock_now_ns();
        if (qemu->lost_ns == 0)
            qemu->lost_ns = now_ns;
        if (now_ns - qemu->lost_ns > RELEASE_RETRY_S * UPROF_NS_PER_S) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return UPROF_FAILED;
        }
    }
    return UPROF_BUSY; /* the daemon is restarting or overloaded */
}

/* After a failed resume: does the guest run, or does somebody else control it now? */
static bool
is_released(UprofQemu *qemu)
{
    UprofQmpStatus status;

    if (uprof_qemu_is_gone(qemu))
        return true;
    return uprof_qemu_ask_status(qemu, &status, NULL) && !uprof_qemu_is_paused(&status);
}

/* Returns: false with an error, unless the guest certainly runs */
static bool
resume_guest(UprofQemu *qemu, GError **error)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    UprofQmpStatus status;

    if (!vir || uprof_libvirt.DomainResume(vir) < 0) {
        g_autoptr(GError) failure = NULL;
        uprof_qemu_fail(qemu, "domain:suspend", "cannot resume the domain", &failure);
        if (is_released(qemu))
            return true;
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (!uprof_qemu_ask_status(qemu, &status, error))
        return false;
    if (uprof_qemu_is_paused(&status)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD,
                    "it was resumed, but is paused again");
        return false;
    }
    return true;
}

static bool
is_panicked(const UprofQmpStatus *status)
{
    return strcmp(status->status, "guest-panicked") == 0;
}

/*
 * The daemon may still carry out a suspend that a dead client has asked for: the suspend may wait
 * for the same lock as the query below, and get the lock after the query. So a watch of
 * RESCUE_WATCH_MS must see the guest run. A slow answer restarts the watch, up to RESCUE_SLOW_MAX
 * times: the watch also undoes pauses by other users, so it must end even if the daemon is always
 * slow.
 */
static bool
monitor_rescue(UprofGuest *guest, bool asked, GError **error)
{
    UprofQemu *qemu = as_monitor(guest)->qemu;
    uint64_t clear_ns = 0;
    unsigned n_slow = 0;

    for (;;) {
        g_autoptr(GError) failure = NULL;
        const uint64_t asked_ns = uprof_clock_now_ns();
        UprofQmpStatus status;

        if (!uprof_qemu_ask_status(qemu, &status, &failure)) {
            if (uprof_qemu_is_gone(qemu))
                return true;
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        const uint64_t now_ns = uprof_clock_now_ns();
        if (uprof_qemu_is_paused(&status))
            return resume_guest(qemu, error);
        if (is_panicked(&status))
            return true;
        if (!status.running && !asked) {
            /* such as finish-migrate: the migration decides whether the guest is resumed */
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "it is '%s'", status.status);
            return false;
        }
        const bool is_slow = now_ns - asked_ns > RESCUE_QUICK_MS * UPROF_NS_PER_MS;
        if (clear_ns == 0 || (is_slow && n_slow++ < RESCUE_SLOW_MAX))
            clear_ns = now_ns + RESCUE_WATCH_MS * UPROF_NS_PER_MS;
        if (!asked || now_ns >= clear_ns)
            return true;
        g_usleep(RESCUE_STEP_US);
    }
}

/* Undoes a suspend that failed. If the daemon ended half-way, the guest may be stopped. */
static bool
undo_suspend(UprofGuest *guest)
{
    UprofQemu *qemu = as_monitor(guest)->qemu;
    const uint64_t until_ns = uprof_clock_now_ns() + RELEASE_RETRY_S * UPROF_NS_PER_S;

    while (!monitor_rescue(guest, true, NULL)) {
        if (uprof_clock_now_ns() >= until_ns)
            return false;
        uprof_qemu_reconnect(qemu);
        g_usleep(RELEASE_RETRY_MS * 1000);
    }
    return true;
}

/*
 * A suspend and a resume of a guest that has crashed would let it run again. libvirt allows both.
 * So the state of a guest that may crash is asked right before the suspend, and once more before
 * the resume.
 */
static bool
is_crashed(UprofQemu *qemu)
{
    g_autoptr(UprofVirDomain) vir = qemu->may_panic ? uprof_qemu_vir(qemu) : NULL;
    int state = 0;

    return vir && uprof_libvirt.DomainGetState(vir, &state, NULL, 0) == 0 &&
           state == VIR_DOMAIN_CRASHED;
}

/* QEMU knows before libvirt. But if QEMU was just stopping the guest, only libvirt knows. */
static bool
has_panicked(UprofQemu *qemu)
{
    UprofQmpStatus status;

    return qemu->may_panic &&
           ((uprof_qemu_ask_status(qemu, &status, NULL) && is_panicked(&status)) ||
            is_crashed(qemu));
}

static UprofAnswer
monitor_hold(UprofGuest *guest, unsigned vcpu, GError **error)
{
    MonitorGuest *monitor = as_monitor(guest);
    UprofQemu *qemu = monitor->qemu;
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);

    if (!vir || is_crashed(qemu))
        return UPROF_BUSY;
    g_mutex_lock(&qemu->gate);
    const bool is_stopped = uprof_libvirt.DomainSuspend(vir) == 0;
    if (!is_stopped || guest->worker_reads)
        g_mutex_unlock(&qemu->gate);
    if (is_stopped)
        return UPROF_OK;

    /* read before any other call, because libvirt keeps only the last error */
    const virError *last = uprof_libvirt.GetLastError();
    const int code = last ? last->code : VIR_ERR_OK;
    g_autoptr(GError) failure = NULL;
    uprof_qemu_fail(qemu, "domain:suspend", "cannot suspend the domain", &failure);
    if (failure->code == UPROF_ERROR_DENIED) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return UPROF_FAILED;
    }
    if (uprof_qemu_is_gone(qemu))
        return UPROF_GONE;
    if (code == VIR_ERR_OPERATION_TIMEOUT || code == VIR_ERR_OPERATION_INVALID ||
        undo_suspend(guest))
        return UPROF_BUSY; /* the suspend was refused, or is undone */
    g_propagate_error(error, g_steal_pointer(&failure));
    return UPROF_FAILED;
}

static UprofAnswer
monitor_release(UprofGuest *guest, unsigned vcpu, GError **error)
{
    MonitorGuest *monitor = as_monitor(guest);
    UprofQemu *qemu = monitor->qemu;
    const uint64_t until_ns = uprof_clock_now_ns() + RELEASE_RETRY_S * UPROF_NS_PER_S;
    g_autoptr(GError) failure = NULL;
    bool is_done = has_panicked(qemu);

    while (!is_done) {
        g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
        is_done = vir && uprof_libvirt.DomainResume(vir) == 0;
        if (is_done)
            break;
        g_clear_error(&failure);
        uprof_host_fail(&failure, "cannot resume the domain");
        is_done = is_released(qemu);
        if (is_done || uprof_clock_now_ns() >= until_ns)
            break;
        uprof_qemu_reconnect(qemu);
        g_usleep(RELEASE_RETRY_MS * 1000);
    }
    free(monitor->regs);
    monitor->regs = NULL;
    if (!guest->worker_reads)
        g_mutex_unlock(&qemu->gate);
    if (is_done)
        return UPROF_OK;
    g_propagate_error(error, g_steal_pointer(&failure));
    return UPROF_FAILED;
}

static UprofAnswer
monitor_read_regs(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error)
{
    MonitorGuest *monitor = as_monitor(guest);
    UprofSlice block;

    /* in a hold nothing changes; without a hold, an answer serves each vCPU only once */
    const bool stands_still = guest->held && guest->grain == UPROF_GRAIN_GUEST;
    if (!stands_still && vcpu < monitor->next_vcpu)
        g_clear_pointer(&monitor->regs, free);
    if (monitor->regs && vcpu < monitor->next_vcpu)
        monitor->rest = (UprofSlice){ monitor->regs, strlen(monitor->regs) };
    if (!monitor->regs) {
        monitor->regs = uprof_qemu_ask_human(monitor->qemu, "info registers -a", error);
        if (!monitor->regs) {
            if (uprof_qemu_is_gone(monitor->qemu)) {
                g_clear_error(error);
                return UPROF_GONE;
            }
            return UPROF_FAILED;
        }
        monitor->rest = (UprofSlice){ monitor->regs, strlen(monitor->regs) };
    }
    monitor->next_vcpu = vcpu + 1;
    if (!uprof_qemu_regs_find(monitor->rest, vcpu, &block))
        return UPROF_ABSENT;
    /* both the sampler and the answer have vCPUs in rising order, so the next search starts here */
    const size_t done = (size_t)((const char *)block.data - (const char *)monitor->rest.data);
    monitor->rest = (UprofSlice){ block.data, monitor->rest.len - done };
    if (!uprof_qemu_regs_parse(block, guest->arch, regs, error))
        return UPROF_FAILED;
    uprof_qemu_note_paging(guest, &monitor->paging, vcpu, regs);
    return UPROF_OK;
}

static void
monitor_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n)
{
    uprof_qemu_read(as_monitor(guest)->qemu, lane, spans, n);
}

static bool
monitor_ask_translation(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa)
{
    return uprof_qemu_ask_translation(as_monitor(guest)->qemu, vcpu, gva, gpa);
}

static void
monitor_facts(UprofGuest *guest, UprofGuestFacts *facts)
{
    uprof_qemu_facts(as_monitor(guest)->qemu, facts);
}

const UprofGuestOps uprof_monitor_ops = {
    .name = "monitor",
    .open = monitor_open,
    .close = monitor_close,
    .vet = monitor_vet,
    .hold = monitor_hold,
    .release = monitor_release,
    .read_regs = monitor_read_regs,
    .read = monitor_read,
    .ask_translation = monitor_ask_translation,
    .facts = monitor_facts,
    .rescue = monitor_rescue,
};
