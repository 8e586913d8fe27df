/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "recording-priv.h"

#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/output-request.h"
#include "uprof/text.h"

#include "session-priv.h"

#include <string.h>

void
uprof_recording_free(UprofRecording *recording)
{
    if (!recording)
        return;
    uprof_loop_free(recording->loop);
    uprof_session_close(recording->session);
    for (guint i = 0; i < recording->outputs->len; i++)
        uprof_file_abort(g_array_index(recording->outputs, UprofWorkerOutput, i).file);
    g_array_unref(recording->outputs);
    g_free(recording);
}

/* There is one capture at most: the last one that the user asked for. */
static void
drop_capture(GArray *outputs)
{
    for (guint i = 0; i < outputs->len; i++) {
        UprofWorkerOutput *output = &g_array_index(outputs, UprofWorkerOutput, i);
        if (!output->format->is_capture)
            continue;
        uprof_file_abort(output->file);
        g_array_remove_index(outputs, i);
        return;
    }
}

static bool
open_output(UprofRecording *recording, const char *path, const UprofOutputRequest *request,
            const int *store, GError **error)
{
    const UprofFormat *format = request->format;
    UprofWorkerOutput output = { .format = format, .is_waits = request->is_waits };

    if (store || request->parent)
        output.file = uprof_file_open_own(request->parent ? *request->parent : *store, path, error);
    else if (format->is_capture)
        output.file = uprof_file_open_part(path, error);
    else
        output.file = uprof_file_open(path, format->is_secret, error);
    if (!output.file)
        return false;
    if (format->is_capture)
        drop_capture(recording->outputs);
    /* the capture is saved first */
    g_array_insert_val(recording->outputs, format->is_capture ? 0 : recording->outputs->len,
                       output);
    return true;
}

/*
 * Opens a file in the folder for temporary files, for the stacks if an output cannot be written at
 * the end: a long run must not be lost because a disk is full.
 */
static void
open_spare(UprofRecording *recording, const UprofDomain *domain,
           const UprofRecordingSettings *settings)
{
    const UprofOutputRequest spare = { .path = (char *)"%d-%t", .format = &uprof_format_folded };
    g_autofree char *name =
        uprof_output_request_path(&spare, domain->name, domain->uuid, settings->time);
    g_autofree char *stem = g_build_filename(g_get_tmp_dir(), name, NULL);
    g_autofree char *path = uprof_file_unused_path(stem, ".folded");
    bool any_file = false;

    for (guint i = 0; i < recording->outputs->len; i++)
        any_file |=
            !uprof_file_is_stdout(g_array_index(recording->outputs, UprofWorkerOutput, i).file);
    recording->has_spare =
        any_file && !settings->store && open_output(recording, path, &spare, NULL, NULL);
}

static bool
open_outputs(UprofRecording *recording, const UprofDomain *domain,
             const UprofRecordingSettings *settings, GError **error)
{
    for (guint i = 0; i < settings->outputs->len; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(settings->outputs, i);
        g_autofree char *path =
            uprof_output_request_path(request, domain->name, domain->uuid, settings->time);
        g_autoptr(GError) failure = NULL;
        if (!open_output(recording, path, request, settings->store, &failure)) {
            /* the user has named no file */
            if (request->is_unused_name)
                g_set_error(error, UPROF_ERROR, failure->code,
                            "%s; name another place, such as: -o /tmp/%%d.svg", failure->message);
            else
                g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
    }
    open_spare(recording, domain, settings);
    return true;
}

/* Returns: the number of outputs without the spare one */
static guint
count_outputs(const UprofRecording *recording)
{
    return recording->outputs->len - (recording->has_spare ? 1 : 0);
}

/* Returns: (transfer full): of char: names for the facts of the run; the capture is the last one */
static GPtrArray *
name_files(const UprofRecording *recording)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);

    for (unsigned captures = 0; captures < 2; captures++)
        for (guint i = 0; i < count_outputs(recording); i++) {
            const UprofWorkerOutput *output =
                &g_array_index(recording->outputs, UprofWorkerOutput, i);
            if (output->format->is_capture == (captures > 0) && !uprof_file_is_stdout(output->file))
                g_ptr_array_add(names, g_path_get_basename(uprof_file_path(output->file)));
        }
    return names;
}

static bool
prepare_session(UprofRecording *recording, UprofWorkers *workers, UprofRing *ring, GError **error)
{
    g_autoptr(GPtrArray) names = name_files(recording);
    const UprofSessionOutputs outputs = { recording->outputs, names };

    return uprof_session_prepare(recording->session, workers, &outputs, ring, error);
}

UprofRecording *
uprof_recording_open(UprofDomain *domain, const UprofRecordingSettings *settings,
                     UprofGuardian *guardian, UprofRing *ring, UprofSessionFlags flags,
                     GError **error)
{
    g_autoptr(UprofRecording) recording = g_new0(UprofRecording, 1);

    recording->notices = settings->session->notices;
    recording->stops_at_failure = settings->store;
    recording->outputs = g_array_new(FALSE, FALSE, sizeof(UprofWorkerOutput));
    if (!open_outputs(recording, domain, settings, error)) {
        uprof_domain_free(domain);
        return NULL;
    }
    recording->session = uprof_session_open(domain, settings->session, guardian, flags, error);
    if (settings->on_opened)
        settings->on_opened(settings->data);
    if (!recording->session || !prepare_session(recording, settings->workers, ring, error))
        return NULL;
    return g_steal_pointer(&recording);
}

void
uprof_recording_start(UprofRecording *recording, UprofLoop *shared)
{
    UprofSession *session = recording->session;
    UprofLoop *loop = shared;
    g_autoptr(GError) error = NULL;

    if (session->guest->grain != UPROF_GRAIN_VCPU)
        loop = recording->loop = uprof_loop_new(&error);
    if (!loop) {
        recording->is_done = true;
        recording->code =
            uprof_error_merge(recording->code, uprof_notice_error(recording->notices, error));
        return;
    }
    if (!recording->has_fallen_back) {
        uprof_session_prime(session);
        session->run->started_utc_ns = uprof_clock_utc_ns();
    }
    recording->start_ns = uprof_clock_now_ns();
    uprof_worker_set_walks(session->worker, session->settings.waits);
    uprof_loop_add(loop, session->sampler);
}

void
uprof_recording_give_up(UprofRecording *recording)
{
    const UprofSession *session = recording->session;
    const bool may_be_held =
        session->guest->marker && uprof_marker_held(session->guest->marker, NULL) != UPROF_HELD_NOT;

    recording->is_done = recording->is_left = true;
    recording->code = uprof_error_merge(recording->code,
                                        may_be_held ? UPROF_ERROR_LEFT_HELD : UPROF_ERROR_FAILED);
    uprof_notice(
        recording->notices, UPROF_NOTICE_WARNING,
        "%s: libvirt or its QEMU does not answer; sampling ended early%s", session->shown,
        may_be_held ? "; IT MAY STILL BE STOPPED; when they answer, the guardian resumes it" : "");
}

/* Called when the rate is as high again as it was at the beginning. */
static void
report_full_rate(UprofRecording *recording, const UprofSamplerCounts *counts)
{
    const UprofSession *session = recording->session;
    const uint64_t divisor = counts->divisor * MAX(session->counts_before.divisor, 1);
    g_autofree char *hz = uprof_format_hz(session->run->rate_mhz / MAX(divisor, 1));

    /* a rate that goes up and down is reported once */
    if (!recording->has_reported_full)
        uprof_notice(recording->notices, UPROF_NOTICE_HINT, "%s: back to %s Hz for now",
                     session->shown, hz);
    recording->has_reported_full = true;
}

void
uprof_recording_report_rate(UprofRecording *recording, const UprofSamplerCounts *counts)
{
    const UprofSession *session = recording->session;

    if (counts->stride == 1 && recording->reported_stride > 1) {
        report_full_rate(recording, counts);
        return;
    }
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
    /* Trial holds set the rate before the first sample. Later the rate depends on all holds. */
    const bool is_probe =
        is_first && counts->probe_ns > 0 && (counts->stride == 1 || counts->n_holds == 0);
    const uint64_t hold_ns =
        is_probe ? counts->probe_ns : counts->held_ns / MAX(counts->n_holds, 1);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);
    g_autofree char *hold = uprof_format_ns(hold_ns);
    g_autofree char *asked = uprof_format_hz(session->run->rate_mhz);
    g_autofree char *got = uprof_format_hz(session->run->rate_mhz / divisor);
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    uprof_notice(
        recording->notices, UPROF_NOTICE_HINT,
        "%s: %s instead of %s Hz, so that holds take at most %s %% of the time (--budget); "
        "each stops %s %s",
        session->shown, got, asked, budget,
        session->guest->grain == UPROF_GRAIN_VCPU ? "a vCPU" : "the guest", hold);
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
name_end(const UprofRecording *recording, const UprofSamplerCounts *counts)
{
    static const char *const names[] = {
        [UPROF_SAMPLER_DURATION] = "duration", [UPROF_SAMPLER_STOPPED] = "signal",
        [UPROF_SAMPLER_GONE] = "gone",         [UPROF_SAMPLER_ERROR] = "error",
        [UPROF_SAMPLER_STUCK] = "error",       [UPROF_SAMPLER_RUNNING] = "error",
    };

    return counts->end == UPROF_SAMPLER_STOPPED && recording->has_enough ? "samples"
                                                                         : names[counts->end];
}

bool
uprof_recording_restart(UprofRecording *recording)
{
    g_autoptr(GError) error = NULL;

    if (recording->has_restarted)
        return false;
    recording->has_restarted = true;
    if (uprof_worker_continue(recording->session->worker, &error))
        return true;
    uprof_notice_error(recording->notices, error);
    return false;
}

/*
 * Completes the profile of a worker that has died, from its last checkpoint.
 *
 * Returns: false with the error
 */
static bool
rescue_profile(UprofRecording *recording, GError **error)
{
    UprofSession *session = recording->session;
    UprofSamplerCounts counts;

    if (!uprof_worker_rescue(session->worker, error))
        return false;
    recording->is_cut = true;
    recording->code = uprof_error_merge(recording->code, UPROF_ERROR_FAILED);
    uprof_session_note_counts(session, &counts);
    g_free(session->run->ended_by);
    session->run->ended_by = g_strdup("error");
    return uprof_worker_end(session->worker, session->run, &recording->counts, error);
}

/* Completes the profile in the worker. If the worker has failed, its last counts are used. */
static void
end_worker(UprofRecording *recording)
{
    UprofRun *run = recording->session->run;
    g_autoptr(GError) error = NULL;

    if (!uprof_worker_end(recording->session->worker, run, &recording->counts, NULL) &&
        !rescue_profile(recording, &error)) {
        recording->is_lost = true;
        recording->code =
            uprof_error_merge(recording->code, uprof_notice_error(recording->notices, error));
    }
    run->samples = recording->counts.samples;
    run->running = recording->counts.running;
    run->complete = recording->counts.complete;
}

void
uprof_recording_end(UprofRecording *recording, unsigned n_recordings)
{
    UprofSession *session = recording->session;
    UprofRun *run = session->run;
    UprofSamplerCounts counts;

    uprof_session_note_counts(session, &counts);
    g_autoptr(GError) error =
        recording->is_left ? NULL : uprof_sampler_take_error(session->sampler);
    run->ended_by = g_strdup(name_end(recording, &counts));
    run->cpu_ns = uprof_clock_cpu_ns() / n_recordings;
    end_worker(recording);
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
report_output_error(UprofRecording *recording, bool is_closed, const GError *error)
{
    recording->code = uprof_error_merge(recording->code, UPROF_ERROR_FAILED);
    if (!is_closed)
        uprof_notice_error(recording->notices, error);
}

/* Returns: false with the error; @is_closed: (out): see uprof_worker_save() */
static bool
save_output(UprofRecording *recording, guint i, bool *is_closed, GError **error)
{
    UprofWorkerOutput *output = &g_array_index(recording->outputs, UprofWorkerOutput, i);
    UprofWorker *worker = recording->session->worker;
    g_autoptr(GError) failure = NULL;

    if (uprof_worker_save(worker, i, is_closed, &failure))
        return true;
    /* the process may have written a part of the file before it died */
    if (uprof_worker_is_dead(worker) && !recording->is_cut &&
        uprof_file_restart(output->file, NULL))
        return rescue_profile(recording, error) && uprof_worker_save(worker, i, is_closed, error);
    g_propagate_error(error, g_steal_pointer(&failure));
    return false;
}

/* Returns: false if the file could not be written */
static bool
write_output(UprofRecording *recording, guint i)
{
    UprofWorkerOutput *output = &g_array_index(recording->outputs, UprofWorkerOutput, i);
    g_autoptr(GError) error = NULL;
    g_autofree char *path = uprof_text_quote(uprof_file_path(output->file));
    const bool is_stdout = uprof_file_is_stdout(output->file);
    const bool is_replaced = g_file_test(uprof_file_path(output->file), G_FILE_TEST_IS_REGULAR);
    bool is_closed = false;

    if (!save_output(recording, i, &is_closed, &error) ||
        !uprof_file_commit(g_steal_pointer(&output->file), &error)) {
        if (output->format->is_capture)
            g_prefix_error(&error, "no capture '%s': ", path);
        report_output_error(recording, is_closed, error);
        return false;
    }
    if (output->format->is_capture && (recording->has_restarted || recording->is_cut)) {
        recording->code = uprof_error_merge(recording->code, UPROF_ERROR_FAILED);
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING,
                     "%s: its capture ends early, because the process that wrote it has failed",
                     recording->session->shown);
    }
    if (!is_stdout)
        uprof_notice(recording->notices, UPROF_NOTICE_INFO, "wrote %s%s", path,
                     is_replaced ? " (replaced)" : "");
    return true;
}

bool
uprof_recording_check(UprofRecording *recording)
{
    const UprofRun *run = recording->session->run;
    const char *shown = recording->session->shown;

    if (recording->is_lost)
        return false;
    if (run->samples == 0) {
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING, "%s: no sample was taken%s", shown,
                     run->busy > 0
                         ? ": somebody else stopped, saved or migrated it during the complete run"
                         : "");
        recording->code = uprof_error_merge(recording->code, UPROF_ERROR_EMPTY);
        return false;
    }
    if (run->running == 0 && !run->idle)
        uprof_notice(recording->notices, UPROF_NOTICE_HINT,
                     "%s: nothing ran: --idle shows idle time, --idle=stack shows where it waits",
                     shown);
    const uint64_t n_untimed = recording->counts.untimed;
    if (n_untimed > 0)
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING,
                     "%s: the order of samples in files lacks %" G_GUINT64_FORMAT
                     " samples, because their times were not kept; use a shorter run or --capture",
                     shown, n_untimed);
    return true;
}

/* Writes the stacks to the spare file, because another file could not be written. */
static void
write_spare(UprofRecording *recording)
{
    const guint i = count_outputs(recording);
    UprofWorkerOutput *output = &g_array_index(recording->outputs, UprofWorkerOutput, i);
    g_autofree char *path = uprof_text_quote(uprof_file_path(output->file));
    bool is_closed = false;

    if (save_output(recording, i, &is_closed, NULL) &&
        uprof_file_commit(g_steal_pointer(&output->file), NULL))
        uprof_notice(recording->notices, UPROF_NOTICE_WARNING, "%s: its stacks are kept in '%s'",
                     recording->session->shown, path);
}

void
uprof_recording_save(UprofRecording *recording)
{
    bool any_failed = false;

    for (guint i = 0; i < count_outputs(recording); i++) {
        const UprofWorkerOutput *output = &g_array_index(recording->outputs, UprofWorkerOutput, i);
        const bool is_capture = output->format->is_capture;
        const bool is_stdout = uprof_file_is_stdout(output->file);
        const bool ok = write_output(recording, i);
        any_failed |= !ok && !is_stdout;
        if (!ok && recording->stops_at_failure && !is_capture)
            break;
    }
    if (any_failed && recording->has_spare)
        write_spare(recording);
}
