/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/run-lines.h"

#include "uprof/clock.h"

/* A run of two vCPUs for 10 s, in which all is well. */
static UprofRun *
make_run(void)
{
    UprofRun *run = uprof_run_new();

    run->type = g_strdup("kvm");
    run->arch = g_strdup("x86_64");
    run->access = g_strdup("direct");
    run->vcpus = 1;
    run->rate_mhz = 99000;
    run->asked_ns = run->duration_ns = 10 * UPROF_NS_PER_S;
    run->samples = run->running = run->complete = 990;
    run->frames = run->named = run->by_cfi = 4000;
    run->calls_checked = run->calls_agreed = 3000;
    for (unsigned i = 0; i < 990; i++)
        uprof_histogram_add(&run->hold, 30 * UPROF_NS_PER_US);
    return run;
}

static void
assert_lines(GPtrArray *lines, const char *const *patterns)
{
    for (guint i = 0; i < lines->len; i++) {
        const char *line = g_ptr_array_index(lines, i);
        g_test_message("%s", line);
        g_assert_nonnull(patterns[i]);
        g_assert_true(g_pattern_match_simple(patterns[i], line));
    }
    g_assert_null(patterns[lines->len]);
    g_ptr_array_unref(lines);
}

static const UprofRunLinesHow brief = { .is_live = true }, verbose = { .is_verbose = true };

static void
test_start(void)
{
    g_autoptr(UprofRun) run = make_run();

    assert_lines(uprof_run_lines_start(run, "web-1", 0),
                 (const char *const[]){ "web-1: QEMU/KVM, x86_64, 1 vCPU, 99 Hz for 10 s, access "
                                        "direct. Ctrl-C stops early.",
                                        NULL });
    g_free(run->access);
    run->access = g_strdup("monitor");
    run->why = g_strdup("asked for");
    run->asked_ns = 0;
    assert_lines(uprof_run_lines_start(run, "web-1", 0),
                 (const char *const[]){ "web-1: * 99 Hz until stopped, access monitor. *",
                                        "web-1: access monitor: asked for", NULL });
    assert_lines(uprof_run_lines_start(run, "web-1", 500),
                 (const char *const[]){ "web-1: * 99 Hz for 500 samples, access monitor. *",
                                        "web-1: access monitor: asked for", NULL });
    run->asked_ns = 10 * UPROF_NS_PER_S;
    assert_lines(uprof_run_lines_start(run, "web-1", 500),
                 (const char *const[]){ "web-1: * 99 Hz for 500 samples or 10 s, access monitor. *",
                                        "web-1: access monitor: asked for", NULL });
}

static void
test_well(void)
{
    g_autoptr(UprofRun) run = make_run();

    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples at 99 Hz, all stacks complete, all "
                                        "names found; each vCPU held 0.3 % of the time or less: "
                                        "median 3? us",
                                        NULL });
    run->late = 3; /* less than 1 % */
    run->complete = 985;
    run->named = 3990;
    run->idles = 10;
    run->samples = 1000;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 1000 samples (990 running, 10 idle) at 100 Hz, "
                                        "99.5 % of stacks complete, 99.8 % of frames named; each *",
                                        NULL });
    assert_lines(uprof_run_lines_end(run, "web-1", &verbose),
                 (const char *const[]){
                     "web-1: 1000 samples (990 running, 10 idle) at 100 Hz, 99.5 % "
                     "complete, 0.0 % truncated, 0.0 % unknown, 99.8 % of frames named; "
                     "each vCPU held * median *, p99 *, longest 30 us",
                     "web-1: callers found: 100.0 % by unwind tables; 100.0 % of calls "
                     "agree",
                     "web-1: 3 of 1003 samples missed: 3 because the host was late", NULL });
}

/* Numbers appear where something is not well. */
static void
test_not_well(void)
{
    g_autoptr(UprofRun) run = make_run();

    run->complete = 900;
    run->truncated = 90;
    run->late = 71;
    run->stuck = 33;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples (990 running, 0 idle) at 99 Hz, 90.9 % "
                                        "complete, 9.1 % truncated, 0.0 % unknown, 100.0 % of "
                                        "frames named; *",
                                        "web-1: callers found: *",
                                        "web-1: 104 of 1094 samples missed: 71 because the host "
                                        "was late, 33 because a vCPU did not stop in time; the "
                                        "host is busy",
                                        NULL });
    run->late = run->stuck = 0;
    run->kernel.why = "it has no symbols";
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples *", "web-1: callers found: *",
                                        "web-1: no Linux kernel was found in its memory: it has "
                                        "no symbols",
                                        NULL });
}

/* On Xen, a high rate loses ticks if dom0 and the domain share a CPU; the line says what helps. */
static void
test_shared_cpu(void)
{
    g_autoptr(UprofRun) run = make_run();

    g_free(run->access);
    run->access = g_strdup("xen");
    run->late = 300;
    run->rate_mhz = 1000 * 1000;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){
                     "web-1: 990 samples *",
                     "web-1: 300 of 1290 samples missed: 300 because the host was late; the host "
                     "is busy, or dom0 shares a CPU with the domain. *: use -F 400, *xl vcpu-pin*",
                     NULL });
    run->rate_mhz = 400 * 1000;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples *",
                                        "web-1: 300 of 1290 *late; the host is busy", NULL });
}

static void
test_little(void)
{
    g_autoptr(UprofRun) run = make_run();

    run->samples = run->running = run->complete = 2;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 2 samples at *",
                                        "web-1: 2 samples of running vCPUs say little; use a "
                                        "longer -d or a higher -F",
                                        NULL });
    run->samples = run->idles = 990;
    run->running = run->complete = 0;
    assert_lines(
        uprof_run_lines_end(run, "web-1", &brief),
        (const char *const[]){ "web-1: 990 samples, all idle at 99 Hz; each vCPU *", NULL });
    run->duration_ns = 0; /* a capture that was cut off */
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples, all idle; holds: median *", NULL });
    run->samples = run->idles = 0;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 0 samples; holds: median *", NULL });
}

static void
test_waits(void)
{
    g_autoptr(UprofRun) run = make_run();

    run->waits = (UprofRunWaits){ .walks = 50,
                                  .tasks = 5050,
                                  .time_ns = 9 * UPROF_NS_PER_S,
                                  .total_us = 900 * 1000 * 1000,
                                  .unknown_us = 9 * 1000 * 1000 };
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples *",
                                        "web-1: waits: 50 walks of 101 tasks in 9 s: together they "
                                        "waited 900 s, 1.0 % of it in places that are not known",
                                        NULL });
    run->waits.incomplete = 2;
    assert_lines(uprof_run_lines_end(run, "web-1", &brief),
                 (const char *const[]){ "web-1: 990 samples *", "web-1: waits: *",
                                        "virt-uprof: web-1: 2 of 50 walks may lack tasks: *",
                                        NULL });
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run-lines/start", test_start);
    g_test_add_func("/run-lines/well", test_well);
    g_test_add_func("/run-lines/not-well", test_not_well);
    g_test_add_func("/run-lines/shared-cpu", test_shared_cpu);
    g_test_add_func("/run-lines/little", test_little);
    g_test_add_func("/run-lines/waits", test_waits);
    return g_test_run();
}
