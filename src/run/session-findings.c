/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/session-findings.h"

#include "uprof/clock.h"
#include "uprof/number-text.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

static bool
is_qemu(const UprofSession *session)
{
    return strcmp(session->domain->driver, "QEMU") == 0;
}

static void
describe_holds(UprofDiagnosis *diagnosis, const UprofSession *session)
{
    const UprofRun *run = session->run;
    UprofGuestFacts facts;

    uprof_guest_facts(session->guest, &facts);
    if (run->hold.count > 0) {
        g_autofree char *p50 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 50));
        g_autofree char *max = uprof_format_ns(run->hold.max_ns);
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "access",
                            "%s: %" G_GUINT64_FORMAT " test holds of %s, median %s, longest %s",
                            run->access, run->hold.count,
                            session->guest->grain == UPROF_GRAIN_VCPU ? "one vCPU"
                                                                      : "the complete guest",
                            p50, max);
    } else {
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "access", "%s: no hold was needed",
                            run->access);
    }
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "access", "why: %s", session->why);
    if (facts.why_slow)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "memory",
                            "read by %s, which takes milliseconds for each read: %s", facts.reads,
                            facts.why_slow);
    else if (facts.pid == 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "memory",
                            "read by %s: %" G_GUINT64_FORMAT " MiB", facts.reads,
                            facts.ram_bytes / 1048576);
    else
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "memory",
                            "read by %s from QEMU's process %d: %u ranges, %" G_GUINT64_FORMAT
                            " MiB",
                            facts.reads, facts.pid, facts.n_ranges, facts.ram_bytes / 1048576);
    if (is_qemu(session))
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "taint",
            "opening the domain asks QEMU's monitor, so libvirt has marked it as 'custom-monitor' "
            "until it stops");
}

/*
 * Each query of the monitor makes libvirt mark the domain as tainted, save the domain's state
 * and sync the file. On a disk, the sync takes most of a hold.
 */
static void
describe_state_folder(UprofDiagnosis *diagnosis, const UprofSession *session)
{
    static const char folder[] = "/run/libvirt/qemu";
    struct statfs info;

    if (is_qemu(session) && session->guest->grain != UPROF_GRAIN_VCPU &&
        session->domain->is_local && g_str_has_suffix(session->domain->uri, "/system") &&
        statfs(folder, &info) == 0 && info.f_type != TMPFS_MAGIC)
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_WARN, "libvirt",
            "%s is on a disk, and each sample makes libvirt write there several times: mount a "
            "tmpfs on /run",
            folder);
}

void
uprof_session_findings_rate(UprofDiagnosis *diagnosis, const UprofSession *session)
{
    const UprofHistogram *hold = &session->run->hold;
    const uint64_t p50_ns = uprof_histogram_percentile(hold, 50);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);

    if (hold->count == 0 || p50_ns == 0)
        return;
    const uint64_t max_mhz = budget_ppm * (UPROF_NS_PER_S / 1000) / p50_ns;
    g_autofree char *rate = uprof_format_hz(MAX(max_mhz, 1));
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    uprof_diagnosis_add(
        diagnosis, UPROF_LEVEL_NOTE, "rate",
        "up to %s Hz within --budget %s: each sample stops %s for the median hold time", rate,
        budget, session->guest->grain == UPROF_GRAIN_VCPU ? "its vCPU" : "the guest");
}

void
uprof_session_findings_mode(UprofDiagnosis *diagnosis, const UprofSession *session,
                            const UprofRegs *regs)
{
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "guest", "%s, %u-bit code, paging %s, %u vCPU%s",
                        session->run->arch, regs->word_bytes * 8,
                        uprof_paging_name(session->guest->arch, regs),
                        (unsigned)session->run->vcpus, session->run->vcpus == 1 ? "" : "s");
}

void
uprof_session_findings_access(UprofDiagnosis *diagnosis, const UprofSession *session)
{
    describe_holds(diagnosis, session);
    describe_state_folder(diagnosis, session);
}
