/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sidecar, NAME.meta.json: the facts of a run for scripts. Integers only;
 * members are never renamed, and "version" rises when a meaning changes.
 */
#include "uprof/output.h"

#include "json-priv.h"
#include "uprof/clock.h"
#include "uprof/processes.h"
#include "uprof/text.h"

#include <string.h>

enum { SIDECAR_VERSION = 1 };

/* Strings of a run come from outside: made valid text, then escaped. */
static void
append_string(GString *out, const char *text)
{
    g_autofree char *clean = uprof_text_quote(text);

    g_string_append_c(out, '"');
    uprof_text_append_json(out, clean);
    g_string_append_c(out, '"');
}

static void
append_member(GString *out, const char *key, const char *text)
{
    g_string_append_printf(out, "\"%s\": ", key);
    append_string(out, text ? text : "");
}

static void
append_count(GString *out, const char *key, uint64_t value)
{
    g_string_append_printf(out, "\"%s\": %" G_GUINT64_FORMAT, key, value);
}

static void
append_counts(GString *out, const char *key, const char *const *names, const uint64_t *values,
              unsigned n)
{
    g_string_append_printf(out, "\"%s\": {", key);
    for (unsigned i = 0; i < n; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        append_count(out, names[i], values[i]);
    }
    g_string_append(out, "}");
}

static uint64_t
to_us(uint64_t ns)
{
    return (ns + UPROF_NS_PER_US / 2) / UPROF_NS_PER_US;
}

static void
append_histogram(GString *out, const char *key, const UprofHistogram *histogram)
{
    static const char *const names[] = { "count", "min", "p50", "p90", "p99", "max", "total" };
    const uint64_t values[] = {
        histogram->count,
        to_us(histogram->min_ns),
        to_us(uprof_histogram_percentile(histogram, 50)),
        to_us(uprof_histogram_percentile(histogram, 90)),
        to_us(uprof_histogram_percentile(histogram, 99)),
        to_us(histogram->max_ns),
        to_us(histogram->total_ns),
    };

    append_counts(out, key, names, values, G_N_ELEMENTS(names));
}

static void
append_domain(GString *out, const UprofRun *run)
{
    g_string_append(out, "\"domain\": {");
    append_member(out, "name", run->domain);
    g_string_append(out, ", ");
    append_member(out, "uuid", run->uuid);
    g_string_append(out, ", ");
    append_member(out, "driver", run->driver);
    g_string_append(out, ", ");
    append_member(out, "arch", run->arch);
    g_string_append(out, ", ");
    append_count(out, "vcpus", run->vcpus);
    g_string_append(out, "},\n ");
}

static void
append_images(GString *out, const UprofRun *run)
{
    g_string_append(out, "\"images\": [");
    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        g_string_append(out, i > 0 ? ", {" : "{");
        append_member(out, "name", image->label);
        g_string_append(out, ", ");
        append_member(out, "build_id", image->build_id);
        g_string_append(out, ", ");
        append_member(out, "symbols", image->path);
        g_string_append_printf(out, ", \"matched\": %s, \"module\": %s}",
                               image->matched ? "true" : "false",
                               image->is_module ? "true" : "false");
    }
    g_string_append(out, "],\n ");
}

/* Of a Linux guest alone. */
static void
append_linux(GString *out, const UprofRunLinux *kernel)
{
    static const char *const names[] = {
        "symbols",       "modules",         "orc_rules",   "orc_version",
        "kernel_stacks", "kernel_complete", "user_stacks", "user_complete",
    };
    const uint64_t values[] = {
        kernel->symbols,       kernel->modules,         kernel->rules,       kernel->rules_version,
        kernel->kernel_stacks, kernel->kernel_complete, kernel->user_stacks, kernel->user_complete,
    };

    if (kernel->symbols == 0 && kernel->kernel_stacks == 0 && kernel->user_stacks == 0)
        return;
    append_counts(out, "linux", names, values, G_N_ELEMENTS(names));
    g_string_truncate(out, out->len - 1); /* the brace */
    g_string_append(out, ", ");
    append_member(out, "release", kernel->release);
    g_string_append_printf(out, ", \"btf\": %s, \"processes\": %s},\n ",
                           kernel->has_types ? "true" : "false",
                           kernel->has_tasks ? "true" : "false");
}

/* Of a closed day alone. */
static void
append_slices(GString *out, const UprofRun *run)
{
    if (run->slices->len == 0)
        return;
    g_string_append(out, "\"slices\": [");
    for (guint i = 0; i < run->slices->len; i++)
        g_string_append_printf(out, "%s%u", i > 0 ? "," : "",
                               g_array_index(run->slices, uint32_t, i));
    g_string_append(out, "], ");
    append_member(out, "profile_sha256", run->profile_sha256);
    g_string_append(out, ",\n ");
}

static void
append_files(GString *out, const UprofRun *run)
{
    g_string_append(out, "\"files\": [");
    for (guint i = 0; i < run->files->len; i++) {
        g_string_append(out, i > 0 ? ", " : "");
        append_string(out, g_ptr_array_index(run->files, i));
    }
    g_string_append(out, "]");
}

static void
append_numbers(GString *out, const UprofRun *run)
{
    static const char *const rate[] = { "asked_millihertz", "got_millihertz" };
    static const char *const samples[] = { "total", "running", "idle" };
    static const char *const ticks[] = { "late", "busy", "skipped", "stuck" };
    static const char *const stacks[] = { "complete", "truncated", "unknown" };
    static const char *const frames[] = { "total", "named", "orc", "cfi", "leaf", "fp" };
    static const char *const calls[] = { "checked", "agreed" };

    append_counts(out, "rate", rate, (uint64_t[]){ run->rate_mhz, uprof_run_got_mhz(run) }, 2);
    g_string_append(out, ", ");
    append_member(out, "access", run->access);
    g_string_append(out, ", ");
    append_member(out, "access_why", run->why);
    g_string_append(out, ", ");
    append_member(out, "unwind", run->unwind);
    g_string_append(out, ",\n ");
    append_counts(out, "samples", samples, (uint64_t[]){ run->samples, run->running, run->idles },
                  3);
    g_string_append(out, ", ");
    append_counts(out, "ticks", ticks,
                  (uint64_t[]){ run->late, run->busy, run->skipped, run->stuck }, 4);
    g_string_append(out, ",\n ");
    append_counts(out, "stacks", stacks,
                  (uint64_t[]){ run->complete, run->truncated, run->unknown }, 3);
    g_string_append(out, ",\n ");
    append_counts(
        out, "frames", frames,
        (uint64_t[]){ run->frames, run->named, run->by_orc, run->by_cfi, run->by_leaf, run->by_fp },
        6);
    g_string_append(out, ", ");
    append_counts(out, "call_sites", calls, (uint64_t[]){ run->calls_checked, run->calls_agreed },
                  2);
    g_string_append(out, ",\n ");
}

static uint64_t
find_share_ppm(uint64_t part_ns, uint64_t whole_ns)
{
    return whole_ns > 0 ? (uint64_t)((unsigned __int128)part_ns * 1000000 / whole_ns) : 0;
}

void
uprof_json_append_run(GString *out, const UprofRun *run, bool with_files)
{
    g_autofree char *started = uprof_clock_format_utc(run->started_utc_ns, FALSE);

    g_string_append_printf(out, "{\"format\": \"virt-uprof-run\", \"version\": %d, ",
                           SIDECAR_VERSION);
    append_member(out, "program", run->program);
    g_string_append(out, ",\n ");
    append_domain(out, run);
    append_member(out, "started", started);
    g_string_append(out, ", ");
    append_count(out, "duration_ms", run->duration_ns / UPROF_NS_PER_MS);
    g_string_append(out, ", ");
    append_member(out, "ended_by", run->ended_by);
    g_string_append(out, ",\n ");
    append_numbers(out, run);
    append_histogram(out, "hold_us", &run->hold);
    g_string_append(out, ",\n ");
    append_histogram(out, "stopped_us", &run->stopped);
    g_string_append(out, ",\n ");
    append_count(out, "held_share_ppm", find_share_ppm(uprof_run_held_ns(run), run->duration_ns));
    g_string_append(out, ", ");
    append_count(out, "profiler_cpu_ms", run->cpu_ns / UPROF_NS_PER_MS);
    g_string_append(out, ",\n ");
    append_linux(out, &run->kernel);
    append_images(out, run);
    append_slices(out, run);
    if (with_files)
        append_files(out, run);
    else
        g_string_append(out, "\"files\": []");
    g_string_append(out, "}\n");
}

static void
meta_write(const UprofProfile *profile, const UprofRun *run, UprofSink *sink)
{
    uprof_json_append_run(sink->text, run, true);
}

const UprofFormat uprof_format_meta = {
    .name = "meta",
    .suffixes = { ".meta.json" },
    .write = meta_write,
};

/* ---- Tables for scripts ---- */

static void
append_relatives(GString *out, const char *key, const GArray *rows)
{
    g_string_append_printf(out, ",\n  \"%s\": [", key);
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        g_string_append(out, i > 0 ? ", {" : "{");
        append_member(out, "name", uprof_name_text(row->name));
        g_string_append(out, ", ");
        append_count(out, "total", row->total);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
}

static void
append_focus(GString *out, const UprofFocus *focus)
{
    g_string_append(out, ",\n \"focus\": {");
    append_member(out, "name", uprof_name_text(focus->name));
    g_string_append(out, ", ");
    append_count(out, "self", focus->self);
    g_string_append(out, ", ");
    append_count(out, "total", focus->total);
    append_relatives(out, "callers", focus->callers);
    append_relatives(out, "callees", focus->callees);
    g_string_append_c(out, '}');
}

static void
append_side(GString *out, const char *key, const UprofRun *run)
{
    g_string_append_printf(out, ",\n \"%s\": ", key);
    uprof_json_append_run(out, run, false);
    g_string_truncate(out, out->len - 1); /* the line end */
}

/* @self: what weight of a row's own is called */
static void
append_rows(GString *out, const char *key, const GArray *rows, const char *self)
{
    g_string_append_printf(out, "\"%s\": [", key);
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        g_string_append(out, i > 0 ? ",\n  {" : "\n  {");
        append_member(out, "name", uprof_name_text(row->name));
        g_string_append(out, ", ");
        append_count(out, self, row->self);
        g_string_append(out, ", ");
        append_count(out, "total", row->total);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
}

GString *
uprof_json_report(const UprofProfile *profile, const UprofRun *run, const UprofFocus *focus,
                  bool by_process)
{
    g_autoptr(GArray) functions = uprof_profile_rows(profile, NULL);
    g_autoptr(GArray) processes = by_process ? uprof_processes_find(profile) : NULL;
    GString *out = g_string_new(NULL);

    uprof_json_append_run(out, run, true);
    g_string_truncate(out, out->len - strlen("}\n"));
    g_string_append(out, ",\n ");
    append_count(out, "weight", uprof_profile_total(profile));
    g_string_append(out, ", ");
    append_rows(out, "functions", functions, "self");
    if (processes) {
        g_string_append(out, ",\n ");
        append_rows(out, "processes", processes, "kernel");
    }
    if (focus)
        append_focus(out, focus);
    g_string_append(out, "}\n");
    return out;
}

static void
append_change_row(GString *out, const UprofChangeRow *row)
{
    static const char *const weights[] = { "old_self", "new_self", "old_total", "new_total" };
    const uint64_t values[] = { row->self[UPROF_OLD], row->self[UPROF_NEW], row->total[UPROF_OLD],
                                row->total[UPROF_NEW] };

    append_member(out, "name", uprof_name_text(row->name));
    for (size_t i = 0; i < G_N_ELEMENTS(weights); i++) {
        g_string_append(out, ", ");
        append_count(out, weights[i], values[i]);
    }
    g_string_append_printf(
        out,
        ", \"self_change_ppm\": %" G_GINT64_FORMAT ", \"total_change_ppm\": %" G_GINT64_FORMAT
        ", \"self_significant\": %s, \"total_significant\": %s",
        row->own.ppm, row->inclusive.ppm, row->own.is_significant ? "true" : "false",
        row->inclusive.is_significant ? "true" : "false");
}

GString *
uprof_json_changes(const UprofTree *both, const UprofRun *old, const UprofRun *new)
{
    g_autoptr(GArray) rows = uprof_change_rows(both);
    const uint64_t *all = uprof_tree_node(both, 0)->total;
    GString *out = g_string_new("{\"format\": \"virt-uprof-diff\", \"version\": 1, ");

    append_count(out, "old_total", all[UPROF_OLD]);
    g_string_append(out, ", ");
    append_count(out, "new_total", all[UPROF_NEW]);
    append_side(out, "old", old);
    append_side(out, "new", new);
    g_string_append(out, ",\n \"functions\": [");
    for (guint i = 0; i < rows->len; i++) {
        g_string_append(out, i > 0 ? ",\n  {" : "\n  {");
        append_change_row(out, &g_array_index(rows, UprofChangeRow, i));
        g_string_append_c(out, '}');
    }
    g_string_append(out, "]}\n");
    return out;
}
