/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/analysis-findings.h"

#include "linux-guest.h"

enum { COUNT_BITS = 5, SIZE_BITS = 12 };

#define HOUR_MS (3600 * 1000)

static void
put_log(LinuxGuest *guest, unsigned later_ms)
{
    g_auto(PrintkBuilder) builder;

    printk_init(&builder, COUNT_BITS, SIZE_BITS);
    builder.facility = 0;
    builder.sequence = 5;
    printk_add(&builder, 0, "Oops: 0002 [#1] PREEMPT SMP PTI");
    builder.sequence = 5 + later_ms;
    printk_add(&builder, 6, "after");
    linux_guest_put_log(guest, &builder);
}

/* Checks a guest whose log tells of an oops, and has a record that came @later_ms later. */
static void
assert_log(unsigned later_ms, UprofLevel level, const char *text)
{
    const LinuxPlan plan = { .n_vcpus = 1 };
    static UprofSnapshot snapshot;
    g_autoptr(LinuxGuest) guest = linux_guest_new(&plan);
    g_auto(UprofDiagnosis) diagnosis;
    g_autoptr(GError) error = NULL;
    UprofAnalysis analysis = { .run = uprof_run_new() };
    unsigned n_found = 0;

    put_log(guest, later_ms);
    analysis.run->domain = g_strdup("web-1");
    analysis.run->arch = g_strdup("x86_64");
    analysis.run->unwind = g_strdup("auto");
    analysis.run->vcpus = 1;
    analysis.run->max_depth = 64;
    analysis.pipeline = uprof_pipeline_new(&guest->memory->base, analysis.run, NULL);
    g_assert_true(uprof_pipeline_begin(analysis.pipeline, &error));
    uprof_snapshot_clear(&snapshot);
    snapshot.regs = guest->memory->regs[0];
    snapshot.is_prime = true;
    g_assert_true(uprof_pipeline_take(analysis.pipeline, &snapshot, &error));
    uprof_diagnosis_init(&diagnosis, "web-1");
    uprof_analysis_findings_add(&diagnosis, &analysis);
    for (guint i = 0; i < diagnosis.findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis.findings, UprofFinding, i);
        if (g_strcmp0(finding->topic, "kernel log") != 0)
            continue;
        g_assert_cmpint(finding->level, ==, level);
        g_assert_cmpstr(finding->text, ==, text);
        n_found++;
    }
    g_assert_cmpuint(n_found, ==, 1);
    uprof_pipeline_free(analysis.pipeline);
    uprof_run_free(analysis.run);
}

/* Old trouble is a note. */
static void
test_log(void)
{
    assert_log(2, UPROF_LEVEL_WARN,
               "tells of an oops, 0.005000 s after the boot and 2 ms before the newest record: "
               "'Oops: 0002 [#1] PREEMPT SMP PTI'; see: virt-uprof dmesg");
    assert_log(2 * HOUR_MS, UPROF_LEVEL_NOTE,
               "tells of an oops, 0.005000 s after the boot and 7200 s before the newest record: "
               "'Oops: 0002 [#1] PREEMPT SMP PTI'; see: virt-uprof dmesg");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/analysis-findings/log", test_log);
    return g_test_run();
}
