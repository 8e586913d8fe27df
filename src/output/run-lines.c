/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/run-lines.h"

#include "uprof/clock.h"
#include "uprof/text.h"

#include <string.h>

enum {
    ONE_FRAME_PERCENT = 50,
    ONE_FRAME_STACKS_MIN = 30,
    UNSEEN_STACKS_MIN = 30,
    WELL_PERCENT = 99,     /* with a smaller share, the numbers behind it are shown */
    MISSED_PERCENT = 1,    /* the same, for samples that were missed */
    BUSY_HOST_PERCENT = 5, /* with so many missed samples the host is busy */
    XEN_SHARED_HZ =
        400, /* on a CPU that dom0 shares, a higher rate loses ticks: see find_advice() */
    TELLING_SAMPLES = 100, /* fewer samples of running vCPUs say little */
};

static GPtrArray *
new_lines(void)
{
    return g_ptr_array_new_with_free_func(g_free);
}

static void add_line(GPtrArray *lines, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
add_line(GPtrArray *lines, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    g_ptr_array_add(lines, g_strdup_vprintf(format, arguments));
    va_end(arguments);
}

/* Is @part at least @percent percent of @whole? */
static bool
is_share(uint64_t part, uint64_t whole, unsigned percent)
{
    return (unsigned __int128)part * 100 >= (unsigned __int128)whole * percent;
}

static const char *
name_hypervisor(const UprofRun *run)
{
    if (g_strcmp0(run->type, "kvm") == 0)
        return "QEMU/KVM";
    if (g_strcmp0(run->type, "qemu") == 0)
        return "QEMU (emulated)";
    return run->driver ? run->driver : "?";
}

/* Returns: (transfer full): when the run ends by itself */
static char *
format_limits(const UprofRun *run, unsigned samples)
{
    g_autofree char *time = uprof_format_ns(run->asked_ns);

    if (samples > 0)
        return run->asked_ns > 0 ? g_strdup_printf("for %u samples or %s", samples, time)
                                 : g_strdup_printf("for %u samples", samples);
    return run->asked_ns > 0 ? g_strdup_printf("for %s", time) : g_strdup("until stopped");
}

GPtrArray *
uprof_run_lines_start(const UprofRun *run, const char *shown, unsigned samples)
{
    GPtrArray *lines = new_lines();
    g_autofree char *hz = uprof_format_hz(run->rate_mhz);
    g_autofree char *limits = format_limits(run, samples);

    add_line(lines,
             "%s: %s, %s, %" G_GUINT64_FORMAT " vCPU%s, %s Hz %s, access %s. "
             "Ctrl-C stops early.",
             shown, name_hypervisor(run), run->arch, run->vcpus, run->vcpus == 1 ? "" : "s", hz,
             limits, run->access);
    /* On KVM access direct is faster, so this line says why it is not used. */
    if (g_strcmp0(run->type, "kvm") == 0 && g_strcmp0(run->access, "monitor") == 0)
        add_line(lines, "%s: access monitor: %s", shown, run->why);
    return lines;
}

static void
add_images(GPtrArray *lines, const UprofRun *run, const char *shown)
{
    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        if (image->is_module)
            continue;
        g_autofree char *path = uprof_text_quote(image->path);
        if (image->lines_hint)
            add_line(lines, "virt-uprof: %s: '%s': not all inlined functions are shown: %s", shown,
                     path, image->lines_hint);
        if (image->checked && !image->matched)
            add_line(lines,
                     "virt-uprof: %s: symbols of '%s' are ignored, because they do not match: %s",
                     shown, path, image->mismatch);
        else if (run->running >= UNSEEN_STACKS_MIN && image->n_seen == 0)
            add_line(lines,
                     "virt-uprof: %s: no sample is in the code of '%s'; if the file is right, its "
                     "load address may be missing (-s FILE@BASE)",
                     shown, path);
    }
}

static uint64_t
count_missed(const UprofRun *run)
{
    return run->late + run->busy + run->skipped + run->stuck;
}

/*
 * Xen lets a vCPU run for a millisecond before another vCPU gets the CPU (Xen,
 * docs/misc/xen-command-line.pandoc, sched_ratelimit_us).
 *
 * Returns: literal: why so many ticks were late, and what helps
 */
static const char *
find_advice(const UprofRun *run)
{
    if (g_strcmp0(run->access, "xen") != 0 || run->rate_mhz <= XEN_SHARED_HZ * 1000)
        return "; the host is busy";
    return "; the host is busy, or dom0 shares a CPU with the domain. Xen lets a vCPU run for a "
           "millisecond before dom0 gets the CPU: use -F 400, give dom0 a CPU of its own (xl "
           "vcpu-pin), or lower that time (xl sched-credit2 -s -r 100)";
}

static void
add_missed(GPtrArray *lines, const UprofRun *run, const char *shown)
{
    const struct {
        uint64_t n;
        const char *why;
    } reasons[] = {
        { run->late, "the host was late" },
        { run->stuck, "a vCPU did not stop in time" },
        { run->busy, "somebody else held the guest" },
        { run->skipped, "their analysis was late or failed" },
    };
    const uint64_t missed = count_missed(run), all = missed + run->samples;
    g_autoptr(GString) text = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(reasons); i++)
        if (reasons[i].n > 0)
            g_string_append_printf(text, "%s %" G_GUINT64_FORMAT " because %s",
                                   text->len > 0 ? "," : "", reasons[i].n, reasons[i].why);
    add_line(lines, "%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " samples missed:%s%s", shown,
             missed, all, text->str,
             is_share(run->late + run->stuck, all, BUSY_HOST_PERCENT) ? find_advice(run) : "");
}

static void
add_hints(GPtrArray *lines, const UprofRun *run, const char *shown, const UprofRunLinesHow *how)
{
    const uint64_t missed = count_missed(run);

    add_images(lines, run, shown);
    if (run->running >= ONE_FRAME_STACKS_MIN &&
        is_share(run->one_frame, run->running, ONE_FRAME_PERCENT))
        add_line(lines,
                 "virt-uprof: %s: %u %% of stacks have only one frame; unwind tables or the sizes "
                 "of symbols may be missing",
                 shown, (unsigned)(uprof_permille(run->one_frame, run->running) / 10));
    if (run->torn > 0)
        add_line(lines,
                 "virt-uprof: %s: %" G_GUINT64_FORMAT " stacks changed while they were read and "
                 "count as truncated",
                 shown, run->torn);
    if (missed > 0 && (how->is_verbose || is_share(missed, missed + run->samples, MISSED_PERCENT)))
        add_missed(lines, run, shown);
    if (how->is_live && run->running > 0 && run->running < TELLING_SAMPLES)
        add_line(lines,
                 "%s: %" G_GUINT64_FORMAT " samples of running vCPUs say little; use a longer -d%s",
                 shown, run->running, run->divisor > 1 ? "" : " or a higher -F");
}

static void
add_linux(GPtrArray *lines, const UprofRun *run, const char *shown)
{
    const UprofRunLinux *kernel = &run->kernel;

    if (!kernel->release) {
        if (kernel->why)
            add_line(lines, "%s: no Linux kernel was found in its memory: %s", shown, kernel->why);
        return;
    }
    g_autofree char *in_kernel =
        uprof_format_percent(kernel->kernel_complete, kernel->kernel_stacks);
    g_autofree char *in_user = uprof_format_percent(kernel->user_complete, kernel->user_stacks);
    add_line(lines,
             "%s: Linux %s: %" G_GUINT64_FORMAT " symbols and %" G_GUINT64_FORMAT
             " modules, %s unwind tables, %s; %s %% of stacks complete in the kernel, %s %% in "
             "user mode",
             shown, kernel->release, kernel->symbols, kernel->modules,
             kernel->rules > 0 ? "with" : "no",
             kernel->has_tasks ? "with processes" : "no processes", in_kernel, in_user);
}

/* Appends how many stacks are complete and how many names are found, if a vCPU ran. */
static void
append_quality(GString *line, const UprofRun *run, bool has_details)
{
    g_autofree char *complete = uprof_format_percent(run->complete, run->running);
    g_autofree char *truncated = uprof_format_percent(run->truncated, run->running);
    g_autofree char *unknown = uprof_format_percent(run->unknown, run->running);
    g_autofree char *named = uprof_format_percent(run->named, run->frames);

    if (run->running == 0)
        return;
    if (has_details)
        g_string_append_printf(line, ", %s %% complete, %s %% truncated, %s %% unknown", complete,
                               truncated, unknown);
    else if (run->complete == run->running)
        g_string_append(line, ", all stacks complete");
    else
        g_string_append_printf(line, ", %s %% of stacks complete", complete);
    if (!has_details && run->named == run->frames)
        g_string_append(line, ", all names found");
    else
        g_string_append_printf(line, ", %s %% of frames named", named);
}

static void
append_holds(GString *line, const UprofRun *run, bool has_details)
{
    g_autofree char *share = uprof_format_percent(uprof_run_held_ns(run), run->duration_ns);
    g_autofree char *p50 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 50));
    g_autofree char *p99 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 99));
    g_autofree char *max = uprof_format_ns(run->hold.max_ns);

    if (run->hold.count == 0)
        return;
    if (run->duration_ns > 0)
        g_string_append_printf(line, "; each vCPU held %s %% of the time or less: median %s", share,
                               p50);
    else
        g_string_append_printf(line, "; holds: median %s", p50);
    if (has_details)
        g_string_append_printf(line, ", p99 %s, longest %s", p99, max);
}

/* Where tasks waited: how often that was looked at, and how much of it is known. */
static void
add_waits(GPtrArray *lines, const UprofRunWaits *waits, const char *shown)
{
    g_autofree char *time = uprof_format_ns(waits->time_ns);
    g_autofree char *total = uprof_format_ns(waits->total_us * UPROF_NS_PER_US);
    g_autofree char *unknown = uprof_format_percent(waits->unknown_us, waits->total_us);

    if (waits->walks == 0)
        return;
    add_line(lines,
             "%s: waits: %" G_GUINT64_FORMAT " walks of %" G_GUINT64_FORMAT
             " tasks in %s: together they waited %s, %s %% of it in places that are not known",
             shown, waits->walks, waits->tasks / waits->walks, time, total, unknown);
    if (waits->incomplete > 0)
        add_line(lines,
                 "virt-uprof: %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                 " walks may lack tasks: the list was too long, or changed all the time",
                 shown, waits->incomplete, waits->walks);
}

GPtrArray *
uprof_run_lines_end(const UprofRun *run, const char *shown, const UprofRunLinesHow *how)
{
    GPtrArray *lines = new_lines();
    g_autoptr(GString) line = g_string_new(NULL);
    g_autofree char *hz = uprof_format_hz(uprof_run_got_mhz(run));
    const bool is_well = is_share(run->complete, run->running, WELL_PERCENT) &&
                         is_share(run->named, run->frames, WELL_PERCENT) &&
                         is_share(run->calls_agreed, run->calls_checked, WELL_PERCENT);
    const bool has_details = how->is_verbose || !is_well;

    g_string_append_printf(line, "%s: %" G_GUINT64_FORMAT " samples", shown, run->samples);
    if (run->running == 0)
        g_string_append(line, run->samples > 0 ? ", all idle" : "");
    else if (has_details || run->idles > 0)
        g_string_append_printf(line, " (%" G_GUINT64_FORMAT " running, %" G_GUINT64_FORMAT " idle)",
                               run->running, run->idles);
    if (run->duration_ns > 0) /* not known of a run that was killed */
        g_string_append_printf(line, " at %s Hz", hz);
    append_quality(line, run, has_details);
    append_holds(line, run, how->is_verbose);
    g_ptr_array_add(lines, g_strdup(line->str));
    if (run->running > 0 && has_details) {
        g_autofree char *quality = uprof_format_quality(run);
        add_line(lines, "%s: callers found: %s", shown, quality);
    }
    if (has_details)
        add_linux(lines, run, shown);
    add_waits(lines, &run->waits, shown);
    add_hints(lines, run, shown, how);
    return lines;
}

GPtrArray *
uprof_run_lines_untimed(const UprofProfile *profile, const char *shown)
{
    GPtrArray *lines = new_lines();

    if (uprof_profile_n_untimed(profile) > 0)
        add_line(lines,
                 "virt-uprof: %s: the order of samples in files lacks the last %" G_GUINT64_FORMAT
                 " samples, because their times were not kept; use a shorter run or --capture",
                 shown, uprof_profile_n_untimed(profile));
    return lines;
}
