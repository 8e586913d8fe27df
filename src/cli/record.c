/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record.c - the command record: samples domains and writes their profiles
 *
 * The command shows progress and summary on stderr. If stdout is a terminal, the command shows the
 * hottest functions there.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "push-results-priv.h"
#include "uprof/run-lines.h"
#include "uprof/child-command.h"
#include "uprof/push-run.h"
#include "uprof/record-domains.h"
#include "terminal-priv.h"
#include "worker-reply-priv.h"
#include "uprof/clock.h"

#include <string.h>
#include <unistd.h>

enum { ROWS_DEFAULT = 10 };

typedef struct {
    const UprofOptions *options; /* borrowed */
    bool shows_table;            /* on stdout, when a domain has ended */
    bool shows_progress;         /* a line on stderr, while the run goes on */
    uint64_t shown_ns;           /* when the progress line was written last */
    UprofChild child;            /* the command that says how long to sample, if there is one */
} Shown;

/* ---- Outputs ---- */

/*
 * Returns: (transfer full): the outputs of each domain. A terminal always gets the table, unless
 * something else is written to it. If the user named no output, there is also a picture, but not
 * with --quiet, which does not say its name; a pipe gets folded stacks.
 */
static GPtrArray *
list_outputs(const UprofOptions *options, bool *shows_table)
{
    GPtrArray *requests = uprof_output_request_list();
    bool is_stdout_taken = options->json;

    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        uprof_output_request_add(requests, wanted->path, wanted->format, false);
        is_stdout_taken |= strcmp(wanted->path, "-") == 0;
    }
    if (options->json)
        uprof_output_request_add(requests, "-", &uprof_format_meta, false);
    is_stdout_taken |= requests->len == 0 && options->format;
    *shows_table = isatty(STDOUT_FILENO) && !is_stdout_taken;
    if (*shows_table && requests->len == 0 && !options->quiet)
        uprof_output_request_add(requests, "%d-%t.svg", &uprof_format_svg, true);
    else if (!*shows_table && requests->len == 0)
        uprof_output_request_add(requests, "-",
                                 options->format ? options->format : &uprof_format_folded, false);
    return requests;
}

static bool
check_terminal(const GPtrArray *requests)
{
    for (guint i = 0; i < requests->len; i++) {
        const UprofOutputRequest *request = g_ptr_array_index(requests, i);
        if (!request->format->is_binary || strcmp(request->path, "-") != 0 ||
            !isatty(STDOUT_FILENO))
            continue;
        uprof_say("virt-uprof: refusing to write binary format '%s' to a terminal; use -o FILE",
                  request->format->name);
        return false;
    }
    return true;
}

/* Adds the files that --waits needs. Returns: false after a message */
static bool
add_waits(const UprofOptions *options, GPtrArray *requests)
{
    g_autoptr(GError) error = NULL;

    if (!options->settings.waits)
        return true;
    if (!uprof_output_request_add_waits(requests, &error)) {
        uprof_say("virt-uprof: %s; try: virt-uprof --help", error->message);
        return false;
    }
    for (guint i = 0; i < requests->len && !options->quiet; i++)
        if (((UprofOutputRequest *)g_ptr_array_index(requests, i))->format->is_capture)
            uprof_say("virt-uprof: a capture has no waits: its report will show none");
    return true;
}

/* ---- While the run goes on ---- */

static void
show_start(const UprofSession *session, void *data)
{
    const Shown *shown = data;

    if (!shown->options->quiet)
        uprof_say_lines(
            uprof_run_lines_start(session->run, session->shown, shown->options->samples));
}

/* The counts of all domains together. */
typedef struct {
    uint64_t samples, running, complete, missed;
    uint64_t held_ns, elapsed_ns; /* the maximum of the domains */
    uint64_t rate_mhz;            /* the maximum of the domains */
} Progress;

static void
add_progress(Progress *progress, const UprofSession *session)
{
    UprofWorkerCounts counted;
    UprofSamplerCounts counts;

    uprof_sampler_counts(session->sampler, &counts);
    uprof_worker_counts(session->worker, &counted);
    progress->samples += counted.samples;
    progress->running += counted.running;
    progress->complete += counted.complete;
    progress->missed += counts.late + counts.busy + counts.skipped + counts.stuck;
    progress->rate_mhz =
        MAX(progress->rate_mhz, session->run->rate_mhz / MAX(counts.divisor * counts.stride, 1));
    progress->elapsed_ns = MAX(progress->elapsed_ns, counts.elapsed_ns);
    progress->held_ns = MAX(progress->held_ns, counts.most_held_ns);
}

static void
show_progress(const GPtrArray *recordings)
{
    Progress progress = { .elapsed_ns = 1 };
    unsigned lines, columns;

    for (guint i = 0; i < recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(recordings, i);
        add_progress(&progress, recording->session);
    }
    if (recordings->len == 0) {
        uprof_say_progress("");
        return;
    }
    g_autofree char *percent = uprof_format_percent(progress.complete, progress.running);
    g_autofree char *held = uprof_format_percent(progress.held_ns, progress.elapsed_ns);
    g_autofree char *hz = uprof_format_hz(progress.rate_mhz);
    g_autofree char *text = g_strdup_printf(
        "  %" G_GUINT64_FORMAT " s  %s Hz  %" G_GUINT64_FORMAT " samples  %" G_GUINT64_FORMAT
        " missed  %s %% complete  each vCPU held %s %%",
        progress.elapsed_ns / UPROF_NS_PER_S, hz, progress.samples, progress.missed, percent, held);
    uprof_terminal_size(STDERR_FILENO, &lines, &columns);
    if (strlen(text) >= columns)
        text[columns > 0 ? columns - 1 : 0] = '\0'; /* If the line wraps, it cannot be replaced. */
    uprof_say_progress(text);
}

static bool
refresh_progress(const GPtrArray *recordings, void *data)
{
    Shown *shown = data;
    const uint64_t now_ns = uprof_clock_now_ns();
    char *const *command = (char *const *)shown->options->child->pdata;
    g_autoptr(GError) error = NULL;

    /* The command begins when the first domain is sampled, and its end ends the run. */
    if (command[0] && shown->child.pid == 0 && recordings->len > 0 &&
        !uprof_child_start(&shown->child, command, &error))
        uprof_say_error(error);
    if (uprof_child_has_ended(&shown->child))
        return false;

    if (shown->shows_progress && now_ns - shown->shown_ns >= UPROF_NS_PER_S) {
        shown->shown_ns = now_ns;
        show_progress(recordings);
    }
    return true;
}

/* Signals of the terminal reach the command, too; others are passed on. */
static void
pass_signal(int number, bool is_from_terminal, void *data)
{
    if (!is_from_terminal)
        uprof_child_signal(&((Shown *)data)->child, number);
}

static void
clear_progress(void *data)
{
    uprof_say_progress("");
}

/* ---- At the end ---- */

/* In the worker: the numbers of the run. @argument: UprofRunLinesHow */
static void
make_summary(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    UprofRunLinesHow how;

    memcpy(&how, argument.data, sizeof(how));
    uprof_worker_reply_begin();
    uprof_say_lines(uprof_run_lines_end(analysis->run, analysis->shown, &how));
    uprof_worker_reply_end(reply);
}

/* In the worker: why stacks have ended. */
static void
make_ends(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    uprof_worker_reply_begin();
    for (unsigned i = 0; i < UPROF_N_ENDS; i++)
        if (analysis->pipeline->ends[i] > 0)
            uprof_say("%s: %" G_GUINT64_FORMAT " stacks are %s%s", analysis->shown,
                      analysis->pipeline->ends[i],
                      i == UPROF_END_BASE ? "" : "cut off: ", uprof_end_name((UprofEnd)i));
    uprof_worker_reply_end(reply);
}

/* In the worker: the hottest functions. @argument: UprofTableStyle */
static void
make_table(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    UprofTableStyle style;

    memcpy(&style, argument.data, sizeof(style));
    GString *table = uprof_table_render(analysis->pipeline->profile, &style);
    g_byte_array_append(reply, (const guint8 *)table->str, (guint)table->len);
    g_string_free(table, TRUE);
}

enum { CALL_SUMMARY, CALL_ENDS, CALL_TABLE };

static const UprofAnalysisCall calls[] = {
    [CALL_SUMMARY] = make_summary,
    [CALL_ENDS] = make_ends,
    [CALL_TABLE] = make_table,
};

static void
show_summary(const UprofRecording *recording, void *data)
{
    const UprofOptions *options = ((const Shown *)data)->options;
    const UprofRunLinesHow how = { .is_verbose = options->verbose, .is_live = true };

    if (!options->quiet)
        uprof_worker_reply_say(recording->session, CALL_SUMMARY, (UprofSlice){ &how, sizeof(how) });
    if (options->verbose)
        uprof_worker_reply_say(recording->session, CALL_ENDS, (UprofSlice){ 0 });
}

static UprofErrorCode
show_table(const UprofRecording *recording, void *data)
{
    const Shown *shown = data;
    const unsigned rows = shown->options->rows > 0 ? shown->options->rows : ROWS_DEFAULT;
    const UprofTableStyle style = uprof_terminal_style(rows);
    g_autoptr(GError) error = NULL;

    if (!shown->shows_table || !isatty(STDOUT_FILENO)) /* a terminal may have been closed */
        return UPROF_ERROR_NONE;
    GString *table = uprof_worker_reply_text(recording->session, CALL_TABLE,
                                             (UprofSlice){ &style, sizeof(style) }, &error);
    if (!table) {
        uprof_say_error(error);
        return uprof_error_code_of(error);
    }
    return uprof_terminal_print(table);
}

/* ---- Sending the run ---- */

static int
show_push(const GArray *results, UprofErrorCode code, void *data)
{
    const UprofOptions *options = data;

    return uprof_exit_of_code(
        uprof_error_merge(uprof_push_say_results(results, options->quiet), code));
}

/* Adds the files of a stored round to @requests. Returns: (nullable): %NULL without --push */
static UprofPushRun *
start_push(UprofOptions *options, const UprofNotices *notices, GPtrArray *requests, GError **error)
{
    g_autoptr(UprofConfig) config =
        options->push ? uprof_config_load(options->config_path, error) : NULL;
    g_autoptr(GPtrArray) destinations =
        config ? uprof_push_choose(config->destinations, options->targets, error) : NULL;
    const UprofPushRunPlan plan = { destinations, notices, show_push, options };

    if (destinations && destinations->len == 0)
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                            "--push: no destination is configured; see: man virt-uprof.xml");
    UprofPushRun *run =
        destinations && destinations->len > 0 ? uprof_push_run_start(&plan, error) : NULL;
    if (run)
        uprof_push_run_add_outputs(run, requests);
    return run;
}

static void
exit_at_once(void)
{
    _exit(UPROF_EXIT_FAILED);
}

int
uprof_record_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    UprofErrorTally tally = { 0 };
    g_autoptr(GError) error = NULL;
    Shown shown = {
        .options = options,
        .shows_progress = isatty(STDERR_FILENO) && !options->quiet,
        .shown_ns = uprof_clock_now_ns(),
    };
    const UprofRunObserver observer = {
        .started = show_start,
        .looped = refresh_progress,
        .signaled = pass_signal,
        .sampled = clear_progress,
        .ended = show_summary,
        .saving = show_table,
        .abort_run = exit_at_once,
        .leave = uprof_exit_leave,
        .data = &shown,
    };
    g_autoptr(GPtrArray) outputs = list_outputs(options, &shown.shows_table);
    UprofRecordSettings settings = uprof_options_record(options, &notices);

    if (!check_terminal(outputs))
        return UPROF_EXIT_FAILED;
    if (!add_waits(options, outputs))
        return UPROF_EXIT_USAGE;
    if (options->child->pdata[0] &&
        !uprof_child_is_there((char *const *)options->child->pdata, &error)) {
        uprof_say_error(error);
        return UPROF_CHILD_NOT_FOUND;
    }
    UprofPushRun *push = start_push(options, &notices, outputs, &error);
    if (error)
        return uprof_exit_say_error(error);
    settings.outputs = outputs;
    settings.observer = &observer;
    settings.calls = calls;
    settings.n_calls = G_N_ELEMENTS(calls);
    const UprofErrorCode code = uprof_record_domains(&settings, &tally);
    const int status = uprof_child_wait(&shown.child);
    int pushed = push ? uprof_push_run_end(push) : UPROF_EXIT_OK;
    if (pushed < 0) {
        uprof_say("virt-uprof: the process that sends the run has died");
        pushed = UPROF_EXIT_FAILED;
    }
    return status != 0 ? status : uprof_exit_worse(uprof_exit_of_run(&tally, code), pushed);
}
