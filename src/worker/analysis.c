/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "analysis-priv.h"

#include "checkpoint-priv.h"
#include "kept-file-priv.h"
#include "protocol-priv.h"
#include "remote-priv.h"
#include "uprof/capture-reader.h"
#include "uprof/clock.h"
#include "uprof/output.h"
#include "uprof/settings.h"
#include "uprof/task-capture.h"
#include "uprof/text.h"
#include "uprof/worker.h"

#include <string.h>

#include "begin-priv.h"

enum {
    TELL_NS = 100 * 1000 * 1000, /* between two messages about counts */
    CHECKPOINT_S = 2,            /* between two checkpoints */
    CHECKPOINT_SHARE = 50,       /* checkpoints take at most 1 / CHECKPOINT_SHARE of the time */
    END_HURRIED_MS = 600,        /* for inlined functions and lines, after Ctrl-C */
    UNSEEN_SAMPLES = 5,          /* after which a symbol file should have been seen */
    CAPTURE_S = 3,               /* for the stacks of tasks in user space that a capture gets */
    NO_WAITS_S = 5,              /* until the warning that no waits are counted */
    WAITS_END_MS = 1000,         /* for the stacks of tasks that were not found yet */
    WAITS_HURRIED_MS = 100,      /* the same, after Ctrl-C */
};

/* A file that the program has opened, and will commit. */
typedef struct {
    UprofFile *file;           /* (nullable): owned; %NULL: written by an earlier process */
    const UprofFormat *format; /* borrowed */
    bool is_waits;             /* gets the profile of waits */
} Output;

/* The worker's own state. */
typedef struct {
    UprofAnalysis analysis; /* the part that calls get */
    const UprofWorkerPlan *plan;
    int requests, stream;
    const UprofLinks *told_links;         /* (nullable): borrowed: sent last */
    int *told_sizes;                      /* by vCPU: sent last; owned */
    uint64_t told_ns;                     /* when counts were sent last */
    int checkpoints[UPROF_N_CHECKPOINTS]; /* descriptors */
    uint32_t checkpoint;                  /* the next one to write */
    int kept;                             /* see kept-file-priv.h; -1: none */
    uint64_t checkpoint_ns;               /* when to write it */
    const UprofMessage *message;          /* borrowed: of the current call */
    char *kernel; /* (nullable): owned: used if a symbol file is not what the guest runs */
    uint64_t first_walk_ns; /* when the first walk of tasks was due */
    bool has_no_waits;      /* a warning has said why */
    unsigned n_replaceable; /* of the first symbol files; 0: they are not compared any more */
    unsigned n_taken;       /* snapshots while @n_replaceable is not 0 */
    unsigned other_kernel;  /* the symbol file that the program has added; 0: none */
} Worker;

/* A buffer for any message on the stream, with the alignment that each needs. */
typedef union {
    UprofSnapshot snapshot;
    struct {
        UprofCallHead head;
        uint64_t argument[];
    } call;
    UprofWalkDo walk;
    uint8_t bytes[UPROF_CHANNEL_BYTES_MAX];
} Input;

/* ---- Messages to the program ---- */

static void
send_notice(UprofNoticeKind kind, const char *text, void *data)
{
    const Worker *worker = data;
    const uint32_t number = kind;
    const UprofSlice parts[] = {
        { &number, sizeof(number) },
        { text, MIN(strlen(text), (size_t)UPROF_NOTICE_BYTES_MAX) },
    };

    uprof_remote_tell(worker->requests, UPROF_TELL_NOTICE, parts, G_N_ELEMENTS(parts));
}

static void
send_reply(const Worker *worker, const GByteArray *reply)
{
    size_t done = 0;

    do {
        const size_t len = MIN(reply->len - done, (size_t)UPROF_REPLY_PART_BYTES);
        const uint32_t is_last = done + len == reply->len;
        const UprofSlice parts[] = {
            { &is_last, sizeof(is_last) },
            { len > 0 ? reply->data + done : NULL, len },
        };
        uprof_remote_tell(worker->requests, UPROF_TELL_REPLY, parts, G_N_ELEMENTS(parts));
        done += len;
    } while (done < reply->len);
}

static void
fill_counts(const UprofAnalysis *analysis, UprofWorkerCounts *counts)
{
    *counts = (UprofWorkerCounts){
        .samples = analysis->run->samples,
        .running = analysis->run->running,
        .complete = analysis->run->complete,
        .untimed = uprof_profile_n_untimed(analysis->pipeline->profile),
    };
}

static void
tell_counts(Worker *worker)
{
    UprofWorkerCounts counts;
    const UprofSlice part = { &counts, sizeof(counts) };

    fill_counts(&worker->analysis, &counts);
    uprof_remote_tell(worker->requests, UPROF_TELL_COUNTS, &part, 1);
    worker->told_ns = uprof_clock_now_ns();
}

/* Reports the addresses by which the sampler finds stacks and tasks, if they have changed. */
static void
tell_links(Worker *worker)
{
    const UprofLinks *links = *uprof_linux_links(worker->analysis.pipeline->kernel);
    const UprofSlice part = {
        links,
        links ? sizeof(*links) + links->n_vcpus * sizeof(links->vcpus[0]) : 0,
    };

    if (links == worker->told_links)
        return;
    worker->told_links = links;
    uprof_remote_tell(worker->requests, UPROF_TELL_LINKS, &part, 1);
}

/* Reports the chains that the sampler should follow from now on. */
static void
tell_chains(const Worker *worker)
{
    UprofChainTell tell = { 0 };
    const UprofSlice part = { &tell, sizeof(tell) };

    while (uprof_runtimes_take_chain(worker->analysis.pipeline->runtimes, &tell.slot, &tell.chain))
        uprof_remote_tell(worker->requests, UPROF_TELL_CHAIN, &part, 1);
}

/* Reports the size of the window that the sampler should copy, if the size has changed. */
static void
tell_window(Worker *worker, unsigned vcpu)
{
    const UprofWindowTell tell = { vcpu, worker->analysis.sizes[vcpu].wanted };
    const UprofSlice part = { &tell, sizeof(tell) };

    if (tell.wanted == worker->told_sizes[vcpu])
        return;
    worker->told_sizes[vcpu] = tell.wanted;
    uprof_remote_tell(worker->requests, UPROF_TELL_WINDOW, &part, 1);
}

/* ---- The beginning ---- */

static int
open_metadata(const char *path, void *folders, GError **error)
{
    return uprof_settings_open_symbols(folders, path, error);
}

/*
 * Adds the symbol files of the metadata. Each file must be in a folder that the configuration
 * allows, or be the domain's own kernel.
 */
static void
add_metadata_symbols(UprofAnalysis *analysis, const UprofBegin *begin)
{
    const UprofSymOpener opener = { open_metadata, begin->metadata_folders };

    for (guint i = 0; i < begin->metadata_symbols->len; i++) {
        const char *path = g_ptr_array_index(begin->metadata_symbols, i);
        const bool is_kernel = g_strcmp0(path, begin->kernel) == 0;
        g_autoptr(GError) error = NULL;
        if (!uprof_sym_add_file_by(analysis->pipeline->sym, path, is_kernel ? NULL : &opener, true,
                                   &error))
            uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING, "%s: metadata: %s; ignored",
                         analysis->shown, error->message);
    }
}

/* Adds the file of <os><kernel> as a source of names. The user has given no others. */
static void
add_kernel(UprofAnalysis *analysis, const UprofBegin *begin)
{
    UprofSym *sym = analysis->pipeline->sym;
    g_autoptr(GError) error = NULL;

    if (!begin->kernel) {
        analysis->symbols_hint = g_strdup(begin->kernel_hint);
    } else if (!uprof_sym_add_file(sym, begin->kernel, true, &error)) {
        analysis->symbols_hint = g_strdup_printf("%s: give its symbols with -s", error->message);
        /* a file without symbols, such as a compressed kernel of Linux, is usual */
        if (!g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA) &&
            !g_error_matches(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED))
            uprof_notice(&analysis->notices, UPROF_NOTICE_HINT, "%s: %s", analysis->shown,
                         analysis->symbols_hint);
        /* the code of a file without symbols still helps to find callers */
        uprof_sym_add_file(sym, begin->kernel, false, NULL);
    }
}

static bool
add_symbols(Worker *worker, const UprofBegin *begin, GError **error)
{
    UprofAnalysis *analysis = &worker->analysis;
    const UprofSymbolSettings *symbols = &worker->plan->symbols;

    if (begin->state.mode == UPROF_BEGIN_SAVE)
        return true;
    if (begin->state.mode != UPROF_BEGIN_FIRST)
        uprof_symbol_settings_apply_usable(symbols, analysis->pipeline->sym, &analysis->notices);
    else if (!uprof_symbol_settings_apply(symbols, analysis->pipeline->sym, error))
        return false;
    uprof_sym_set_domain(analysis->pipeline->sym, analysis->run->uuid);
    if (symbols->files->len == 0)
        add_metadata_symbols(analysis, begin);
    worker->n_replaceable = uprof_sym_n_sources(analysis->pipeline->sym);
    worker->kernel = g_strdup(begin->kernel);
    if (worker->n_replaceable == 0)
        add_kernel(analysis, begin);
    return true;
}

/* Adds the domain's own kernel to the symbol files. Returns: false if there is no other kernel */
static bool
add_other_kernel(Worker *worker)
{
    UprofAnalysis *analysis = &worker->analysis;
    UprofSym *sym = analysis->pipeline->sym;
    const unsigned n = uprof_sym_n_sources(sym);

    for (unsigned i = 0; i < n; i++) {
        UprofSymSource source;
        uprof_sym_source(sym, i, &source);
        if (g_strcmp0(source.path, worker->kernel) == 0)
            return false;
    }
    if (!worker->kernel || !uprof_sym_add_file(sym, worker->kernel, true, NULL))
        return false;
    worker->other_kernel = n;
    if (!uprof_pipeline_add_images(analysis->pipeline, &analysis->capture_error))
        analysis->pipeline->writer = NULL; /* the run continues without the capture */
    return true;
}

/* Says at once that a symbol file is not what the guest runs, and uses the domain's own kernel. */
static void
replace_mismatched(Worker *worker)
{
    UprofAnalysis *analysis = &worker->analysis;
    const char *path = uprof_pipeline_find_mismatch(analysis->pipeline, worker->n_replaceable);

    if (!path)
        return;
    g_autofree char *wrong = uprof_text_quote(path);
    g_autofree char *kernel = uprof_text_quote(worker->kernel);
    worker->n_replaceable = 0;
    if (worker->other_kernel == 0 && !add_other_kernel(worker))
        uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING,
                     "%s: '%s' is not what this guest runs, and is ignored; give the right file "
                     "with -s",
                     analysis->shown, wrong);
    else
        uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING,
                     "%s: '%s' is not what this guest runs; ignored, taking its <kernel> '%s'",
                     analysis->shown, wrong, kernel);
}

/* Warns once if samples are in the domain's own kernel, but in none of the files of the user. */
static void
warn_about_unseen(Worker *worker, const char *path)
{
    UprofAnalysis *analysis = &worker->analysis;
    UprofSymSource source;

    if (worker->other_kernel == 0)
        return;
    uprof_sym_source(analysis->pipeline->sym, worker->other_kernel, &source);
    if (source.n_seen == 0)
        return;
    g_autofree char *unseen = uprof_text_quote(path);
    g_autofree char *kernel = uprof_text_quote(worker->kernel);
    worker->n_replaceable = 0;
    uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING,
                 "%s: no sample is in the code of '%s', but samples are in the domain's <kernel> "
                 "'%s', which is used, too; if the file is right, its load address is missing "
                 "(-s FILE@BASE)",
                 analysis->shown, unseen, kernel);
}

/*
 * Uses the domain's own kernel, too, if the first samples are in no file of the user. A program
 * that can be loaded anywhere is linked for low addresses, where the guest has no code. Such a file
 * is not compared with the guest.
 */
static void
check_unseen(Worker *worker)
{
    if (worker->n_replaceable == 0 || ++worker->n_taken < UNSEEN_SAMPLES)
        return;
    const char *path = uprof_pipeline_find_unseen(worker->analysis.pipeline, worker->n_replaceable);
    if (path && worker->n_taken == UNSEEN_SAMPLES)
        add_other_kernel(worker);
    if (path)
        warn_about_unseen(worker, path);
}

static void
make_sizes(Worker *worker, unsigned n_vcpus)
{
    UprofAnalysis *analysis = &worker->analysis;

    g_free(analysis->sizes);
    g_free(worker->told_sizes);
    analysis->sizes = g_new0(UprofWindowSize, n_vcpus);
    worker->told_sizes = g_new0(int, n_vcpus);
    for (unsigned i = 0; i < n_vcpus; i++) {
        uprof_window_size_init(&analysis->sizes[i]);
        worker->told_sizes[i] = analysis->sizes[i].wanted;
    }
    analysis->pipeline->sizes = analysis->sizes;
}

/* Takes the descriptors of outputs and checkpoints, which came with the message. */
static void
open_outputs(Worker *worker, const UprofBegin *begin)
{
    UprofAnalysis *analysis = &worker->analysis;
    unsigned n_fds = 0;

    for (guint i = 0; i < begin->outputs->len; i++) {
        const UprofBeginOutput *named = &g_array_index(begin->outputs, UprofBeginOutput, i);
        Output *output = g_new0(Output, 1);
        output->format = uprof_format_by_name(named->format);
        output->is_waits = named->is_waits;
        if (begin->state.outputs >> i & 1)
            output->file =
                uprof_file_adopt(worker->message->fds[n_fds++], named->shown, named->is_stdout);
        if (output->format->is_capture && begin->state.mode <= UPROF_BEGIN_AGAIN)
            analysis->writer = uprof_writer_new(uprof_file_fd(output->file));
        g_ptr_array_add(analysis->outputs, output);
    }
    for (unsigned i = 0; i < UPROF_N_CHECKPOINTS; i++)
        worker->checkpoints[i] = worker->message->fds[n_fds++];
    worker->kept = begin->state.has_kept ? worker->message->fds[n_fds++] : -1;
}

static bool
wants_times(const UprofAnalysis *analysis)
{
    for (guint i = 0; i < analysis->outputs->len; i++)
        if (((const Output *)g_ptr_array_index(analysis->outputs, i))->format->is_timed)
            return true;
    return false;
}

/* Takes over the counts of a process that has died, from its checkpoint. */
static void
read_checkpoint(Worker *worker, int which)
{
    UprofAnalysis *analysis = &worker->analysis;
    UprofProfile *profile = analysis->pipeline->profile;
    const UprofCheckpointProfiles profiles = { profile, analysis->pipeline->waits };
    g_autoptr(GError) error = NULL;

    worker->checkpoint_ns = uprof_clock_now_ns() + CHECKPOINT_S * UPROF_NS_PER_S;
    if (which < 0)
        return;
    worker->checkpoint = ((unsigned)which + 1) % UPROF_N_CHECKPOINTS;
    if (!uprof_checkpoint_read(worker->checkpoints[which], &profiles, analysis->run, &error))
        uprof_notice(&analysis->notices, UPROF_NOTICE_WARNING,
                     "%s: its earlier samples cannot be used: %s", analysis->shown, error->message);
    if (wants_times(analysis))
        uprof_profile_add_untimed(profile, uprof_profile_total(profile));
}

/* A replay of a capture has no rules of earlier runs, so its run has none either. */
static bool
has_rules(const Worker *worker)
{
    return worker->kept >= 0 && !worker->analysis.writer;
}

/* A list that cannot be parsed is replaced at the end. */
static void
read_rules(const Worker *worker)
{
    g_autoptr(GByteArray) bytes = has_rules(worker) ? uprof_kept_file_read(worker->kept) : NULL;
    UprofRuleList *list =
        bytes ? uprof_rule_list_parse("rules", (UprofSlice){ bytes->data, bytes->len }, NULL)
              : NULL;

    if (list)
        uprof_pipeline_keep_rules(worker->analysis.pipeline, list);
    if (worker->kept >= 0)
        uprof_kept_file_clear(worker->kept);
}

static void
write_rules(const Worker *worker)
{
    g_autoptr(GByteArray) bytes =
        has_rules(worker) ? uprof_pipeline_pack_rules(worker->analysis.pipeline) : NULL;

    if (bytes)
        uprof_kept_file_write(worker->kept, bytes);
}

static bool
begin_analysis(Worker *worker, UprofSlice argument, GError **error)
{
    UprofAnalysis *analysis = &worker->analysis;
    g_auto(UprofBegin) begin = { 0 };

    uprof_begin_unpack(&begin, argument);
    analysis->shown = g_strdup(begin.shown);
    if (!uprof_capture_parse_run((UprofSlice){ begin.run_text, strlen(begin.run_text) },
                                 analysis->run, error))
        return false;
    for (guint i = 0; i < begin.file_names->len; i++)
        g_ptr_array_add(analysis->run->files, g_strdup(g_ptr_array_index(begin.file_names, i)));
    begin.state.facts.arch = uprof_arch_find(analysis->run->arch);
    open_outputs(worker, &begin);
    analysis->guest = uprof_remote_new(worker->requests, &begin.state.facts);
    analysis->pipeline = uprof_pipeline_new(analysis->guest, analysis->run, analysis->writer);
    if (analysis->writer)
        uprof_linux_want_tasks(analysis->pipeline->kernel);
    if (wants_times(analysis))
        uprof_profile_keep_times(analysis->pipeline->profile);
    if (begin.waits)
        uprof_pipeline_want_waits(analysis->pipeline);
    if (begin.waits && begin.state.mode != UPROF_BEGIN_SAVE)
        analysis->waits = uprof_waits_new(analysis->pipeline, analysis->guest, uprof_clock_now_ns);
    make_sizes(worker, begin.state.facts.n_vcpus);
    read_checkpoint(worker, begin.state.checkpoint);
    read_rules(worker);
    return add_symbols(worker, &begin, error) && uprof_pipeline_begin(analysis->pipeline, error) &&
           (!analysis->writer || uprof_writer_flush(analysis->writer, error));
}

static void
move_guest(Worker *worker, UprofSlice argument)
{
    UprofAnalysis *analysis = &worker->analysis;
    UprofGuest *old = analysis->guest;
    UprofRemoteFacts facts;

    memcpy(&facts, argument.data, sizeof(facts));
    facts.arch = old->arch;
    analysis->guest = uprof_remote_new(worker->requests, &facts);
    uprof_pipeline_move(analysis->pipeline, analysis->guest);
    if (analysis->waits)
        uprof_waits_move(analysis->waits, analysis->guest);
    uprof_guest_close(old);
    make_sizes(worker, facts.n_vcpus);
}

/* ---- Checkpoints ---- */

/*
 * Overwrites the older one of the two checkpoints. A large profile takes long to write, so it is
 * written less often.
 */
static void
write_checkpoint(Worker *worker)
{
    const UprofAnalysis *analysis = &worker->analysis;
    const UprofPipeline *pipeline = analysis->pipeline;
    const UprofCheckpointProfiles profiles = { pipeline->profile, pipeline->waits };
    const UprofSlice part = { &worker->checkpoint, sizeof(worker->checkpoint) };
    const uint64_t start_ns = uprof_clock_now_ns();

    tell_counts(worker);
    if (analysis->writer && !analysis->capture_error)
        uprof_writer_flush(analysis->writer, NULL);
    if (analysis->outputs->len > 0 &&
        uprof_checkpoint_write(worker->checkpoints[worker->checkpoint], &profiles, analysis->run,
                               pipeline->sym)) {
        uprof_remote_tell(worker->requests, UPROF_TELL_CHECKPOINT, &part, 1);
        worker->checkpoint = (worker->checkpoint + 1) % UPROF_N_CHECKPOINTS;
    }
    const uint64_t end_ns = uprof_clock_now_ns();
    worker->checkpoint_ns =
        end_ns + MAX(CHECKPOINT_S * UPROF_NS_PER_S, CHECKPOINT_SHARE * (end_ns - start_ns));
}

static void
tell_progress(Worker *worker)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    if (now_ns - worker->told_ns >= TELL_NS)
        tell_counts(worker);
    if (now_ns >= worker->checkpoint_ns)
        write_checkpoint(worker);
}

/* ---- Snapshots ---- */

static void
take_snapshot(Worker *worker, UprofSnapshot *snapshot)
{
    UprofAnalysis *analysis = &worker->analysis;
    g_autoptr(GError) error = NULL;

    snapshot->owner = NULL;
    analysis->time_ns = snapshot->time_ns;
    analysis->reset = snapshot->reset;
    if (!uprof_pipeline_take(analysis->pipeline, snapshot, &error) && analysis->pipeline->writer) {
        /* the run continues without the capture */
        analysis->capture_error = g_steal_pointer(&error);
        analysis->pipeline->writer = NULL;
    }
    replace_mismatched(worker);
    check_unseen(worker);
    tell_links(worker);
    tell_chains(worker);
    if (snapshot->vcpu < analysis->guest->n_vcpus)
        tell_window(worker, snapshot->vcpu);
}

/* A snapshot in the middle of a message ends with its last window. */
static void
take_snapshots(Worker *worker, Input *input)
{
    for (size_t at = 0; at < worker->message->len;) {
        UprofSnapshot *snapshot = (UprofSnapshot *)(void *)(input->bytes + at);
        at += uprof_packed_bytes(snapshot);
        take_snapshot(worker, snapshot);
    }
    tell_progress(worker);
}

/* ---- Waits ---- */

/* Warns once why no waits are counted. */
static void
warn_about_waits(Worker *worker, const char *why)
{
    if (!worker->has_no_waits)
        uprof_notice(&worker->analysis.notices, UPROF_NOTICE_WARNING,
                     "%s: no waits are counted: %s", worker->analysis.shown, why);
    worker->has_no_waits = true;
}

/* A kernel that boots may be found later. */
static void
walk_tasks(Worker *worker, const UprofWalkDo *walk)
{
    const UprofWaitTick tick = { walk->time_ns, walk->n_pauses, worker->analysis.reset };
    UprofAnalysis *analysis = &worker->analysis;

    if (!analysis->waits)
        return;
    if (worker->first_walk_ns == 0)
        worker->first_walk_ns = walk->time_ns;
    uprof_waits_step(analysis->waits, &tick);
    if (analysis->run->waits.walks == 0 && uprof_waits_obstacle(analysis->waits) &&
        walk->time_ns - worker->first_walk_ns >= NO_WAITS_S * UPROF_NS_PER_S)
        warn_about_waits(worker, uprof_waits_obstacle(analysis->waits));
    tell_progress(worker);
}

static void
end_waits(Worker *worker, bool is_hurried)
{
    UprofAnalysis *analysis = &worker->analysis;

    if (!analysis->waits)
        return;
    const char *why = uprof_waits_obstacle(analysis->waits);
    uprof_waits_end(analysis->waits,
                    (is_hurried ? WAITS_HURRIED_MS : WAITS_END_MS) * UPROF_NS_PER_MS);
    if (analysis->run->waits.walks == 0)
        warn_about_waits(worker, why ? why : "the run was too short");
}

/* ---- The end ---- */

/* Users look into a capture for the tasks, too. */
static void
capture_tasks(const UprofAnalysis *analysis)
{
    const UprofTaskRequest request = {
        .time_ns = analysis->time_ns,
        .reset = analysis->reset,
        .user_ns = CAPTURE_S * UPROF_NS_PER_S,
    };

    if (analysis->pipeline->writer)
        uprof_task_capture(analysis->pipeline, &request);
}

static void
end_analysis(Worker *worker, UprofSlice argument, GByteArray *reply)
{
    UprofAnalysis *analysis = &worker->analysis;
    UprofWorkerCounts counts;
    UprofEndHead head;

    memcpy(&head, argument.data, sizeof(head));
    uprof_capture_parse_run(
        (UprofSlice){ (const char *)argument.data + sizeof(head), argument.len - sizeof(head) },
        analysis->run, NULL);
    end_waits(worker, head.is_hurried);
    /* debug information is read next, and may be hostile */
    write_checkpoint(worker);
    write_rules(worker);
    uprof_pipeline_end(analysis->pipeline, head.is_hurried ? END_HURRIED_MS : UPROF_SYM_RESOLVE_MS);
    if (!head.is_hurried)
        capture_tasks(analysis);
    /* the program has counted its own processor time */
    analysis->run->cpu_ns += uprof_clock_cpu_ns();
    fill_counts(analysis, &counts);
    g_byte_array_append(reply, (const guint8 *)&counts, sizeof(counts));
}

static bool
save_capture(UprofAnalysis *analysis, GError **error)
{
    if (!analysis->writer)
        return true; /* the process that has died wrote the capture */
    if (analysis->capture_error) {
        g_propagate_error(error, g_steal_pointer(&analysis->capture_error));
        return false;
    }
    return uprof_writer_end(analysis->writer, analysis->run, error) &&
           uprof_writer_flush(analysis->writer, error);
}

static bool
save_output(UprofAnalysis *analysis, UprofSlice argument, bool *is_closed, GError **error)
{
    uint32_t i;

    memcpy(&i, argument.data, sizeof(i));
    Output *output = g_ptr_array_index(analysis->outputs, i);
    if (output->format->is_capture)
        return save_capture(analysis, error);
    const UprofPipeline *pipeline = analysis->pipeline;
    const bool ok = output->is_waits ? uprof_output_write_waits(output->format, pipeline->waits,
                                                                analysis->run, output->file, error)
                                     : uprof_output_write_both(output->format, pipeline->profile,
                                                               pipeline->waits, analysis->run,
                                                               output->file, error);
    *is_closed = !ok && uprof_file_is_closed(output->file);
    return ok;
}

/* ---- Messages ---- */

static void
put_outcome(GByteArray *reply, const GError *error, bool is_closed)
{
    const UprofOutcome outcome = { uprof_error_code_of(error), is_closed };

    g_byte_array_append(reply, (const guint8 *)&outcome, sizeof(outcome));
    if (error)
        g_byte_array_append(reply, (const guint8 *)error->message, (guint)strlen(error->message));
}

static void
run_call(Worker *worker, uint64_t call, UprofSlice argument)
{
    g_autoptr(GByteArray) reply = g_byte_array_new();
    g_autoptr(GError) error = NULL;
    bool is_closed = false;

    switch (call) {
    case UPROF_CALL_BEGIN:
        begin_analysis(worker, argument, &error);
        put_outcome(reply, error, false);
        break;
    case UPROF_CALL_MOVE:
        move_guest(worker, argument);
        put_outcome(reply, NULL, false);
        break;
    case UPROF_CALL_SYNC:
        put_outcome(reply, NULL, false);
        break;
    case UPROF_CALL_END:
        end_analysis(worker, argument, reply);
        break;
    case UPROF_CALL_SAVE:
        save_output(&worker->analysis, argument, &is_closed, &error);
        put_outcome(reply, error, is_closed);
        break;
    default:
        g_assert(call - UPROF_N_OWN_CALLS < worker->plan->n_calls);
        worker->plan->calls[call - UPROF_N_OWN_CALLS](&worker->analysis, argument, reply);
    }
    if (worker->analysis.pipeline)
        tell_counts(worker);
    send_reply(worker, reply);
}

static void
handle_message(Worker *worker, Input *input)
{
    const size_t head = G_STRUCT_OFFSET(Input, call.argument);

    if (worker->message->type == UPROF_DO_SNAPSHOTS)
        take_snapshots(worker, input);
    else if (worker->message->type == UPROF_DO_WALK)
        walk_tasks(worker, &input->walk);
    else if (worker->message->type == UPROF_DO_FILE)
        uprof_sym_reload_modules(worker->analysis.pipeline->sym, (const char *)input->bytes);
    else if (worker->message->type == UPROF_DO_ANSWER)
        uprof_remote_tell(worker->requests, UPROF_TELL_ANSWER, NULL, 0);
    else
        run_call(worker, input->call.head.call,
                 (UprofSlice){ input->call.argument,
                               worker->message->len > head ? worker->message->len - head : 0 });
}

static void
free_output(gpointer data)
{
    Output *output = data;

    uprof_file_abort(output->file);
    g_free(output);
}

static void
clear_worker(Worker *worker)
{
    UprofAnalysis *analysis = &worker->analysis;

    uprof_waits_free(analysis->waits);
    uprof_task_reading_free(analysis->tasks);
    uprof_pipeline_free(analysis->pipeline);
    uprof_guest_close(analysis->guest);
    uprof_writer_free(analysis->writer);
    g_ptr_array_unref(analysis->outputs);
    uprof_run_free(analysis->run);
    g_clear_error(&analysis->capture_error);
    g_free(analysis->shown);
    g_free(analysis->symbols_hint);
    g_free(worker->kernel);
    g_free(analysis->sizes);
    g_free(worker->told_sizes);
}

int
uprof_analysis_run(const int *fds, unsigned n_fds, void *data)
{
    g_autofree Input *input = g_new0(Input, 1);
    UprofMessage message;
    Worker worker = {
        .plan = data,
        .requests = fds[0],
        .stream = fds[1],
        .message = &message,
        .analysis.run = uprof_run_new(),
        .analysis.outputs = g_ptr_array_new_with_free_func(free_output),
    };

    g_assert(n_fds == 2);
    worker.analysis.notices = (UprofNotices){ send_notice, &worker };
    uprof_remote_open_files(worker.requests);
    while (uprof_channel_receive(worker.stream, &message, input, sizeof(*input)))
        handle_message(&worker, input);
    clear_worker(&worker);
    return 0;
}
