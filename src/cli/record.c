/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record: sample domains, write files.
 *
 * Threads: main (signals, progress, output, domains that come later), one loop
 * for all guests that are held vCPU by vCPU and one for each that is held as a
 * whole, a keeper, and one worker for all. All of them block all signals; main
 * reads them from a descriptor, so that what a signal asks for happens between
 * holds.
 */
#include "commands-priv.h"

#include "access-priv.h"
#include "domid-priv.h"
#include "exit-priv.h"
#include "record-priv.h"
#include "recording-priv.h"
#include "summary-priv.h"
#include "terminal-priv.h"
#include "top-priv.h"
#include "uprof/clock.h"
#include "uprof/keeper.h"
#include "uprof/text.h"
#include "uprof/watch.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    LOOK_MS = 100,
    NEWCOMERS_MS = 1000,
    WORKER_WAIT_MS = 20,
    SETTLE_TRIES = 200,
    SETTLE_STEP_US = 1000,
    RING_BYTES = 4 * 1024 * 1024, /* root's usual limit of locked memory is 8 MiB */
};

/*
 * Recordings are added and never taken away while the run lasts. What changes
 * them is main's alone; the worker finds its own through the snapshots.
 */
typedef struct {
    UprofOptions *options;
    UprofHost *host;
    GPtrArray *recordings; /* of UprofRecording */
    GPtrArray *awaited;    /* of char: words of domains that do not run yet; borrowed */
    GHashTable *known;     /* ids that --all has met */
    UprofGuardian *guardian;
    UprofWatch *watch;
    UprofRing *ring;
    UprofLoop *loop;
    UprofKeeper *keeper;
    UprofTop *top;        /* (nullable): shows what is sampled; then nothing is saved */
    UprofRecordTold told; /* (nullable) */
    void *told_data;
    UprofExitTally tally;
    uint64_t start_ns;
    uint64_t looked_ns; /* for newcomers */
    gint may_end;       /* the worker, once the ring is empty */
    bool guardian_died;
    bool is_sampling;
    char *time;
    int signals;
    unsigned n_signals;
} Record;

static void
free_recording(gpointer data)
{
    uprof_recording_free(data);
}

static void
start(Record *record, UprofRecording *recording)
{
    const UprofSession *session = recording->session;

    if (!record->options->quiet)
        uprof_summary_say_start(session->run, session->shown);
    uprof_keeper_add(record->keeper, session->guest);
    uprof_recording_start(recording, record->loop);
}

/* A domain that joins a run of limited time leaves it with the others. */
static void
shorten(const Record *record, UprofRecording *recording)
{
    const uint64_t asked_ns = record->options->settings.duration_ns;
    const uint64_t gone_ns = uprof_clock_now_ns() - record->start_ns;

    if (asked_ns > 0)
        uprof_sampler_limit(recording->session->sampler,
                            asked_ns > gone_ns ? asked_ns - gone_ns : 1);
}

/* @domain: (transfer full); @is_newcomer: as for shorten(). Errors are said and noted. */
static void
add_domain(Record *record, UprofDomain *domain, bool is_newcomer)
{
    g_autoptr(GError) error = NULL;
    bool locked;
    /* in mid-run nobody waits for another run's end: main has signals to look at */
    UprofRecording *recording =
        uprof_recording_open(domain, record->options, record->time, record->guardian, record->ring,
                             !record->is_sampling && !record->options->no_wait, &locked, &error);

    if (!recording) {
        uprof_exit_count(&record->tally, locked ? UPROF_EXIT_LOCKED : uprof_exit_code(error));
        uprof_say_error(error);
        return;
    }
    g_ptr_array_add(record->recordings, recording);
    if (is_newcomer)
        shorten(record, recording);
    if (record->is_sampling)
        start(record, recording);
}

static bool
is_recorded(const Record *record, const UprofDomain *domain)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        const UprofDomain *known = recording->session->domain;
        /* what has the name has the files, though it may have been made anew */
        if (strcmp(known->uuid, domain->uuid) == 0 || strcmp(known->name, domain->name) == 0)
            return true;
    }
    return false;
}

static void
open_all(Record *record)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_host_list(record->host, &error);
    bool any = record->options->wait;

    if (!domains) {
        uprof_exit_count(&record->tally, uprof_say_error(error));
        return;
    }
    while (domains->len > 0 && !uprof_session_is_interrupted()) {
        UprofDomain *domain = g_ptr_array_steal_index(domains, 0);
        if (domain->state != UPROF_DOMAIN_RUNNING || uprof_access_is_host(domain)) {
            uprof_domain_free(domain);
            continue;
        }
        any = true;
        g_hash_table_add(record->known, GINT_TO_POINTER(domain->id));
        add_domain(record, domain, false);
    }
    if (!any) {
        uprof_say("virt-uprof: no domain runs on %s", uprof_host_uri(record->host));
        uprof_exit_count(&record->tally, UPROF_EXIT_DOMAIN);
    }
}

/* Returns: false if it does not run yet */
static bool
open_word(Record *record, const char *word)
{
    g_autoptr(GError) error = NULL;
    UprofDomain *domain = uprof_domid_find(record->host, word, record->options->quiet, &error);
    const bool may_come = record->options->wait;

    if (!domain) {
        if (may_come && g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND))
            return false;
        uprof_exit_count(&record->tally, uprof_say_error(error));
    } else if (may_come && domain->state != UPROF_DOMAIN_RUNNING) {
        uprof_domain_free(domain);
        return false;
    } else if (is_recorded(record, domain)) {
        uprof_domain_free(domain);
    } else {
        add_domain(record, domain, false);
    }
    return true;
}

static void
open_domains(Record *record)
{
    const GPtrArray *words = record->options->words;

    if (record->options->all)
        open_all(record);
    for (guint i = 0; i < words->len && !uprof_session_is_interrupted(); i++) {
        char *word = g_ptr_array_index(words, i);
        if (!open_word(record, word))
            g_ptr_array_add(record->awaited, word);
    }
    for (guint i = 0; i < record->awaited->len && !record->options->quiet; i++) {
        g_autofree char *shown = uprof_text_quote(g_ptr_array_index(record->awaited, i));
        uprof_say("virt-uprof: waiting for '%s' to start", shown);
    }
}

/* Those that --wait waits for, at the moment when something has started. */
static void
look_for_awaited(Record *record)
{
    uprof_watch_clear(record->watch);
    for (guint i = 0; i < record->awaited->len;) {
        if (open_word(record, g_ptr_array_index(record->awaited, i)))
            g_ptr_array_remove_index(record->awaited, i);
        else
            i++;
    }
}

static void
give_up_waiting(Record *record)
{
    for (guint i = 0; i < record->awaited->len; i++) {
        g_autofree char *shown = uprof_text_quote(g_ptr_array_index(record->awaited, i));
        uprof_say("virt-uprof: '%s' has not started; start it with: virsh start %s", shown,
                  uprof_text_shell_word(g_ptr_array_index(record->awaited, i), "DOMAIN"));
        uprof_exit_count(&record->tally, UPROF_EXIT_DOMAIN);
    }
    g_ptr_array_set_size(record->awaited, 0);
}

/* One that may only be coming up is met again a second later. */
static void
meet(Record *record, int id)
{
    g_autoptr(GError) error = NULL;
    UprofDomain *domain = uprof_host_find_id(record->host, id, &error);

    if (!domain)
        return;
    if (domain->state != UPROF_DOMAIN_RUNNING || uprof_access_is_host(domain)) {
        uprof_domain_free(domain);
        return;
    }
    g_hash_table_add(record->known, GINT_TO_POINTER(id));
    if (is_recorded(record, domain)) {
        g_autofree char *shown = uprof_text_quote(domain->name);
        uprof_say("virt-uprof: %s: it was started anew; this run keeps to what it had sampled",
                  shown);
        uprof_domain_free(domain);
        return;
    }
    add_domain(record, domain, true);
}

/* With --all, domains that have started since. */
static void
look_for_newcomers(Record *record)
{
    g_autoptr(GArray) ids = NULL;
    const uint64_t now_ns = uprof_clock_now_ns();

    if (!record->options->all || now_ns - record->looked_ns < NEWCOMERS_MS * UPROF_NS_PER_MS)
        return;
    record->looked_ns = now_ns;
    ids = uprof_host_running(record->host);
    for (guint i = 0; ids && i < ids->len; i++) {
        const int id = g_array_index(ids, int, i);
        if (!g_hash_table_contains(record->known, GINT_TO_POINTER(id)))
            meet(record, id);
    }
}

static gpointer
run_worker(gpointer data)
{
    Record *record = data;
    const UprofSnapshot *snapshot;

    for (;;) {
        /* asked before the last look, so that nothing comes after it */
        const bool is_last = g_atomic_int_get(&record->may_end);
        while ((snapshot = uprof_ring_peek(record->ring))) {
            uprof_recording_take(snapshot->owner, snapshot);
            uprof_ring_drop(record->ring);
        }
        if (is_last)
            return NULL;
        uprof_ring_wait(record->ring, uprof_clock_now_ns() + WORKER_WAIT_MS * UPROF_NS_PER_MS);
    }
}

static void
stop_all(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        uprof_sampler_stop(recording->session->sampler);
    }
}

/* Whole guests need a guardian; a vCPU that is traced is let go by the kernel. */
static void
stop_guarded(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        if (recording->session->guest->grain == UPROF_GRAIN_GUEST)
            uprof_sampler_stop(recording->session->sampler);
    }
}

/* What did not stop in time may stop while nobody would let it go. */
static void
wait_until_settled(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        UprofGuest *guest = recording->session->guest;
        for (unsigned tries = 0; g_atomic_int_get(&guest->unsettled) && tries < SETTLE_TRIES;
             tries++)
            g_usleep(SETTLE_STEP_US);
    }
}

/* Ctrl-Z: the process may be stopped, but never while it holds a guest. */
static void
suspend_process(const Record *record)
{
    const bool is_parked = uprof_keeper_park(record->keeper);

    wait_until_settled(record);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_sampler_park(
            ((UprofRecording *)g_ptr_array_index(record->recordings, i))->session->sampler);
    if (record->top)
        uprof_top_leave(record->top);
    kill(getpid(), SIGSTOP);
    if (record->top)
        uprof_top_enter(record->top);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_sampler_unpark(
            ((UprofRecording *)g_ptr_array_index(record->recordings, i))->session->sampler);
    if (is_parked)
        uprof_keeper_unpark(record->keeper);
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
        g_ptr_array_set_size(record->awaited, 0);
        break;
    case SIGTSTP:
        suspend_process(record);
        break;
    default:
        break;
    }
}

static void
show_progress(const Record *record)
{
    uint64_t samples = 0, running = 0, complete = 0, missed = 0, held_ns = 0, elapsed_ns = 1;
    uint64_t rate_mhz = 0;

    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        UprofPipeline *pipeline = recording->session->pipeline;
        UprofSamplerCounts counts;
        uprof_sampler_counts(recording->session->sampler, &counts);
        g_mutex_lock(&pipeline->lock);
        samples += pipeline->run->samples;
        running += pipeline->run->running;
        complete += pipeline->run->complete;
        g_mutex_unlock(&pipeline->lock);
        missed += counts.late + counts.busy + counts.skipped + counts.stuck;
        rate_mhz = MAX(rate_mhz,
                       recording->session->run->rate_mhz / MAX(counts.divisor * counts.stride, 1));
        elapsed_ns = MAX(elapsed_ns, counts.elapsed_ns);
        held_ns = MAX(held_ns, counts.most_held_ns);
    }
    g_autofree char *percent = uprof_format_percent(complete, running);
    g_autofree char *held = uprof_format_percent(held_ns, elapsed_ns);
    g_autofree char *hz = uprof_format_hz(rate_mhz);
    g_autofree char *text = g_strdup_printf(
        "  %" G_GUINT64_FORMAT " s  %s Hz  %" G_GUINT64_FORMAT " samples  %" G_GUINT64_FORMAT
        " missed  %s %% complete  each vCPU held %s %%",
        elapsed_ns / UPROF_NS_PER_S, hz, samples, missed, percent, held);
    unsigned lines, columns;

    uprof_terminal_size(STDERR_FILENO, &lines, &columns);
    if (strlen(text) >= columns)
        text[columns > 0 ? columns - 1 : 0] = '\0'; /* a line that wraps cannot be rewritten */
    uprof_say_progress(text);
}

/*
 * From one vCPU at a time to the whole guest, in mid-run. What the one way has
 * given is with the worker by now, and what it counted is noted.
 */
static void
fall_back(Record *record, UprofRecording *recording)
{
    UprofSession *session = recording->session;
    g_autoptr(GError) error = NULL;

    recording->has_fallen_back = true;
    uprof_loop_sync(record->loop);
    uprof_keeper_remove(record->keeper, session->guest);
    uprof_ring_flush(record->ring);
    if (!uprof_session_fall_back(session, record->options, record->guardian, record->ring,
                                 recording, &error)) {
        recording->code = uprof_exit_worse(recording->code, uprof_say_error(error));
        return;
    }
    uprof_say("virt-uprof: %s: a vCPU thread does not stop in time, again and again; going on "
              "through the monitor, which stops the whole guest",
              session->shown);
    recording->said_stride = 0;
    recording->is_done = false;
    start(record, recording);
}

static bool
may_fall_back(const Record *record, const UprofRecording *recording)
{
    return !recording->has_fallen_back && record->n_signals == 0 &&
           strcmp(record->options->access, "auto") == 0;
}

/* Returns: whether any sampler still runs */
static bool
look_at_samplers(Record *record)
{
    bool any = false;

    for (guint i = 0; i < record->recordings->len; i++) {
        UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        UprofSamplerCounts counts;
        if (recording->is_done)
            continue;
        uprof_sampler_counts(recording->session->sampler, &counts);
        if (!record->options->quiet) {
            uprof_recording_say_rate(recording, &counts);
            uprof_recording_say_hindrance(recording);
        }
        recording->is_done = counts.end != UPROF_SAMPLER_RUNNING;
        if (counts.end == UPROF_SAMPLER_STUCK && may_fall_back(record, recording))
            fall_back(record, recording);
        any |= !recording->is_done;
    }
    return any;
}

/* Returns: whether domains may still come that this run will sample */
static bool
may_come(const Record *record)
{
    const uint64_t asked_ns = record->options->settings.duration_ns;

    if (record->n_signals > 0 || record->guardian_died)
        return false;
    if (record->awaited->len > 0)
        return true;
    return record->options->all &&
           (asked_ns == 0 || uprof_clock_now_ns() - record->start_ns < asked_ns);
}

static bool
has_waited_enough(const Record *record)
{
    const uint64_t wait_ns = record->options->wait_ns;

    return wait_ns > 0 && uprof_clock_now_ns() - record->start_ns >= wait_ns;
}

static void
watch_guardian(Record *record)
{
    uprof_say("virt-uprof: the guardian process has died; sampling of guests that are held as a "
              "whole ends here");
    record->guardian_died = true;
    stop_guarded(record);
}

/* As a signal would. */
static void
end_top(Record *record)
{
    record->n_signals++;
    stop_all(record);
}

static void
wait_for_something(Record *record)
{
    struct pollfd waits[] = {
        { .fd = record->signals, .events = POLLIN },
        { .fd = record->guardian_died ? -1 : uprof_guardian_fd(record->guardian),
          .events = POLLIN },
        { .fd = record->watch && record->awaited->len > 0 ? uprof_watch_fd(record->watch) : -1,
          .events = POLLIN },
        { .fd = record->top ? uprof_top_fd(record->top) : -1, .events = POLLIN },
    };

    poll(waits, G_N_ELEMENTS(waits), LOOK_MS);
    if (waits[2].revents)
        look_for_awaited(record);
    if (waits[0].revents)
        read_signal(record);
    if (waits[1].revents)
        watch_guardian(record);
    /* a terminal that is gone has no keys, but would always have news */
    if ((waits[3].revents & ~POLLIN) ||
        (waits[3].revents && !uprof_top_read_key(record->top, record->recordings)))
        end_top(record);
}

static void
show_top(Record *record)
{
    if (record->top && record->n_signals == 0 && !uprof_top_round(record->top, record->recordings))
        end_top(record);
}

static void
sample(Record *record)
{
    const bool progress = isatty(STDERR_FILENO) && !record->options->quiet;
    uint64_t shown_ns = uprof_clock_now_ns();
    GThread *worker = g_thread_new("worker", run_worker, record);

    record->is_sampling = true;
    record->start_ns = record->looked_ns = uprof_clock_now_ns();
    for (guint i = 0; i < record->recordings->len; i++)
        start(record, g_ptr_array_index(record->recordings, i));
    while (look_at_samplers(record) || may_come(record)) {
        wait_for_something(record);
        show_top(record);
        if (record->n_signals == 0)
            look_for_newcomers(record);
        if (has_waited_enough(record))
            give_up_waiting(record);
        if (progress && uprof_clock_now_ns() - shown_ns >= UPROF_NS_PER_S) {
            shown_ns = uprof_clock_now_ns();
            show_progress(record);
        }
    }
    uprof_say_progress("");
    g_atomic_int_set(&record->may_end, 1);
    g_thread_join(worker);
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
save(Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        if (record->n_signals < 2 && !record->options->is_top)
            uprof_recording_save(recording, record->options);
        if (record->told)
            record->told(recording->session->run, record->told_data);
        uprof_exit_count(&record->tally, recording->code);
    }
}

/* Nothing can come, or what could come has not: what was said before says why. */
static int
exit_code(const Record *record)
{
    const int code = uprof_exit_of(&record->tally);

    if (record->recordings->len == 0 && record->tally.n == 0)
        return UPROF_EXIT_DOMAIN;
    return record->n_signals < 2 ? code : uprof_exit_worse(code, UPROF_EXIT_FAILED);
}

static int
run(Record *record)
{
    g_autoptr(GError) error = NULL;

    const int healed =
        record->options->no_heal ? UPROF_EXIT_OK : uprof_session_heal(record->options->quiet);
    if (healed != UPROF_EXIT_OK)
        return healed;
    if (record->options->wait)
        record->watch = uprof_watch_new(record->options->uri, &error);
    if (!error)
        record->host = uprof_host_open(record->options->uri, false, &error);
    if (error)
        return uprof_say_error(error);
    /* from here on vCPUs are held, and what was found in them is put back at the end */
    record->signals = open_signals();
    open_domains(record);
    if (record->recordings->len == 0 && !may_come(record))
        return uprof_exit_of(&record->tally);
    record->loop = uprof_loop_new();
    record->keeper = uprof_keeper_new();
    if (record->options->is_top)
        record->top = uprof_top_new(record->options);
    sample(record);
    g_clear_pointer(&record->top, uprof_top_free);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_recording_end(g_ptr_array_index(record->recordings, i), record->recordings->len);
    handle_signals(record);
    save(record);
    return exit_code(record);
}

int
uprof_record_run(UprofOptions *options)
{
    return uprof_record_run_told(options, NULL, NULL);
}

int
uprof_record_run_told(UprofOptions *options, UprofRecordTold told, void *data)
{
    g_autoptr(GError) error = NULL;
    Record record = { .options = options, .told = told, .told_data = data };

    record.guardian = uprof_guardian_start(uprof_access_find, &error);
    if (!record.guardian)
        return uprof_say_error(error);
    record.signals = -1;
    record.ring = uprof_ring_new(RING_BYTES / sizeof(UprofSnapshot));
    record.recordings = g_ptr_array_new_with_free_func(free_recording);
    record.awaited = g_ptr_array_new();
    record.known = g_hash_table_new(NULL, NULL);
    record.time = uprof_clock_format_utc(uprof_clock_utc_ns(), TRUE);
    uprof_host_init();

    const int code = run(&record);
    uprof_watch_free(record.watch);
    uprof_keeper_free(record.keeper);
    uprof_loop_free(record.loop);
    g_ptr_array_unref(record.recordings);
    g_ptr_array_unref(record.awaited);
    g_hash_table_unref(record.known);
    uprof_ring_free(record.ring);
    uprof_host_close(record.host);
    g_free(record.time);
    if (record.signals >= 0)
        close(record.signals);
    return uprof_exit_worse(
        code, uprof_session_end_guardian(record.guardian, record.guardian_died, options->quiet));
}
