/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run-summary.c - the start and the end of a run, in a few lines on stderr
 */
#include "run-summary-priv.h"

#include "exit-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <string.h>

enum { ONE_FRAME_PERCENT = 50, ONE_FRAME_STACKS_MIN = 30, UNSEEN_STACKS_MIN = 30 };

static const char *
name_hypervisor(const UprofRun *run)
{
    if (g_strcmp0(run->type, "kvm") == 0)
        return "QEMU/KVM";
    if (g_strcmp0(run->type, "qemu") == 0)
        return "QEMU (emulated)";
    return run->driver ? run->driver : "?";
}

void
uprof_summary_say_start(const UprofRun *run, const char *shown)
{
    g_autofree char *hz = uprof_format_hz(run->rate_mhz);
    g_autofree char *time = uprof_format_ns(run->asked_ns);

    uprof_say("%s: %s, %s, %" G_GUINT64_FORMAT " vCPU%s, %s Hz %s%s, access %s. "
              "Ctrl-C stops early.",
              shown, name_hypervisor(run), run->arch, run->vcpus, run->vcpus == 1 ? "" : "s", hz,
              run->asked_ns > 0 ? "for " : "until stopped", run->asked_ns > 0 ? time : "",
              run->access);
    /* On KVM access direct is faster, so this line says why it is not used. */
    if (g_strcmp0(run->type, "kvm") == 0 && g_strcmp0(run->access, "monitor") == 0)
        uprof_say("%s: access monitor: %s", shown, run->why);
}

static void
say_images(const UprofRun *run, const char *shown)
{
    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        if (image->is_module)
            continue;
        g_autofree char *path = uprof_text_quote(image->path);
        if (image->lines_hint)
            uprof_say("virt-uprof: %s: '%s': not all inlined functions are shown: %s", shown, path,
                      image->lines_hint);
        if (image->checked && !image->matched)
            uprof_say("virt-uprof: %s: symbols of '%s' are ignored, because they do not match: %s",
                      shown, path, image->mismatch);
        else if (run->running >= UNSEEN_STACKS_MIN && image->n_seen == 0)
            uprof_say(
                "virt-uprof: %s: no sample is in the code of '%s'; if the file is right, its load "
                "address may be missing (-s FILE@BASE)",
                shown, path);
    }
}

static void
say_hints(const UprofRun *run, const char *shown)
{
    say_images(run, shown);
    if (run->running >= ONE_FRAME_STACKS_MIN &&
        run->one_frame * 100 >= run->running * ONE_FRAME_PERCENT)
        uprof_say("virt-uprof: %s: %" G_GUINT64_FORMAT
                  " %% of stacks have only one frame; unwind tables or the sizes of symbols may be "
                  "missing",
                  shown, run->one_frame * 100 / run->running);
    if (run->torn > 0)
        uprof_say("virt-uprof: %s: %" G_GUINT64_FORMAT " stacks changed while they were read and "
                  "count as truncated",
                  shown, run->torn);
    if (run->late + run->busy + run->skipped + run->stuck > 0)
        uprof_say("%s: ticks without a sample: %" G_GUINT64_FORMAT " late, %" G_GUINT64_FORMAT
                  " while somebody else held the guest, %" G_GUINT64_FORMAT
                  " because their analysis was late or failed, %" G_GUINT64_FORMAT
                  " because a vCPU did not stop in time",
                  shown, run->late, run->busy, run->skipped, run->stuck);
}

static void
say_linux(const UprofRun *run, const char *shown)
{
    const UprofRunLinux *kernel = &run->kernel;

    if (!kernel->release)
        return;
    g_autofree char *in_kernel =
        uprof_format_percent(kernel->kernel_complete, kernel->kernel_stacks);
    g_autofree char *in_user = uprof_format_percent(kernel->user_complete, kernel->user_stacks);
    uprof_say("%s: Linux %s: %" G_GUINT64_FORMAT " symbols and %" G_GUINT64_FORMAT
              " modules, %s unwind tables, %s; %s %% of stacks complete in the kernel, %s %% in "
              "user mode",
              shown, kernel->release, kernel->symbols, kernel->modules,
              kernel->rules > 0 ? "with" : "no",
              kernel->has_tasks ? "with processes" : "no processes", in_kernel, in_user);
}

void
uprof_summary_say_end(const UprofRun *run, const char *shown)
{
    g_autofree char *hz = uprof_format_hz(uprof_run_got_mhz(run));
    g_autofree char *complete = uprof_format_percent(run->complete, run->running);
    g_autofree char *truncated = uprof_format_percent(run->truncated, run->running);
    g_autofree char *unknown = uprof_format_percent(run->unknown, run->running);
    g_autofree char *named = uprof_format_percent(run->named, run->frames);

    uprof_say(
        "%s: %" G_GUINT64_FORMAT " samples (%" G_GUINT64_FORMAT " running, %" G_GUINT64_FORMAT
        " idle) at %s Hz, %s %% complete, %s %% truncated, %s %% unknown, %s %% of frames named",
        shown, run->samples, run->running, run->idles, hz, complete, truncated, unknown, named);
    if (run->running > 0) {
        g_autofree char *quality = uprof_format_quality(run);
        uprof_say("%s: callers found: %s", shown, quality);
    }
    say_linux(run, shown);
    if (run->hold.count > 0) {
        g_autofree char *share = uprof_format_percent(uprof_run_held_ns(run), run->duration_ns);
        g_autofree char *p50 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 50));
        g_autofree char *p99 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 99));
        g_autofree char *max = uprof_format_ns(run->hold.max_ns);
        uprof_say("%s: each vCPU held %s %% of the time or less: median %s, p99 %s, longest %s",
                  shown, share, p50, p99, max);
    }
    say_hints(run, shown);
}

void
uprof_summary_say_untimed(const UprofProfile *profile, const char *shown)
{
    if (uprof_profile_n_untimed(profile) > 0)
        uprof_say(
            "virt-uprof: %s: files that keep the order of samples lack the last %" G_GUINT64_FORMAT
            " samples, because their times were not kept; use a shorter run or --capture",
            shown, uprof_profile_n_untimed(profile));
}
