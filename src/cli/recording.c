/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording-priv.h"

#include "summary-priv.h"
#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_USUAL = 10 };

/* One file that is to be written at the end. */
typedef struct {
    UprofFile *file;
    const UprofFormat *format;
} Output;

void
uprof_recording_free(UprofRecording *recording)
{
    uprof_loop_free(recording->loop);
    for (guint i = 0; i < recording->outputs->len; i++)
        uprof_file_abort(g_array_index(recording->outputs, Output, i).file);
    g_array_unref(recording->outputs);
    uprof_session_close(recording->session);
    uprof_writer_free(recording->writer);
    uprof_file_abort(recording->capture);
    g_clear_error(&recording->capture_error);
    g_free(recording);
}

/* %d safe domain name, %u UUID, %t start in UTC, %% a percent sign */
static char *
expand_path(const UprofDomain *domain, const char *time, const char *path)
{
    GString *expanded = g_string_new(NULL);
    g_autofree char *name = uprof_text_file_name(domain->name, domain->uuid);

    for (const char *at = path; *at; at++) {
        if (*at != '%' || !at[1]) {
            g_string_append_c(expanded, *at);
            continue;
        }
        switch (*++at) {
        case 'd':
            g_string_append(expanded, name);
            break;
        case 'u':
            g_string_append(expanded, domain->uuid);
            break;
        case 't':
            g_string_append(expanded, time);
            break;
        case '%':
            g_string_append_c(expanded, '%');
            break;
        default:
            g_string_append_c(expanded, '%');
            g_string_append_c(expanded, *at);
        }
    }
    return g_string_free(expanded, FALSE);
}

static bool
open_output(UprofRecording *recording, const char *path, const UprofFormat *format, bool in_store,
            GError **error)
{
    Output output = { .format = format };

    if (format->is_binary && strcmp(path, "-") == 0 && isatty(STDOUT_FILENO)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "format '%s' is nothing for a terminal",
                    format->name);
        return false;
    }
    output.file = in_store ? uprof_file_open_own(path, error)
                           : uprof_file_open(path, format->is_secret, error);
    if (!output.file)
        return false;
    if (format->is_capture) {
        uprof_file_abort(recording->capture);
        recording->capture = output.file;
        recording->writer = uprof_writer_new(uprof_file_fd(output.file));
        return true;
    }
    g_array_append_val(recording->outputs, output);
    return true;
}

static bool
open_outputs(UprofRecording *recording, const UprofDomain *domain, const UprofOptions *options,
             const char *time, GError **error)
{
    bool has_profile = false;

    if (options->is_top)
        return true;
    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        g_autofree char *path = expand_path(domain, time, wanted->path);
        if (!open_output(recording, path, wanted->format, options->in_store, error))
            return false;
        has_profile = true;
    }
    if (options->json)
        return open_output(recording, "-", &uprof_format_meta, false, error);
    if (has_profile)
        return true;
    if (options->format || !isatty(STDOUT_FILENO))
        return open_output(recording, "-", options->format ? options->format : &uprof_format_folded,
                           false, error);
    g_autofree char *name = uprof_text_file_name(domain->name, domain->uuid);
    g_autofree char *stem = g_strdup_printf("%s-%s", name, time);
    g_autofree char *path = uprof_file_unused_path(stem, ".svg");
    recording->table = true;
    return open_output(recording, path, &uprof_format_svg, false, error);
}

static bool
wants_times(const UprofRecording *recording)
{
    for (guint i = 0; i < recording->outputs->len; i++)
        if (g_array_index(recording->outputs, Output, i).format->is_timed)
            return true;
    return false;
}

static void
note_files(UprofRecording *recording)
{
    GPtrArray *files = recording->session->run->files;

    for (guint i = 0; i < recording->outputs->len; i++) {
        const UprofFile *file = g_array_index(recording->outputs, Output, i).file;
        if (!uprof_file_is_stdout(file))
            g_ptr_array_add(files, g_path_get_basename(uprof_file_path(file)));
    }
    if (recording->capture)
        g_ptr_array_add(files, g_path_get_basename(uprof_file_path(recording->capture)));
}

UprofRecording *
uprof_recording_open(UprofDomain *domain, const UprofOptions *options, const char *time,
                     UprofGuardian *guardian, UprofRing *ring, bool wait, bool *locked,
                     GError **error)
{
    UprofRecording *recording = g_new0(UprofRecording, 1);

    *locked = false;
    recording->outputs = g_array_new(FALSE, FALSE, sizeof(Output));
    bool ok = open_outputs(recording, domain, options, time, error);
    if (!ok) {
        uprof_domain_free(domain);
    } else {
        recording->session =
            uprof_session_open(domain, options, guardian, false, wait, locked, error);
        ok = recording->session && uprof_session_prepare(recording->session, options,
                                                         recording->writer, ring, recording, error);
    }
    if (!ok) {
        uprof_recording_free(recording);
        return NULL;
    }
    if (wants_times(recording))
        uprof_profile_keep_times(recording->session->pipeline->profile);
    note_files(recording);
    return recording;
}

void
uprof_recording_start(UprofRecording *recording, UprofLoop *shared)
{
    UprofSession *session = recording->session;
    UprofLoop *loop = shared;

    if (session->guest->grain != UPROF_GRAIN_VCPU)
        loop = recording->loop = uprof_loop_new();
    if (!recording->has_fallen_back) {
        uprof_session_prime(session);
        session->run->started_utc_ns = uprof_clock_utc_ns();
    }
    uprof_loop_add(loop, session->sampler);
}

void
uprof_recording_take(UprofRecording *recording, const UprofSnapshot *snapshot)
{
    UprofPipeline *pipeline = recording->session->pipeline;
    g_autoptr(GError) error = NULL;

    if (uprof_pipeline_take(pipeline, snapshot, &error) || !pipeline->writer)
        return;
    /* the profile goes on without its capture */
    recording->capture_error = g_steal_pointer(&error);
    pipeline->writer = NULL;
}

void
uprof_recording_say_rate(UprofRecording *recording, const UprofSamplerCounts *counts)
{
    const UprofSession *session = recording->session;

    /* it may go up and down; each new low is said */
    if ((counts->probe_ns == 0 && counts->n_holds == 0) || counts->stride <= recording->said_stride)
        return;
    const bool is_first = recording->said_stride == 0;
    recording->said_stride = counts->stride;
    if (is_first && counts->divisor * counts->stride == 1)
        return;
    const uint64_t divisor = counts->divisor * counts->stride * MAX(session->before.divisor, 1);
    /* at first by what the trial holds took, later by what all have taken */
    const uint64_t hold_ns = is_first && counts->probe_ns > 0
                                 ? counts->probe_ns
                                 : counts->held_ns / MAX(counts->n_holds, 1);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);
    g_autofree char *hold = uprof_format_ns(hold_ns);
    g_autofree char *asked = uprof_format_hz(session->run->rate_mhz);
    g_autofree char *got = uprof_format_hz(session->run->rate_mhz / divisor);
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    uprof_say(
        "virt-uprof: %s: each sample stops %s %s; rate lowered from %s to %s Hz (--budget %s)",
        session->shown, session->guest->grain == UPROF_GRAIN_VCPU ? "a vCPU" : "the guest", hold,
        asked, got, budget);
}

void
uprof_recording_say_hindrance(UprofRecording *recording)
{
    static const char *const texts[] = {
        [UPROF_HINDRANCE_PAUSED] = "it is paused",
        [UPROF_HINDRANCE_JOB] = "libvirt migrates, saves, dumps or copies it",
        [UPROF_HINDRANCE_STOPPED] = "a signal has stopped its QEMU",
        [UPROF_HINDRANCE_TRACED] = "another process traces its QEMU",
    };
    UprofGuest *guest = recording->session->guest;
    const gint hindrance = g_atomic_int_get(&guest->hindrance);
    g_autofree char *who = NULL;

    if (hindrance == recording->said_hindrance)
        return;
    recording->said_hindrance = hindrance;
    if (hindrance == UPROF_HINDRANCE_NONE)
        return;
    if (hindrance == UPROF_HINDRANCE_TRACED)
        who = g_strdup_printf(" (process %d)", g_atomic_int_get(&guest->tracer));
    uprof_say("virt-uprof: %s: %s%s, not by us; its ticks are skipped until that ends",
              recording->session->shown, texts[hindrance], who ? who : "");
}

static const char *
name_end(const UprofSamplerCounts *counts)
{
    static const char *const names[] = {
        [UPROF_SAMPLER_DURATION] = "duration", [UPROF_SAMPLER_STOPPED] = "signal",
        [UPROF_SAMPLER_GONE] = "gone",         [UPROF_SAMPLER_ERROR] = "error",
        [UPROF_SAMPLER_STUCK] = "error",       [UPROF_SAMPLER_RUNNING] = "error",
    };

    return names[counts->end];
}

void
uprof_recording_end(UprofRecording *recording, unsigned n_recordings)
{
    UprofSession *session = recording->session;
    UprofRun *run = session->run;
    UprofSamplerCounts counts;

    uprof_session_note_counts(session, &counts);
    g_autoptr(GError) error = uprof_sampler_take_error(session->sampler);
    run->ended_by = g_strdup(name_end(&counts));
    run->cpu_ns = uprof_clock_cpu_ns() / n_recordings;
    uprof_pipeline_end(session->pipeline);
    if (error) {
        recording->code = uprof_exit_worse(recording->code, uprof_exit_code(error));
        uprof_say("virt-uprof: %s: sampling ended early: %s", session->shown, error->message);
    } else if (counts.end == UPROF_SAMPLER_GONE) {
        uprof_say("virt-uprof: %s: the domain ended in mid-run; its samples stand", session->shown);
    } else if (counts.end == UPROF_SAMPLER_STUCK) {
        recording->code = uprof_exit_worse(recording->code, UPROF_EXIT_FAILED);
        uprof_say("virt-uprof: %s: sampling ended early: a vCPU thread did not stop in time, "
                  "again and again; try --access monitor",
                  session->shown);
    }
}

/* A closed stdout needs no words; the exit code says it. */
static void
say_output_error(UprofRecording *recording, const UprofFile *file, const GError *error)
{
    recording->code = uprof_exit_worse(recording->code, UPROF_EXIT_FAILED);
    if (!(file && uprof_file_is_closed(file)))
        uprof_say_error(error);
}

static void
write_capture(UprofRecording *recording, bool quiet)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = NULL;

    if (!recording->capture)
        return;
    path = uprof_text_quote(uprof_file_path(recording->capture));
    bool ok = !recording->capture_error;
    if (!ok)
        g_propagate_error(&error, g_steal_pointer(&recording->capture_error));
    ok = ok && uprof_writer_end(recording->writer, recording->session->run, &error) &&
         uprof_writer_flush(recording->writer, &error);
    if (ok)
        ok = uprof_file_commit(g_steal_pointer(&recording->capture), &error);
    if (!ok) {
        g_prefix_error(&error, "no capture '%s': ", path);
        say_output_error(recording, NULL, error);
    } else if (!quiet) {
        uprof_say("wrote %s", path);
    }
}

/* Returns: false if it could not be written */
static bool
write_output(UprofRecording *recording, Output *output, bool quiet)
{
    const UprofSession *session = recording->session;
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofFile) file = g_steal_pointer(&output->file);
    g_autofree char *path = uprof_text_quote(uprof_file_path(file));
    const bool is_stdout = uprof_file_is_stdout(file);

    if (!uprof_output_write(output->format, session->pipeline->profile, session->run, file,
                            &error)) {
        say_output_error(recording, file, error);
        return false;
    }
    if (!uprof_file_commit(g_steal_pointer(&file), &error)) {
        say_output_error(recording, NULL, error);
        return false;
    }
    if (!is_stdout && !quiet)
        uprof_say("wrote %s", path);
    return true;
}

static void
write_table(UprofRecording *recording, unsigned rows)
{
    const UprofTableStyle style = uprof_terminal_style(rows > 0 ? rows : ROWS_USUAL);

    if (recording->table)
        recording->code =
            uprof_exit_worse(recording->code, uprof_terminal_print(uprof_table_render(
                                                  recording->session->pipeline->profile, &style)));
}

void
uprof_recording_save(UprofRecording *recording, const UprofOptions *options)
{
    UprofRun *run = recording->session->run;
    const bool quiet = options->quiet;

    if (!quiet)
        uprof_summary_say_end(run, recording->session->shown);
    if (options->verbose) {
        for (unsigned i = 0; i < UPROF_N_ENDS; i++)
            if (recording->session->pipeline->ends[i] > 0)
                uprof_say("%s: %" G_GUINT64_FORMAT " stacks end: %s", recording->session->shown,
                          recording->session->pipeline->ends[i], uprof_end_name((UprofEnd)i));
    }
    if (run->samples == 0) {
        uprof_say("virt-uprof: %s: no sample was taken%s", recording->session->shown,
                  run->busy > 0 ? ": it was stopped or moved by others all the time" : "");
        recording->code = uprof_exit_worse(recording->code, UPROF_EXIT_USELESS);
        return;
    }
    if (run->running == 0 && !run->idle && !quiet)
        uprof_say("virt-uprof: %s: it was idle all the time; --idle shows that as a stack",
                  recording->session->shown);
    uprof_summary_say_untimed(recording->session->pipeline->profile, recording->session->shown);
    write_table(recording, options->rows);
    write_capture(recording, quiet);
    for (guint i = 0; i < recording->outputs->len; i++)
        if (!write_output(recording, &g_array_index(recording->outputs, Output, i), quiet) &&
            options->in_store)
            break;
}
