/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Access `monitor`: the whole guest is suspended through libvirt, all registers
 * come in one answer of QEMU's monitor, memory by process_vm_readv or libvirt's
 * peeks. Works on TCG, for every architecture with a register table, remotely
 * and without rights on the host beyond libvirt's.
 *
 * Stopping is virDomainSuspend and virDomainResume, never QEMU's own stop and
 * cont: libvirt gives up lock-manager leases when QEMU stops by itself and does
 * not take them back when it goes on.
 *
 * libvirt's idea of the state lags behind QEMU when suspends and resumes come
 * fast (events are worked off later, and overwrite newer states), so QEMU
 * itself is asked before each hold.
 */
#include "qemu-priv.h"

#include "uprof/backend.h"
#include "uprof/clock.h"
#include "uprof/qemu-regs.h"
#include "uprof/text.h"

#include <string.h>

enum {
    RAM_KEEP_S = 10, /* memory may be plugged */
    RELEASE_RETRY_S = 60,
    RELEASE_RETRY_MS = 20,
    RESCUE_LOOK_MS = 1000, /* a dead client's suspend may still come: up to 4 ms were seen */
    RESCUE_QUICK_MS = 50,
    RESCUE_STEP_US = 1000,
};

typedef struct {
    UprofGuest base;
    UprofQemu *qemu;
    char *regs;      /* answer of the monitor for this hold; malloc */
    UprofSlice rest; /* of it, from the block found last on */
    unsigned next_vcpu;
    uint64_t ram_ns; /* when it was asked for last */
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
attach(MonitorGuest *monitor, const UprofTarget *target, GError **error)
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
    if (!monitor->qemu || (!target->rescue_only && !attach(monitor, target, error))) {
        monitor_close(&monitor->base);
        return NULL;
    }
    return &monitor->base;
}

static void
refresh(MonitorGuest *monitor)
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
    refresh(as_monitor(guest));
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
    return UPROF_BUSY; /* the daemon is restarting, or has too much to do */
}

/* After a resume that failed: whether the guest runs, or somebody else has it now. */
static bool
is_let_go(UprofQemu *qemu)
{
    UprofQmpStatus status;

    if (uprof_qemu_is_gone(qemu))
        return true;
    return uprof_qemu_ask_status(qemu, &status, NULL) && !uprof_qemu_is_paused(&status);
}

/* Returns: false with the reason, if it is not certain that it runs */
static bool
resume_ours(UprofQemu *qemu, GError **error)
{
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
    UprofQmpStatus status;

    if (!vir || virDomainResume(vir) < 0) {
        g_autoptr(GError) failure = NULL;
        uprof_qemu_fail(qemu, "domain:suspend", "cannot resume the domain", &failure);
        if (is_let_go(qemu))
            return true;
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    if (!uprof_qemu_ask_status(qemu, &status, error))
        return false;
    if (uprof_qemu_is_paused(&status)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD, "it was resumed and is paused");
        return false;
    }
    return true;
}

/*
 * A suspend that a dead client had asked for may wait in the daemon for the same
 * lock as our question, and run after it: only quick answers count towards the
 * time in which nothing must happen.
 */
static bool
monitor_rescue(UprofGuest *guest, bool asked, GError **error)
{
    UprofQemu *qemu = as_monitor(guest)->qemu;
    uint64_t clear_ns = 0;

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
            return resume_ours(qemu, error);
        if (!status.running && !asked) {
            /* such as finish-migrate: whoever moves it decides whether it runs again */
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "it is '%s'", status.status);
            return false;
        }
        if (clear_ns == 0 || now_ns - asked_ns > RESCUE_QUICK_MS * UPROF_NS_PER_MS)
            clear_ns = now_ns + RESCUE_LOOK_MS * UPROF_NS_PER_MS;
        if (!asked || now_ns >= clear_ns)
            return true;
        g_usleep(RESCUE_STEP_US);
    }
}

/* A suspend that failed half-way, as when the daemon went away: makes sure that it is undone. */
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

static UprofAnswer
monitor_hold(UprofGuest *guest, unsigned vcpu, GError **error)
{
    MonitorGuest *monitor = as_monitor(guest);
    UprofQemu *qemu = monitor->qemu;
    g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);

    if (!vir)
        return UPROF_BUSY;
    g_mutex_lock(&qemu->gate);
    if (virDomainSuspend(vir) == 0)
        return UPROF_OK;
    g_mutex_unlock(&qemu->gate);

    /* asked for before anything else is: libvirt keeps the last error only */
    const virError *last = virGetLastError();
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
        return UPROF_BUSY; /* refused, so it was not stopped; or it runs again */
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
    bool running = false;

    while (!running) {
        g_autoptr(UprofVirDomain) vir = uprof_qemu_vir(qemu);
        running = vir && virDomainResume(vir) == 0;
        if (running)
            break;
        g_clear_error(&failure);
        uprof_host_fail(&failure, "cannot resume the domain");
        running = is_let_go(qemu);
        if (running || uprof_clock_now_ns() >= until_ns)
            break;
        uprof_qemu_reconnect(qemu);
        g_usleep(RELEASE_RETRY_MS * 1000);
    }
    free(monitor->regs);
    monitor->regs = NULL;
    g_mutex_unlock(&qemu->gate);
    if (running)
        return UPROF_OK;
    g_propagate_error(error, g_steal_pointer(&failure));
    return UPROF_FAILED;
}

static UprofAnswer
monitor_read_regs(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error)
{
    MonitorGuest *monitor = as_monitor(guest);
    UprofSlice block;

    /* in a hold nothing changes; else an answer is good for one round of the vCPUs */
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
    /* vCPUs come in rising order, here as there: the next one stands behind this one */
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
    .facts = monitor_facts,
    .rescue = monitor_rescue,
};
