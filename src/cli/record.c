/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record: sample domains, write files.
 *
 * Threads: main (signals, progress, output), one sampler per domain, one worker
 * for all. All of them block all signals; main reads
 * them from a descriptor, so that what a signal asks for happens between holds.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "session-priv.h"
#include "summary-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    LOOK_MS = 100,
    WORKER_WAIT_NS = 20 * 1000 * 1000,
    WORKER_SLEEP_US = 2000,
};

/* One file that is to be written at the end. */
typedef struct {
    UprofFile *file;
    const UprofFormat *format;
} Output;

/* One domain's part of the run. */
typedef struct {
    UprofSession *session;
    GArray *outputs; /* of Output */
    UprofFile *capture;
    UprofWriter *writer;
    GError *capture_error;
    bool table;
    bool is_done;         /* its sampler has ended; read and written by main */
    gint is_drained;      /* so has its ring; set by the worker */
    gint may_drain;       /* set by main */
    uint64_t said_stride; /* of the rate that was said last, 0: none yet */
    int code;
} Recording;

typedef struct {
    UprofOptions *options;
    GPtrArray *recordings; /* of Recording */
    UprofGuardian *guardian;
    bool guardian_died;
    char *time;
    int signals;
    unsigned n_signals;
} Record;

static void
free_recording(gpointer data)
{
    Recording *recording = data;

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
expand_path(const Record *record, const UprofDomain *domain, const char *path)
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
            g_string_append(expanded, record->time);
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
open_output(Recording *recording, const char *path, const UprofFormat *format, GError **error)
{
    Output output = { .format = format };

    if (format->is_binary && strcmp(path, "-") == 0 && isatty(STDOUT_FILENO)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "format '%s' is nothing for a terminal",
                    format->name);
        return false;
    }
    output.file = uprof_file_open(path, format->is_secret, error);
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

/* All outputs are opened before the first hold: what cannot be written costs no guest anything. */
static bool
open_outputs(const Record *record, Recording *recording, const UprofDomain *domain, GError **error)
{
    const UprofOptions *options = record->options;
    bool has_profile = false;

    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        g_autofree char *path = expand_path(record, domain, wanted->path);
        if (!open_output(recording, path, wanted->format, error))
            return false;
        has_profile = true;
    }
    if (options->json)
        return open_output(recording, "-", &uprof_format_meta, error);
    if (has_profile)
        return true;
    if (options->format || !isatty(STDOUT_FILENO))
        return open_output(recording, "-", options->format ? options->format : &uprof_format_folded,
                           error);
    g_autofree char *name = uprof_text_file_name(domain->name, domain->uuid);
    g_autofree char *stem = g_strdup_printf("%s-%s", name, record->time);
    g_autofree char *path = uprof_file_unused_path(stem, ".folded");
    recording->table = true;
    return open_output(recording, path, &uprof_format_folded, error);
}

static void
note_files(Recording *recording)
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

/* Returns: (nullable): NULL with the error said and the code noted */
static Recording *
open_recording(Record *record, UprofDomain *domain, UprofExitTally *tally)
{
    Recording *recording = g_new0(Recording, 1);
    g_autoptr(GError) error = NULL;
    bool locked = false;
    bool ok;

    recording->outputs = g_array_new(FALSE, FALSE, sizeof(Output));
    ok = open_outputs(record, recording, domain, &error);
    if (!ok) {
        uprof_domain_free(domain);
    } else {
        recording->session = uprof_session_open(domain, record->options, record->guardian, false,
                                                true, &locked, &error);
        ok = recording->session &&
             uprof_session_prepare(recording->session, record->options, recording->writer, &error);
    }
    if (!ok) {
        uprof_exit_count(tally, locked ? UPROF_EXIT_LOCKED : uprof_exit_code(error));
        uprof_say_error(error);
        free_recording(recording);
        return NULL;
    }
    note_files(recording);
    return recording;
}

static void
add_domain(Record *record, UprofDomain *domain, UprofExitTally *tally)
{
    Recording *recording = open_recording(record, domain, tally);

    if (recording)
        g_ptr_array_add(record->recordings, recording);
}

static bool
is_named_twice(const Record *record, const UprofDomain *domain)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const Recording *recording = g_ptr_array_index(record->recordings, i);
        if (strcmp(recording->session->domain->uuid, domain->uuid) == 0)
            return true;
    }
    return false;
}

static void
open_all(Record *record, UprofHost *host, UprofExitTally *tally)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);
    bool any = false;

    if (!domains) {
        uprof_exit_count(tally, uprof_say_error(error));
        return;
    }
    while (domains->len > 0) {
        UprofDomain *domain = g_ptr_array_steal_index(domains, 0);
        if (domain->state != UPROF_DOMAIN_RUNNING) {
            uprof_domain_free(domain);
            continue;
        }
        any = true;
        add_domain(record, domain, tally);
    }
    if (!any) {
        uprof_say("virt-uprof: no domain runs on %s", uprof_host_uri(host));
        uprof_exit_count(tally, UPROF_EXIT_DOMAIN);
    }
}

static void
open_domains(Record *record, UprofHost *host, UprofExitTally *tally)
{
    const GPtrArray *words = record->options->words;

    if (record->options->all)
        open_all(record, host, tally);
    for (guint i = 0; i < words->len; i++) {
        g_autoptr(GError) error = NULL;
        UprofDomain *domain = uprof_host_find(host, g_ptr_array_index(words, i), &error);
        if (!domain)
            uprof_exit_count(tally, uprof_say_error(error));
        else if (is_named_twice(record, domain))
            uprof_domain_free(domain);
        else
            add_domain(record, domain, tally);
    }
}

/* Returns: whether there was anything to work on */
static bool
drain(Recording *recording)
{
    UprofRing *ring = uprof_sampler_ring(recording->session->sampler);
    UprofPipeline *pipeline = recording->session->pipeline;
    const UprofSnapshot *snapshot;
    bool any = false;

    while ((snapshot = uprof_ring_peek(ring))) {
        g_autoptr(GError) error = NULL;
        if (!uprof_pipeline_take(pipeline, snapshot, &error) && pipeline->writer) {
            /* the profile goes on without its capture */
            recording->capture_error = g_steal_pointer(&error);
            pipeline->writer = NULL;
        }
        uprof_ring_drop(ring);
        any = true;
    }
    return any;
}

static gpointer
run_worker(gpointer data)
{
    const Record *record = data;
    const GPtrArray *recordings = record->recordings;
    guint n_open = recordings->len;

    while (n_open > 0) {
        bool any = false;
        n_open = 0;
        for (guint i = 0; i < recordings->len; i++) {
            Recording *recording = g_ptr_array_index(recordings, i);
            if (recording->is_drained)
                continue;
            /* asked before the last look, so that nothing comes after it */
            const bool is_last = g_atomic_int_get(&recording->may_drain);
            any |= drain(recording);
            if (is_last)
                g_atomic_int_set(&recording->is_drained, 1);
            else
                n_open++;
        }
        if (any || n_open == 0)
            continue;
        const Recording *only = g_ptr_array_index(recordings, 0);
        if (recordings->len == 1)
            uprof_ring_wait(uprof_sampler_ring(only->session->sampler),
                            uprof_clock_now_ns() + WORKER_WAIT_NS);
        else
            g_usleep(WORKER_SLEEP_US);
    }
    return NULL;
}

static void
stop_all(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const Recording *recording = g_ptr_array_index(record->recordings, i);
        uprof_sampler_stop(recording->session->sampler);
    }
}

/* Ctrl-Z: the process may be stopped, but never while it holds a guest. */
static void
suspend_process(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_sampler_park(
            ((Recording *)g_ptr_array_index(record->recordings, i))->session->sampler);
    kill(getpid(), SIGSTOP);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_sampler_unpark(
            ((Recording *)g_ptr_array_index(record->recordings, i))->session->sampler);
}

static void
read_signal(Record *record)
{
    struct signalfd_siginfo info;

    if (read(record->signals, &info, sizeof(info)) != sizeof(info))
        return;
    switch (info.ssi_signo) {
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        if (++record->n_signals == 2)
            uprof_say("virt-uprof: stopped without saving");
        stop_all(record);
        break;
    case SIGTSTP:
        suspend_process(record);
        break;
    default:
        break;
    }
}

/* A lowered rate is said when it is known, not when it is over. */
static void
say_rate(Recording *recording, const UprofSamplerCounts *counts)
{
    const UprofSession *session = recording->session;

    if (counts->probe_ns == 0 || counts->stride == recording->said_stride)
        return;
    const bool is_raised = counts->stride < recording->said_stride;
    const bool is_first = recording->said_stride == 0;
    recording->said_stride = counts->stride;
    if ((is_first && counts->divisor == 1) || is_raised)
        return;
    const uint64_t divisor = counts->divisor * counts->stride;
    /* at first by what the trial holds took, later by what all have taken */
    const uint64_t hold_ns =
        is_first ? counts->probe_ns : counts->held_ns / MAX(counts->n_holds, 1);
    const uint64_t budget_ppm = uprof_session_budget_ppm(session);
    g_autofree char *hold = uprof_format_ns(hold_ns);
    g_autofree char *asked = uprof_format_hz(session->run->rate_mhz);
    g_autofree char *got = uprof_format_hz(session->run->rate_mhz / divisor);
    g_autofree char *budget = uprof_format_budget(budget_ppm);
    uprof_say("virt-uprof: %s: each sample stops the guest %s; rate lowered from %s to %s Hz "
              "(--budget %s)",
              session->shown, hold, asked, got, budget);
}

static void
show_progress(const Record *record)
{
    uint64_t samples = 0, running = 0, complete = 0, late = 0, held_ns = 0, elapsed_ns = 1;

    for (guint i = 0; i < record->recordings->len; i++) {
        const Recording *recording = g_ptr_array_index(record->recordings, i);
        UprofPipeline *pipeline = recording->session->pipeline;
        UprofSamplerCounts counts;
        uprof_sampler_counts(recording->session->sampler, &counts);
        g_mutex_lock(&pipeline->lock);
        samples += pipeline->run->samples;
        running += pipeline->run->running;
        complete += pipeline->run->complete;
        g_mutex_unlock(&pipeline->lock);
        late += counts.late;
        elapsed_ns = MAX(elapsed_ns, counts.elapsed_ns);
        held_ns = MAX(held_ns, counts.held_ns);
    }
    g_autofree char *percent = uprof_format_percent(complete, running);
    g_autofree char *held = uprof_format_percent(held_ns, elapsed_ns);
    g_autofree char *text = g_strdup_printf(
        "  %" G_GUINT64_FORMAT " s  %" G_GUINT64_FORMAT " samples  %" G_GUINT64_FORMAT
        " late  %s %% complete  each vCPU held %s %%",
        elapsed_ns / UPROF_NS_PER_S, samples, late, percent, held);
    uprof_say_progress(text);
}

/* Returns: whether any sampler still runs */
static bool
look_at_samplers(Record *record)
{
    bool any = false;

    for (guint i = 0; i < record->recordings->len; i++) {
        Recording *recording = g_ptr_array_index(record->recordings, i);
        UprofSamplerCounts counts;
        if (recording->is_done)
            continue;
        uprof_sampler_counts(recording->session->sampler, &counts);
        if (!record->options->quiet)
            say_rate(recording, &counts);
        if (counts.end == UPROF_SAMPLER_RUNNING) {
            any = true;
            continue;
        }
        recording->is_done = true;
        g_atomic_int_set(&recording->may_drain, 1);
    }
    return any;
}

static void
watch_guardian(Record *record)
{
    uprof_say("virt-uprof: the guardian process has died; sampling ends here");
    record->guardian_died = true;
    stop_all(record);
}

static void
sample(Record *record)
{
    const bool progress = isatty(STDERR_FILENO) && !record->options->quiet;
    uint64_t shown_ns = uprof_clock_now_ns();
    GThread *worker;

    for (guint i = 0; i < record->recordings->len; i++) {
        const Recording *recording = g_ptr_array_index(record->recordings, i);
        if (!record->options->quiet)
            uprof_summary_say_start(recording->session->run, recording->session->shown);
        uprof_sampler_start(recording->session->sampler);
    }
    worker = g_thread_new("worker", run_worker, record);
    while (look_at_samplers(record)) {
        struct pollfd waits[] = {
            { .fd = record->signals, .events = POLLIN },
            { .fd = record->guardian_died ? -1 : uprof_guardian_fd(record->guardian),
              .events = POLLIN },
        };
        poll(waits, G_N_ELEMENTS(waits), LOOK_MS);
        if (waits[0].revents)
            read_signal(record);
        if (waits[1].revents)
            watch_guardian(record);
        if (progress && uprof_clock_now_ns() - shown_ns >= UPROF_NS_PER_S) {
            shown_ns = uprof_clock_now_ns();
            show_progress(record);
        }
    }
    uprof_say_progress("");
    g_thread_join(worker);
}

static const char *
name_end(const UprofSamplerCounts *counts)
{
    static const char *const names[] = {
        [UPROF_SAMPLER_DURATION] = "duration", [UPROF_SAMPLER_STOPPED] = "signal",
        [UPROF_SAMPLER_GONE] = "gone",         [UPROF_SAMPLER_ERROR] = "error",
        [UPROF_SAMPLER_RUNNING] = "error",
    };

    return names[counts->end];
}

static void
note_end(const Record *record, Recording *recording)
{
    UprofRun *run = recording->session->run;
    UprofSamplerCounts counts;
    g_autoptr(GError) error = NULL;

    uprof_sampler_counts(recording->session->sampler, &counts);
    run->ended_by = g_strdup(name_end(&counts));
    run->duration_ns = counts.elapsed_ns;
    run->divisor = counts.divisor;
    run->late = counts.late;
    run->busy = counts.busy;
    run->skipped = counts.skipped;
    run->cpu_ns = uprof_clock_cpu_ns() / record->recordings->len;
    uprof_pipeline_end(recording->session->pipeline);
    if (!uprof_sampler_join(recording->session->sampler, &error)) {
        recording->code = uprof_exit_worse(recording->code, uprof_exit_code(error));
        uprof_say("virt-uprof: %s: sampling ended early: %s", recording->session->shown,
                  error->message);
    } else if (counts.end == UPROF_SAMPLER_GONE) {
        uprof_say("virt-uprof: %s: the domain ended in mid-run; its samples stand",
                  recording->session->shown);
    }
}

/* A closed stdout needs no words; the exit code says it. */
static void
say_output_error(Recording *recording, const UprofFile *file, const GError *error)
{
    recording->code = uprof_exit_worse(recording->code, UPROF_EXIT_FAILED);
    if (!(file && uprof_file_is_closed(file)))
        uprof_say_error(error);
}

static void
write_capture(const Record *record, Recording *recording)
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
    } else if (!record->options->quiet) {
        uprof_say("wrote %s", path);
    }
}

static void
write_output(const Record *record, Recording *recording, Output *output)
{
    const UprofSession *session = recording->session;
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofFile) file = g_steal_pointer(&output->file);
    g_autofree char *path = uprof_text_quote(uprof_file_path(file));
    const bool is_stdout = uprof_file_is_stdout(file);
    GString *text = uprof_output_render(output->format, session->pipeline->profile, session->run);

    bool ok = uprof_file_write(file, text->str, text->len, &error);
    if (!ok)
        say_output_error(recording, file, error);
    g_string_free(text, TRUE);
    if (!ok)
        return;
    if (!uprof_file_commit(g_steal_pointer(&file), &error))
        say_output_error(recording, NULL, error);
    else if (!is_stdout && !record->options->quiet)
        uprof_say("wrote %s", path);
}

static void
write_table(const Record *record, Recording *recording)
{
    GString *table;

    if (!recording->table)
        return;
    table = uprof_table_render(recording->session->pipeline->profile, record->options->rows);
    fputs(table->str, stdout);
    g_string_free(table, TRUE);
    if (fflush(stdout) != 0)
        recording->code = uprof_exit_worse(recording->code, UPROF_EXIT_FAILED);
}

static void
finish(Record *record, Recording *recording)
{
    UprofRun *run = recording->session->run;
    const bool quiet = record->options->quiet;

    if (!quiet)
        uprof_summary_say_end(run, recording->session->shown);
    if (record->options->verbose) {
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
    write_table(record, recording);
    write_capture(record, recording);
    for (guint i = 0; i < recording->outputs->len; i++)
        write_output(record, recording, &g_array_index(recording->outputs, Output, i));
}

/* Blocked from here on, in this thread and in those it starts. */
static int
open_signals(void)
{
    static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP };
    sigset_t all, wanted;

    sigemptyset(&wanted);
    for (size_t i = 0; i < G_N_ELEMENTS(handled); i++)
        sigaddset(&wanted, handled[i]);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static volatile sig_atomic_t n_ends;

/* While files are written nothing is held: the second signal ends it at once. */
static void
end_at_second(int number)
{
    if (++n_ends >= 2)
        _exit(UPROF_EXIT_FAILED);
}

static void
handle_signals(const Record *record)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction action = { .sa_handler = end_at_second, .sa_flags = SA_RESTART };
    sigset_t none;

    n_ends = (sig_atomic_t)record->n_signals;
    for (size_t i = 0; i < G_N_ELEMENTS(ending); i++)
        sigaction(ending[i], &action, NULL);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void
save(Record *record, UprofExitTally *tally)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        Recording *recording = g_ptr_array_index(record->recordings, i);
        if (record->n_signals < 2)
            finish(record, recording);
        uprof_exit_count(tally, recording->code);
    }
}

static int
run(Record *record)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofHost) host = NULL;
    UprofExitTally tally = { 0 };

    const int healed = uprof_session_heal(record->options->quiet);
    if (healed != UPROF_EXIT_OK)
        return healed;
    host = uprof_host_open(record->options->uri, false, &error);
    if (!host)
        return uprof_say_error(error);
    open_domains(record, host, &tally);
    if (record->recordings->len == 0)
        return uprof_exit_of(&tally);
    record->signals = open_signals();
    sample(record);
    for (guint i = 0; i < record->recordings->len; i++)
        note_end(record, g_ptr_array_index(record->recordings, i));
    handle_signals(record);
    save(record, &tally);
    close(record->signals);
    return record->n_signals < 2 ? uprof_exit_of(&tally)
                                 : uprof_exit_worse(uprof_exit_of(&tally), UPROF_EXIT_FAILED);
}

int
uprof_record_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    Record record = { .options = options };

    record.guardian = uprof_guardian_start(uprof_access_find, &error);
    if (!record.guardian)
        return uprof_say_error(error);
    record.recordings = g_ptr_array_new_with_free_func(free_recording);
    record.time = uprof_clock_format_utc(uprof_clock_utc_ns(), TRUE);
    uprof_host_init();

    const int code = run(&record);
    g_ptr_array_unref(record.recordings);
    g_free(record.time);
    return uprof_exit_worse(
        code, uprof_session_end_guardian(record.guardian, record.guardian_died, options->quiet));
}
