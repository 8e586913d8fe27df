/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The sidecar, NAME.meta.json: the facts of a run for scripts. All numbers are integers. Members
 * are never renamed, and "version" rises when the meaning of a member changes.
 */
#include "json-priv.h"

#include "uprof/clock.h"
#include "uprof/json-writer.h"
#include "uprof/output.h"
#include "uprof/processes.h"
#include "uprof/text.h"

#include <string.h>

enum { SIDECAR_VERSION = 1 };

/* Strings of a run come from outside, so they are made valid text first. */
static void
write_text(UprofJsonWriter *json, const char *key, const char *text)
{
    g_autofree char *clean = uprof_text_quote(text);

    uprof_json_string(json, key, clean);
}

static void
write_counts(UprofJsonWriter *json, const char *key, const char *const *names,
             const uint64_t *values, unsigned n)
{
    uprof_json_begin(json, key, UPROF_JSON_OBJECT);
    for (unsigned i = 0; i < n; i++)
        uprof_json_uint(json, names[i], values[i]);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static uint64_t
convert_to_us(uint64_t ns)
{
    return (ns + UPROF_NS_PER_US / 2) / UPROF_NS_PER_US;
}

static void
write_histogram(UprofJsonWriter *json, const char *key, const UprofHistogram *histogram)
{
    static const char *const names[] = { "count", "min", "p50", "p90", "p99", "max", "total" };
    const uint64_t values[] = {
        histogram->count,
        convert_to_us(histogram->min_ns),
        convert_to_us(uprof_histogram_percentile(histogram, 50)),
        convert_to_us(uprof_histogram_percentile(histogram, 90)),
        convert_to_us(uprof_histogram_percentile(histogram, 99)),
        convert_to_us(histogram->max_ns),
        convert_to_us(histogram->total_ns),
    };

    write_counts(json, key, names, values, G_N_ELEMENTS(names));
}

static void
write_domain(UprofJsonWriter *json, const UprofRun *run)
{
    uprof_json_begin(json, "domain", UPROF_JSON_OBJECT);
    write_text(json, "name", run->domain);
    write_text(json, "uuid", run->uuid);
    write_text(json, "driver", run->driver);
    write_text(json, "type", run->type);
    write_text(json, "arch", run->arch);
    uprof_json_uint(json, "vcpus", run->vcpus);
    if (run->vcpus_sampled > 0)
        uprof_json_uint(json, "vcpus_sampled", run->vcpus_sampled);
    if (run->labels)
        write_text(json, "labels", run->labels);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_images(UprofJsonWriter *json, const UprofRun *run)
{
    uprof_json_begin(json, "images", UPROF_JSON_ARRAY);
    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        write_text(json, "name", image->label);
        write_text(json, "build_id", image->build_id);
        write_text(json, "symbols", image->path);
        write_text(json, "guest_path", image->guest_path);
        uprof_json_bool(json, "matched", image->matched);
        uprof_json_bool(json, "module", image->is_module);
        uprof_json_bool(json, "memory", image->is_from_memory);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

/* Writes nothing for a guest that does not run Linux. */
static void
write_linux(UprofJsonWriter *json, const UprofRunLinux *kernel)
{
    if (kernel->symbols == 0 && kernel->kernel_stacks == 0 && kernel->user_stacks == 0)
        return;
    uprof_json_begin(json, "linux", UPROF_JSON_OBJECT);
    uprof_json_uint(json, "symbols", kernel->symbols);
    uprof_json_uint(json, "modules", kernel->modules);
    uprof_json_uint(json, "orc_rules", kernel->rules);
    uprof_json_uint(json, "orc_version", kernel->rules_version);
    uprof_json_uint(json, "kernel_stacks", kernel->kernel_stacks);
    uprof_json_uint(json, "kernel_complete", kernel->kernel_complete);
    uprof_json_uint(json, "user_stacks", kernel->user_stacks);
    uprof_json_uint(json, "user_complete", kernel->user_complete);
    write_text(json, "release", kernel->release);
    uprof_json_bool(json, "btf", kernel->has_types);
    uprof_json_bool(json, "processes", kernel->has_tasks);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    uprof_json_break_line(json, "\n ");
}

/* Writes nothing for a run that counted no waits. */
static void
write_waits(UprofJsonWriter *json, const UprofRunWaits *waits)
{
    static const char *const names[] = { "walks",   "tasks",    "incomplete",
                                         "time_ms", "total_us", "unknown_us" };
    const uint64_t values[] = {
        waits->walks,    waits->tasks,      waits->incomplete, waits->time_ns / UPROF_NS_PER_MS,
        waits->total_us, waits->unknown_us,
    };

    if (waits->walks == 0)
        return;
    write_counts(json, "waits", names, values, G_N_ELEMENTS(names));
    uprof_json_break_line(json, "\n ");
}

/* Writes nothing for a run that is not a closed day. */
static void
write_slices(UprofJsonWriter *json, const UprofRun *run)
{
    if (run->slices->len == 0)
        return;
    uprof_json_begin(json, "slices", UPROF_JSON_ARRAY);
    json->is_compact = true;
    for (guint i = 0; i < run->slices->len; i++)
        uprof_json_uint(json, NULL, g_array_index(run->slices, uint32_t, i));
    json->is_compact = false;
    uprof_json_end(json, UPROF_JSON_ARRAY);
    write_text(json, "profile_sha256", run->profile_sha256);
    uprof_json_break_line(json, "\n ");
}

static void
write_files(UprofJsonWriter *json, const UprofRun *run, bool with_files)
{
    uprof_json_begin(json, "files", UPROF_JSON_ARRAY);
    for (guint i = 0; with_files && i < run->files->len; i++)
        write_text(json, NULL, g_ptr_array_index(run->files, i));
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

static void
write_access(UprofJsonWriter *json, const UprofRun *run)
{
    static const char *const rate[] = { "asked_millihertz", "got_millihertz", "divisor" };
    const uint64_t values[] = { run->rate_mhz, uprof_run_got_mhz(run), MAX(run->divisor, 1) };

    write_counts(json, "rate", rate, values, G_N_ELEMENTS(rate));
    write_text(json, "access", run->access);
    write_text(json, "access_why", run->why);
    write_text(json, "unwind", run->unwind);
    uprof_json_break_line(json, "\n ");
}

static void
write_samples(UprofJsonWriter *json, const UprofRun *run)
{
    static const char *const samples[] = { "total", "running", "idle" };

    write_counts(json, "samples", samples, (uint64_t[]){ run->samples, run->running, run->idles },
                 3);
}

static void
write_quality(UprofJsonWriter *json, const UprofRun *run)
{
    static const char *const ticks[] = { "late", "busy", "skipped", "stuck" };
    static const char *const stacks[] = { "complete", "truncated", "unknown" };
    static const char *const frames[] = { "total", "named", "orc", "cfi", "code", "fp" };
    static const char *const calls[] = { "checked", "agreed" };

    write_samples(json, run);
    write_counts(json, "ticks", ticks,
                 (uint64_t[]){ run->late, run->busy, run->skipped, run->stuck }, 4);
    uprof_json_break_line(json, "\n ");
    write_counts(json, "stacks", stacks,
                 (uint64_t[]){ run->complete, run->truncated, run->unknown }, 3);
    uprof_json_break_line(json, "\n ");
    write_counts(
        json, "frames", frames,
        (uint64_t[]){ run->frames, run->named, run->by_orc, run->by_cfi, run->by_code, run->by_fp },
        6);
    write_counts(json, "call_sites", calls, (uint64_t[]){ run->calls_checked, run->calls_agreed },
                 2);
    uprof_json_break_line(json, "\n ");
}

static uint64_t
find_share_ppm(uint64_t part_ns, uint64_t all_ns)
{
    return all_ns > 0 ? (uint64_t)((unsigned __int128)part_ns * 1000000 / all_ns) : 0;
}

static void
write_cost(UprofJsonWriter *json, const UprofRun *run)
{
    write_histogram(json, "hold_us", &run->hold);
    uprof_json_break_line(json, "\n ");
    write_histogram(json, "stopped_us", &run->stopped);
    uprof_json_break_line(json, "\n ");
    uprof_json_uint(json, "held_share_ppm",
                    find_share_ppm(uprof_run_held_ns(run), run->duration_ns));
    uprof_json_uint(json, "profiler_cpu_ms", run->cpu_ns / UPROF_NS_PER_MS);
    uprof_json_break_line(json, "\n ");
}

/*
 * The few facts of a file without a sidecar. pprof has a time and a rate. A script must not take
 * what is unknown for 0.
 */
static void
write_stacks_members(UprofJsonWriter *json, const UprofRun *run)
{
    static const char *const stacks[] = { "truncated" };
    static const char *const rate[] = { "asked_millihertz" };
    g_autofree char *started = uprof_clock_format_utc(run->started_utc_ns, FALSE);

    if (run->started_utc_ns > 0)
        uprof_json_string(json, "started", started);
    if (run->duration_ns > 0)
        uprof_json_uint(json, "duration_ms", run->duration_ns / UPROF_NS_PER_MS);
    if (run->rate_mhz > 0)
        write_counts(json, "rate", rate, (uint64_t[]){ run->rate_mhz }, 1);
    write_samples(json, run);
    write_counts(json, "stacks", stacks, (uint64_t[]){ run->truncated }, 1);
    uprof_json_break_line(json, "\n ");
}

static void
write_sampling_members(UprofJsonWriter *json, const UprofRun *run)
{
    g_autofree char *started = uprof_clock_format_utc(run->started_utc_ns, FALSE);

    uprof_json_string(json, "started", started);
    uprof_json_uint(json, "duration_ms", run->duration_ns / UPROF_NS_PER_MS);
    write_text(json, "ended_by", run->ended_by);
    if (run->trigger)
        write_text(json, "trigger", run->trigger);
    uprof_json_break_line(json, "\n ");
    write_access(json, run);
    write_quality(json, run);
    write_cost(json, run);
    write_linux(json, &run->kernel);
    write_waits(json, &run->waits);
}

/* @has_run: false if only the stacks of a run are known, and no facts of the run */
static void
write_run_members(UprofJsonWriter *json, const UprofRun *run, bool with_files, bool has_run)
{
    uprof_json_string(json, "format", "virt-uprof-run");
    uprof_json_uint(json, "version", SIDECAR_VERSION);
    write_text(json, "program", run->program);
    uprof_json_break_line(json, "\n ");
    write_domain(json, run);
    uprof_json_break_line(json, "\n ");
    if (has_run)
        write_sampling_members(json, run);
    else
        write_stacks_members(json, run);
    write_images(json, run);
    uprof_json_break_line(json, "\n ");
    write_slices(json, run);
    write_files(json, run, with_files);
}

void
uprof_json_write_run(UprofJsonWriter *json, const UprofRun *run)
{
    write_run_members(json, run, true, run->access != NULL);
}

static void
write_run(UprofJsonWriter *json, const char *key, const UprofRun *run, bool with_files,
          bool has_run)
{
    uprof_json_begin(json, key, UPROF_JSON_OBJECT);
    write_run_members(json, run, with_files, has_run);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

void
uprof_json_append_run(GString *out, const UprofRun *run, bool with_files)
{
    UprofJsonWriter json = { .out = out };

    write_run(&json, NULL, run, with_files, true);
    g_string_append_c(out, '\n');
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
write_relatives(UprofJsonWriter *json, const char *key, const GArray *rows)
{
    uprof_json_break_line(json, "\n  ");
    uprof_json_begin(json, key, UPROF_JSON_ARRAY);
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        write_text(json, "name", uprof_name_text(row->name));
        uprof_json_uint(json, "total", row->total);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

static void
write_focus(UprofJsonWriter *json, const UprofFocus *focus)
{
    uprof_json_break_line(json, "\n ");
    uprof_json_begin(json, "focus", UPROF_JSON_OBJECT);
    write_text(json, "name", uprof_name_text(focus->name));
    uprof_json_uint(json, "self", focus->self);
    uprof_json_uint(json, "total", focus->total);
    write_relatives(json, "callers", focus->callers);
    write_relatives(json, "callees", focus->callees);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

/* @self: the key for a row's own weight */
static void
write_rows(UprofJsonWriter *json, const char *key, const GArray *rows, const char *self)
{
    uprof_json_begin(json, key, UPROF_JSON_ARRAY);
    for (guint i = 0; i < rows->len; i++) {
        const UprofProfileRow *row = &g_array_index(rows, UprofProfileRow, i);
        uprof_json_break_line(json, "\n  ");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        write_text(json, "name", uprof_name_text(row->name));
        uprof_json_uint(json, self, row->self);
        uprof_json_uint(json, "total", row->total);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

/* The names of the lists of rows other than functions. */
static const char *const row_lists[] = {
    [UPROF_BY_VCPU] = "vcpus",
    [UPROF_BY_PROCESS] = "processes",
    [UPROF_BY_CGROUP] = "cgroups",
};

GString *
uprof_json_report(const UprofProfile *profile, const UprofRun *run, const UprofFocus *focus,
                  UprofRowsBy by)
{
    g_autoptr(GArray) functions = uprof_profile_rows(profile, NULL);
    g_autoptr(GArray) others = by != UPROF_BY_FUNCTION ? uprof_processes_find(profile, by) : NULL;
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_OBJECT);
    uprof_json_write_run(&json, run);
    uprof_json_break_line(&json, "\n ");
    uprof_json_uint(&json, "weight", uprof_profile_total(profile));
    write_rows(&json, "functions", functions, "self");
    if (others) {
        uprof_json_break_line(&json, "\n ");
        write_rows(&json, row_lists[by], others, "kernel");
    }
    if (focus)
        write_focus(&json, focus);
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    g_string_append_c(out, '\n');
    return out;
}

static void
write_change_row(UprofJsonWriter *json, const UprofChangeRow *row)
{
    uprof_json_break_line(json, "\n  ");
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    write_text(json, "name", uprof_name_text(row->name));
    uprof_json_uint(json, "old_self", row->self[UPROF_OLD]);
    uprof_json_uint(json, "new_self", row->self[UPROF_NEW]);
    uprof_json_uint(json, "old_total", row->total[UPROF_OLD]);
    uprof_json_uint(json, "new_total", row->total[UPROF_NEW]);
    uprof_json_int(json, "self_change_ppm", row->own.ppm);
    uprof_json_int(json, "total_change_ppm", row->inclusive.ppm);
    uprof_json_bool(json, "self_significant", row->own.is_significant);
    uprof_json_bool(json, "total_significant", row->inclusive.is_significant);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

GString *
uprof_json_changes(const UprofTree *both, const UprofRun *old, const UprofRun *new)
{
    g_autoptr(GArray) rows = uprof_change_rows(both);
    const uint64_t *all = uprof_tree_node(both, 0)->total;
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(&json, "format", "virt-uprof-diff");
    uprof_json_uint(&json, "version", 1);
    uprof_json_uint(&json, "old_total", all[UPROF_OLD]);
    uprof_json_uint(&json, "new_total", all[UPROF_NEW]);
    uprof_json_break_line(&json, "\n ");
    write_run(&json, "old", old, false, old->access != NULL);
    uprof_json_break_line(&json, "\n ");
    write_run(&json, "new", new, false, new->access != NULL);
    uprof_json_break_line(&json, "\n ");
    uprof_json_begin(&json, "functions", UPROF_JSON_ARRAY);
    for (guint i = 0; i < rows->len; i++)
        write_change_row(&json, &g_array_index(rows, UprofChangeRow, i));
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    g_string_append_c(out, '\n');
    return out;
}
