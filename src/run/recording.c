/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording-priv.h"

#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/text.h"

#include "session-priv.h"

#include <string.h>

/* A file to write at the end of the run. */
typedef struct {
    UprofFile *file;           /* (nullable): owned; %NULL after the file is written */
    const UprofFormat *format; /* borrowed */
} Output;

void
uprof_recording_free(UprofRecording *recording)
{
    if (!recording)
        return;
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

/* Replaces %d by the safe domain name, %u by the UUID, %t by @time, and %% by a percent sign. */
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

static char *
choose_path(const UprofDomain *domain, const char *time, const UprofOutputRequest *request)
{
    const char *suffix = request->is_unused_name ? strrchr(request->path, '.') : NULL;

    if (!suffix)
        return expand_path(domain, time, request->path);
    g_autofree char *stem = g_strndup(request->path, (gsize)(suffix - request->path));
    g_autofree char *expanded = expand_path(domain, time, stem);
    return uprof_file_unused_path(expanded, suffix);
}

static bool
open_output(UprofRecording *recording, const char *path, const UprofFormat *format, bool in_store,
            GError **error)
{
    Output output = { .format = format };

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
open_outputs(UprofRecording *recording, const UprofDomain *domain,
             const UprofRecordingSettings *settings, GError **error)
{
    for (guint i = 0; i < settings->outputs->len; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(settings->outputs, i);
        g_autofree char *path = choose_path(domain, settings->time, request);
        if (!open_output(recording, path, request->format, settings->in_store, error))
            return false;
    }
    return true;
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
uprof_recording_open(UprofDomain *domain, const UprofRecordingSettings *settings,
                     UprofGuardian *guardian, UprofRing *ring, UprofSessionFlags flags,
                     GError **error)
{
    g_autoptr(UprofRecording) recording = g_new0(UprofRecording, 1);

    recording->notices = settings->session->notices;
    recording->stops_at_failure = settings->in_store;
    recording->outputs = g_array_new(FALSE, FALSE, sizeof(Output));
    if (!open_outputs(recording, domain, settings, error)) {
        uprof_domain_free(domain);
        return NULL;
    }
    recording->session = uprof_session_open(domain, settings->session, guardian, flags, error);
    if (!recording->session ||
        !uprof_session_prepare(recording->session, recording->writer, ring, recording, error))
        return NULL;
    if (wants_times(recording))
        uprof_profile_keep_times(recording->session->pipeline->profile);
    note_files(recording);
    return g_steal_pointer(&recording);
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
    /* the run continues without the capture */
    recording->capture_error = g_steal_pointer(&error);
    pipeline->writer = NULL;
}

void
uprof_recording_report_rate(UprofRecording *recording, const UprofSamplerCounts *counts)
{
    const UprofSession *session = recording->session;

    /* the rate can rise and fall: report only a rate that is lower than all before */
    if ((counts->probe_ns == 0 && counts->n_holds == 0) ||
        counts->stride <= recording->reported_stride)
        return;
    const bool is_first = recording->reported_stride == 0;
    recording->reported_stride = counts->stride;
    if (is_first && counts->divisor * counts->stride == 1)
        return;
    const uint64_t divisor =
        counts->divisor * counts->stride * MAX(session->counts_before.divisor, 1);
    /* the first notice shows the median of the trial holds, later ones the mean of all holds */
    const uint64_t hold_ns = is_first && counts->probe_ns > 0
                                 ? counts->probe_ns
                                 : counts->held_ns / MAX(counts->n_holds, 1);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);
    g_autofree char *hold = uprof_format_ns(hold_ns);
    g_autofree char *asked = uprof_format_hz(session->run->rate_mhz);
    g_autofree char *got = uprof_format_hz(session->run->rate_mhz / divisor);
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    uprof_notice(recording->notices, UPROF_NOTICE_HINT,
                 "%s: each sample stops %s %s; rate lowered from %s to %s Hz (--budget %s)",
                 session->shown, session->guest->grain == UPROF_GRAIN_VCPU ? "a vCPU" : "the guest",
                 hold, asked, got, budget);
}

void
uprof_recording_report_hindrance(UprofRecording *recording)
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

    if (hindrance == recording->reported_hindrance)
        return;
    recording->reported_hindrance = hindrance;
    if (hindrance == UPROF_HINDRANCE_NONE)
        return;
    if (hindrance == UPROF_HINDRANCE_TRACED)
        who = g_strdup_printf(" (process %d)", g_atomic_int_get(&guest->tracer));
    uprof_notice(recording->notices, UPROF_NOTICE_HINT,
                 "%s: %s%s, not by virt-uprof; no samples until that ends",
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
        recording->code = uprof_error_merge(recording->code, uprof_error_code_of(error));
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING, "%s: sampling ended early: %s",
                     session->shown, error->message);
    } else if (counts.end == UPROF_SAMPLER_GONE) {
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING,
                     "%s: the domain ended during the run; its samples are kept", session->shown);
    } else if (counts.end == UPROF_SAMPLER_STUCK) {
        recording->code = uprof_error_merge(recording->code, UPROF_ERROR_FAILED);
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING,
                     "%s: sampling ended early: a vCPU thread repeatedly did not stop in time; "
                     "try --access monitor",
                     session->shown);
    }
}

/* Sends no notice if the reader of stdout has closed the pipe: the code of the run is enough. */
static void
report_output_error(UprofRecording *recording, const UprofFile *file, const GError *error)
{
    recording->code = uprof_error_merge(recording->code, UPROF_ERROR_FAILED);
    if (!(file && uprof_file_is_closed(file)))
        uprof_notice_error(recording->notices, error);
}

static void
write_capture(UprofRecording *recording)
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
        report_output_error(recording, NULL, error);
        return;
    }
    uprof_notice(recording->notices, UPROF_NOTICE_INFO, "wrote %s", path);
}

/* Returns: false if the file could not be written */
static bool
write_output(UprofRecording *recording, Output *output)
{
    const UprofSession *session = recording->session;
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofFile) file = g_steal_pointer(&output->file);
    g_autofree char *path = uprof_text_quote(uprof_file_path(file));
    const bool is_stdout = uprof_file_is_stdout(file);

    if (!uprof_output_write(output->format, session->pipeline->profile, session->run, file,
                            &error)) {
        report_output_error(recording, file, error);
        return false;
    }
    if (!uprof_file_commit(g_steal_pointer(&file), &error)) {
        report_output_error(recording, NULL, error);
        return false;
    }
    if (!is_stdout)
        uprof_notice(recording->notices, UPROF_NOTICE_INFO, "wrote %s", path);
    return true;
}

bool
uprof_recording_check(UprofRecording *recording)
{
    const UprofRun *run = recording->session->run;
    const char *shown = recording->session->shown;

    if (run->samples == 0) {
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING, "%s: no sample was taken%s", shown,
                     run->busy > 0
                         ? ": something else stopped, saved or migrated it during the complete run"
                         : "");
        recording->code = uprof_error_merge(recording->code, UPROF_ERROR_EMPTY);
        return false;
    }
    if (run->running == 0 && !run->idle)
        uprof_notice(recording->notices, UPROF_NOTICE_HINT,
                     "%s: all vCPUs were idle during the complete run; "
                     "--idle shows idle time as a stack",
                     shown);
    const uint64_t n_untimed = uprof_profile_n_untimed(recording->session->pipeline->profile);
    if (n_untimed > 0)
        uprof_notice(
            recording->notices, UPROF_NOTICE_WARNING,
            "%s: files that keep the order of samples lack the last %" G_GUINT64_FORMAT
            " samples, because the times of more are not kept; use a shorter run or --capture",
            shown, n_untimed);
    return true;
}

void
uprof_recording_save(UprofRecording *recording)
{
    write_capture(recording);
    for (guint i = 0; i < recording->outputs->len; i++)
        if (!write_output(recording, &g_array_index(recording->outputs, Output, i)) &&
            recording->stops_at_failure)
            break;
}
