/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads of a run:
 *   main     handles signals and output, and opens domains that start later
 *   loop     samples all guests that are held one vCPU at a time
 *   loops    one more for each guest that is held as a whole
 *   keeper   polls the guests (poller.h)
 *   watch    ends the process if a thread waits for a daemon that hangs (end-watch-priv.h)
 *   workers  sends snapshots to the workers, and answers their requests (worker.h)
 *
 * All threads block all signals. The main thread reads the signals from a descriptor, and handles
 * each one between two holds.
 */
#include "uprof/record-domains.h"

#include "uprof/access.h"
#include "uprof/clock.h"
#include "uprof/domain-events.h"
#include "uprof/marker.h"
#include "uprof/number-text.h"
#include "uprof/poller.h"
#include "uprof/signal-mask.h"
#include "uprof/text.h"

#include "domid-priv.h"
#include "end-watch-priv.h"
#include "recording-priv.h"
#include "session-priv.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    LOOP_MS = 100,
    NEW_DOMAINS_MS = 1000,
    YIELD_MS = 1000,        /* between two looks at whether others wait for a domain */
    GIVE_UP_MS = 1000,      /* from the first signal: the longest wait for a sampler */
    OVERDUE_S = 30,         /* the same, from the end of the duration */
    LAST_SAMPLES_MS = 3000, /* from then on: until all samples are sent to the workers */
    BUSY_MAIN_MS = 10000,   /* from a signal: how long a domain may take to close */
    CALL_MS = 700,          /* the same for questions to a daemon */
    CLOSE_MS = 10000,       /* until all is closed, after the files are written */
    CLOSE_HURRIED_MS = 500, /* the same after a signal */
    SETTLE_TRIES = 200,
    SETTLE_STEP_US = 1000,
    RING_BYTES = 5 * 1024 * 1024, /* below 8 MiB, the usual limit of locked memory */
    REST_S_MIN = 10,              /* until a domain whose sampling has failed is tried again */
    REST_S_MAX = 600,
};

/* How long a domain is left alone, in a run that would sample it again. */
typedef struct {
    uint64_t until_ns;
    unsigned length_s;
} Rest;

/* Only the main thread adds and removes recordings. */
typedef struct {
    const UprofRecordSettings *settings; /* borrowed */
    const UprofRunObserver *observer;    /* borrowed */
    const UprofNotices *notices;         /* borrowed */
    UprofErrorTally *tally;              /* borrowed */
    UprofHost *host;
    GPtrArray *recordings;    /* of UprofRecording */
    GPtrArray *awaited_names; /* of char, borrowed: words of domains that do not run yet */
    GHashTable *known_ids;    /* set of int: ids of the domains that --all found */
    GHashTable *complaints;   /* UUID or word -> last error of a domain that is tried again */
    GHashTable *rests;        /* UUID -> Rest of a domain whose sampling has failed */
    GHashTable *finished;     /* set of char: UUIDs and names of domains whose files are written */
    UprofGuardian *guardian;
    UprofWorkers *workers;
    UprofDomainEvents *watch;
    UprofRing *ring;
    UprofLoop *loop;
    UprofPoller *keeper;
    uint64_t start_ns;
    uint64_t listed_ns;  /* when running domains were listed last, for --all */
    uint64_t awaited_ns; /* when awaited domains of xl were looked for last */
    uint64_t yielded_ns; /* when the run looked last if others wait for its domains */
    bool guardian_died;
    bool is_sampling;
    bool is_refused; /* the first word is a command with a mistake */
    char *time;      /* UTC, for %t in file names */
    int signals;
    unsigned n_signals;
    uint64_t signal_ns;  /* of the first one */
    UprofEndWatch *ends; /* (nullable): NULL if the observer has no function @leave */
    /* (nullable): sees to the end of the run when @ends has taken the place of the main thread */
    UprofEndWatch *last_ends;
    UprofErrorCode code; /* of the run, if it has to leave */
} Record;

static void
free_recording(gpointer data)
{
    uprof_recording_free(data);
}

static void
start_recording(Record *record, UprofRecording *recording)
{
    const UprofSession *session = recording->session;

    if (record->observer->started)
        record->observer->started(session, record->observer->data);
    uprof_poller_add(record->keeper, session->guest);
    uprof_recording_start(recording, record->loop);
}

/* If the run has a duration, a domain that joins late ends with the others. */
static void
limit_to_run(const Record *record, UprofRecording *recording)
{
    const uint64_t asked_ns = record->settings->session.run->duration_ns;
    const uint64_t gone_ns = uprof_clock_now_ns() - record->start_ns;

    if (asked_ns > 0)
        uprof_sampler_limit(recording->session->sampler,
                            asked_ns > gone_ns ? asked_ns - gone_ns : 1);
}

/*
 * During sampling, a daemon that hangs may not delay the end of the run. Between begin_call() and
 * end_call() stand questions to a daemon, and no change of @record.
 */
static void
begin_call(const Record *record)
{
    if (record->is_sampling)
        uprof_end_watch_begin_call(record->ends, CALL_MS);
}

static void
end_call(const Record *record)
{
    if (record->is_sampling)
        uprof_end_watch_end_call(record->ends);
}

static void
end_call_of(const void *data)
{
    end_call(data);
}

/*
 * A domain that cannot be opened is tried again each second, so its error is shown only once. If
 * another run samples the domain, that is no error.
 *
 * @which: its UUID, or the user's word
 */
static void
complain_once(Record *record, const char *which, const GError *error)
{
    const char *last = g_hash_table_lookup(record->complaints, which);

    if (g_strcmp0(last, error->message) == 0 ||
        g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LOCKED))
        return;
    uprof_notice_error(record->notices, error);
    g_hash_table_insert(record->complaints, g_strdup(which), g_strdup(error->message));
}

/*
 * Sends a notice and counts an error in the tally if the domain cannot be opened.
 *
 * @domain: (transfer full)
 * @word: (nullable): borrowed: of the user
 * @joins_late: sampling ends when the run's duration is over
 *
 * Returns: false if it should be tried again, in a run with @rejoins
 */
static bool
add_domain(Record *record, UprofDomain *domain, const char *word, bool joins_late)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *uuid = g_strdup(domain->uuid);
    /* during sampling the main thread must read signals, so it cannot wait for a lock */
    const UprofSessionFlags flags = record->is_sampling || record->settings->rejoins
                                        ? UPROF_SESSION_NO_WAIT
                                    : record->settings->waits_for_lock ? UPROF_SESSION_WAIT_FOR_LOCK
                                                                       : UPROF_SESSION_PLAIN;
    const UprofRecordingSettings settings = {
        .session = &record->settings->session,
        .workers = record->workers,
        .outputs = record->settings->outputs,
        .store = record->settings->store,
        .time = record->time,
        .on_opened = end_call_of,
        .data = record,
    };

    begin_call(record);
    UprofRecording *recording =
        uprof_recording_open(domain, &settings, record->guardian, record->ring, flags, &error);
    end_call(record);
    if (!recording && record->settings->rejoins &&
        (record->is_sampling || g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LOCKED))) {
        complain_once(record, uuid, error);
        return false;
    }
    g_hash_table_remove(record->complaints, uuid);
    if (!recording) {
        uprof_error_count(record->tally, uprof_notice_error(record->notices, error));
        return true;
    }
    recording->word = word;
    g_ptr_array_add(record->recordings, recording);
    if (joins_late && !record->settings->rejoins)
        limit_to_run(record, recording);
    if (record->is_sampling)
        start_recording(record, recording);
    return true;
}

static bool
is_recorded(const Record *record, const UprofDomain *domain)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        const UprofDomain *known = recording->session->domain;
        /* a new domain with the same name would write to the same files */
        if (strcmp(known->uuid, domain->uuid) == 0 || strcmp(known->name, domain->name) == 0)
            return true;
    }
    return g_hash_table_contains(record->finished, domain->uuid) ||
           g_hash_table_contains(record->finished, domain->name);
}

static void
open_all(Record *record)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_domid_list(record->host, record->notices, &error);
    bool any = record->settings->wait || record->settings->rejoins;

    if (!domains) {
        uprof_error_count(record->tally, uprof_notice_error(record->notices, error));
        return;
    }
    while (domains->len > 0 && !uprof_signal_end_is_pending()) {
        UprofDomain *domain = g_ptr_array_steal_index(domains, 0);
        if (domain->state != UPROF_DOMAIN_RUNNING || uprof_access_is_host(domain)) {
            uprof_domain_free(domain);
            continue;
        }
        any = true;
        const int id = domain->id;
        g_hash_table_add(record->known_ids, GINT_TO_POINTER(id));
        if (!add_domain(record, domain, NULL, false))
            g_hash_table_remove(record->known_ids, GINT_TO_POINTER(id));
    }
    if (!any) {
        uprof_notice(record->notices, UPROF_NOTICE_WARNING, "no domain runs on %s%s",
                     uprof_host_uri(record->host),
                     uprof_host_uri_hint(uprof_host_uri(record->host)));
        uprof_error_count(record->tally, UPROF_ERROR_NOT_FOUND);
    }
}

/*
 * Refuses the run, so that nothing is sampled, if @word is a mistake: almost a command, or the time
 * of --wait without "=".
 */
static bool
refuse_mistake(Record *record, const char *word)
{
    const UprofRecordSettings *settings = record->settings;
    g_autofree char *quoted = uprof_text_quote(word);
    uint64_t time_ns;

    if (settings->command_meant && word == settings->words->pdata[0])
        uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                     "no command or domain '%s' (did you mean '%s'?)", quoted,
                     settings->command_meant);
    else if (settings->wait && !settings->rejoins && uprof_settings_parse_duration(word, &time_ns))
        uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                     "'%s' is no domain (did you mean --wait=%s?)", quoted, quoted);
    else
        return false;
    *record->tally = (UprofErrorTally){ 0 }; /* of domains that are not sampled after all */
    uprof_error_count(record->tally, UPROF_ERROR_USAGE);
    record->is_refused = true;
    return true;
}

/* In a run with @rejoins: another run waits for the domain, or its sampling has failed just now. */
static bool
must_rest(const Record *record, const UprofDomain *domain)
{
    const Rest *rest = g_hash_table_lookup(record->rests, domain->uuid);

    if (!record->settings->rejoins || !record->is_sampling)
        return false;
    return (rest && uprof_clock_now_ns() < rest->until_ns) || uprof_marker_is_awaited(domain->uuid);
}

/* The daemon may have been restarted. */
static void
reconnect_host(Record *record)
{
    begin_call(record);
    UprofHost *host = uprof_host_open(record->settings->session.uri, false, NULL);
    end_call(record);
    if (!host)
        return;
    UprofHost *before = record->host;
    record->host = host;
    begin_call(record);
    uprof_host_close(before);
    end_call(record);
}

/* Returns: false if the domain does not run yet, or if another run samples it */
static bool
open_word(Record *record, const char *word)
{
    g_autoptr(GError) error = NULL;
    const bool may_start = record->settings->wait;

    begin_call(record);
    UprofDomain *domain = uprof_domid_find(record->host, word, record->notices, &error);
    end_call(record);
    if (!domain) {
        const bool is_unknown = g_error_matches(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
        if (is_unknown && !record->is_sampling && refuse_mistake(record, word))
            return true;
        if (is_unknown && may_start)
            return false;
        if (record->settings->rejoins && record->is_sampling) {
            complain_once(record, word, error);
            reconnect_host(record);
            return false;
        }
        uprof_error_count(record->tally, uprof_notice_error(record->notices, error));
    } else if (may_start && domain->state != UPROF_DOMAIN_RUNNING) {
        uprof_domain_free(domain);
        return false;
    } else if (is_recorded(record, domain)) {
        uprof_domain_free(domain);
    } else if (must_rest(record, domain)) {
        uprof_domain_free(domain);
        return false;
    } else {
        return add_domain(record, domain, word, false);
    }
    return true;
}

static void
open_domains(Record *record)
{
    const GPtrArray *words = record->settings->words;

    if (record->settings->all)
        open_all(record);
    for (guint i = 0; i < words->len && !uprof_signal_end_is_pending() && !record->is_refused;
         i++) {
        char *word = g_ptr_array_index(words, i);
        if (!open_word(record, word))
            g_ptr_array_add(record->awaited_names, word);
    }
    if (record->is_refused) {
        g_ptr_array_set_size(record->recordings, 0);
        g_ptr_array_set_size(record->awaited_names, 0);
    }
    for (guint i = 0; i < record->awaited_names->len; i++) {
        const char *word = g_ptr_array_index(record->awaited_names, i);
        g_autofree char *shown = uprof_text_quote(word);
        g_autoptr(UprofDomain) known = uprof_domid_find(record->host, word, NULL, NULL);
        uprof_notice(record->notices, UPROF_NOTICE_HINT, "waiting for '%s'%s", shown,
                     known ? " to start" : ", which libvirt does not know yet; Ctrl-C ends");
    }
}

/* Opens the awaited domains that run now. */
static void
open_awaited(Record *record)
{
    for (guint i = 0; i < record->awaited_names->len && !uprof_signal_end_is_pending();) {
        if (open_word(record, g_ptr_array_index(record->awaited_names, i)))
            g_ptr_array_remove_index(record->awaited_names, i);
        else
            i++;
    }
}

static bool
is_known_to_libvirt(const Record *record, const char *word)
{
    begin_call(record);
    g_autoptr(UprofDomain) known = uprof_host_find(record->host, word, NULL);
    end_call(record);
    return known != NULL;
}

/*
 * Nobody tells when xl starts a domain. libvirt tells when a domain of its own has started; before
 * that, its state may be anything.
 */
static void
look_for_xl(Record *record)
{
    const uint64_t now_ns = uprof_clock_now_ns();

    if (record->awaited_names->len == 0 || !uprof_domid_may_be_xl(record->host) ||
        now_ns - record->awaited_ns < NEW_DOMAINS_MS * UPROF_NS_PER_MS)
        return;
    record->awaited_ns = now_ns;
    for (guint i = 0; i < record->awaited_names->len && !uprof_signal_end_is_pending();) {
        const char *word = g_ptr_array_index(record->awaited_names, i);
        if (!is_known_to_libvirt(record, word) && open_word(record, word))
            g_ptr_array_remove_index(record->awaited_names, i);
        else
            i++;
    }
}

/* Call it when a domain may have started, or when another event of a domain may have come. */
static void
handle_domain_events(Record *record)
{
    const UprofRunObserver *observer = record->observer;
    UprofDomainEvent event;

    uprof_domain_events_clear(record->watch);
    while (uprof_domain_events_take(record->watch, &event))
        if (observer->on_domain_event)
            observer->on_domain_event(event.uuid, event.what, observer->data);
    open_awaited(record);
}

static void
report_missing(const Record *record, const char *word)
{
    g_autofree char *shown = uprof_text_quote(word);
    g_autofree char *virsh = uprof_host_virsh(uprof_host_uri(record->host));
    g_autofree char *waited = uprof_format_ns(record->settings->wait_ns);
    g_autoptr(GError) error = NULL;

    begin_call(record);
    g_autoptr(UprofDomain) known = uprof_host_find(record->host, word, &error);
    end_call(record);
    if (known)
        uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                     "'%s' has not started in %s; start it with: %s start %s", shown, waited, virsh,
                     uprof_text_shell_word(word, "DOMAIN"));
    else
        uprof_notice(record->notices, UPROF_NOTICE_WARNING, "%s; waited %s for it", error->message,
                     waited);
}

static void
drop_awaited(Record *record)
{
    for (guint i = 0; i < record->awaited_names->len; i++) {
        report_missing(record, g_ptr_array_index(record->awaited_names, i));
        uprof_error_count(record->tally, UPROF_ERROR_NOT_FOUND);
    }
    g_ptr_array_set_size(record->awaited_names, 0);
}

/* If the domain does not run yet, add_new_domains() tries again a second later. */
static void
add_new_domain(Record *record, int id)
{
    g_autoptr(GError) error = NULL;

    begin_call(record);
    UprofDomain *domain = uprof_domid_find_id(record->host, id, &error);
    end_call(record);
    if (!domain)
        return;
    if (domain->state != UPROF_DOMAIN_RUNNING || uprof_access_is_host(domain) ||
        must_rest(record, domain)) {
        uprof_domain_free(domain);
        return;
    }
    g_hash_table_add(record->known_ids, GINT_TO_POINTER(id));
    if (is_recorded(record, domain)) {
        g_autofree char *shown = uprof_text_quote(domain->name);
        uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                     "%s: the domain was restarted; the restarted domain is not sampled, earlier "
                     "samples are kept",
                     shown);
        uprof_domain_free(domain);
        return;
    }
    if (!add_domain(record, domain, NULL, true))
        g_hash_table_remove(record->known_ids, GINT_TO_POINTER(id));
}

/* With --all: adds the domains that have started since the last call. */
static void
add_new_domains(Record *record)
{
    g_autoptr(GArray) ids = NULL;
    const uint64_t now_ns = uprof_clock_now_ns();

    if (!record->settings->all || now_ns - record->listed_ns < NEW_DOMAINS_MS * UPROF_NS_PER_MS)
        return;
    record->listed_ns = now_ns;
    begin_call(record);
    ids = uprof_domid_running(record->host);
    end_call(record);
    if (!ids && record->settings->rejoins)
        reconnect_host(record);
    for (guint i = 0; ids && i < ids->len && !uprof_signal_end_is_pending(); i++) {
        const int id = g_array_index(ids, int, i);
        if (!g_hash_table_contains(record->known_ids, GINT_TO_POINTER(id)))
            add_new_domain(record, id);
    }
}

/* Notes that the run must end now. */
static void
stop_all(Record *record)
{
    if (record->signal_ns == 0)
        record->signal_ns = uprof_clock_now_ns();
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        uprof_sampler_stop(recording->session->sampler);
    }
}

/*
 * Stops the samplers that hold whole guests, because these need the guardian. Other samplers go on:
 * if the profiler dies, the Linux kernel itself releases the vCPU threads that it traced.
 */
static void
stop_guarded(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        if (recording->session->guest->grain == UPROF_GRAIN_GUEST)
            uprof_sampler_stop(recording->session->sampler);
    }
}

/* A vCPU that did not stop in time may stop later. Waits until all such vCPUs are released. */
static void
wait_until_settled(const Record *record)
{
    for (guint i = 0; i < record->recordings->len; i++) {
        const UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        UprofGuest *guest = recording->session->guest;
        for (unsigned tries = 0; g_atomic_int_get(&guest->has_late_stops) && tries < SETTLE_TRIES;
             tries++)
            g_usleep(SETTLE_STEP_US);
    }
}

/* Stops the process after Ctrl-Z, between two holds. */
static void
suspend_process(const Record *record)
{
    const bool is_parked = uprof_poller_park(record->keeper);

    wait_until_settled(record);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_sampler_park(
            ((UprofRecording *)g_ptr_array_index(record->recordings, i))->session->sampler);
    if (record->observer->suspending)
        record->observer->suspending(record->observer->data);
    kill(getpid(), SIGSTOP);
    if (record->observer->resumed)
        record->observer->resumed(record->observer->data);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_sampler_unpark(
            ((UprofRecording *)g_ptr_array_index(record->recordings, i))->session->sampler);
    if (is_parked)
        uprof_poller_unpark(record->keeper);
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
            uprof_notice(record->notices, UPROF_NOTICE_WARNING, "stopped without saving");
        stop_all(record);
        uprof_workers_hurry(record->workers);
        g_ptr_array_set_size(record->awaited_names, 0);
        if (record->observer->signaled)
            record->observer->signaled((int)info.ssi_signo, info.ssi_code == SI_KERNEL,
                                       record->observer->data);
        break;
    case SIGTSTP:
        suspend_process(record);
        break;
    case SIGUSR1:
        if (record->observer->asked)
            record->observer->asked(record->observer->data);
        break;
    default:
        break;
    }
}

/*
 * Changes from holds of one vCPU to holds of the whole guest, during the run. Snapshots that were
 * taken before are counted, and the session keeps the counts of its old sampler.
 */
static void
fall_back(Record *record, UprofRecording *recording)
{
    UprofSession *session = recording->session;
    g_autoptr(GError) error = NULL;

    recording->has_fallen_back = true;
    uprof_loop_sync(record->loop);
    uprof_poller_remove(record->keeper, session->guest);
    uprof_ring_flush(record->ring);
    if (!uprof_session_fall_back(session, record->guardian, record->ring, &error)) {
        recording->code =
            uprof_error_merge(recording->code, uprof_notice_error(record->notices, error));
        return;
    }
    uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                 "%s: a vCPU thread repeatedly does not stop in time; continuing with access "
                 "'monitor', which stops the whole guest",
                 session->shown);
    recording->reported_stride = 0;
    recording->is_done = false;
    start_recording(record, recording);
}

static bool
may_fall_back(const Record *record, const UprofRecording *recording)
{
    return !recording->has_fallen_back && record->n_signals == 0 &&
           strcmp(record->settings->session.access, "auto") == 0;
}

/*
 * A sampler that does not end waits for a daemon or a QEMU that hangs. If the guardian has died,
 * this process must wait, too, because nobody else can resume the guest.
 */
static bool
is_overdue(const Record *record, const UprofRecording *recording)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    const uint64_t asked_ns = uprof_sampler_asked_ns(recording->session->sampler);

    if (!record->ends || record->guardian_died)
        return false;
    if (record->signal_ns > 0)
        return now_ns - record->signal_ns > GIVE_UP_MS * UPROF_NS_PER_MS;
    return asked_ns > 0 && now_ns - recording->start_ns > asked_ns + OVERDUE_S * UPROF_NS_PER_S;
}

static bool
has_enough_samples(const Record *record, const UprofRecording *recording)
{
    UprofWorkerCounts counts;

    if (record->settings->samples == 0)
        return false;
    uprof_worker_counts(recording->session->worker, &counts);
    return counts.running >= record->settings->samples;
}

/* Returns: true if a sampler still runs */
static bool
check_samplers(Record *record)
{
    const uint64_t now_ns = uprof_clock_now_ns();
    const bool looks_for_others = record->settings->session.yields &&
                                  now_ns - record->yielded_ns >= YIELD_MS * UPROF_NS_PER_MS;
    bool any = false;

    if (looks_for_others)
        record->yielded_ns = now_ns;

    for (guint i = 0; i < record->recordings->len; i++) {
        UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        UprofSamplerCounts counts;
        if (recording->is_done)
            continue;
        uprof_sampler_counts(recording->session->sampler, &counts);
        uprof_recording_report_rate(recording, &counts);
        uprof_recording_report_hindrance(recording);
        uprof_worker_show_notices(recording->session->worker);
        /* if that fails, too, the end of the recording says why */
        if (uprof_worker_is_dead(recording->session->worker) &&
            (record->n_signals > 0 || !uprof_recording_restart(recording)))
            uprof_sampler_stop(recording->session->sampler);
        recording->has_enough = has_enough_samples(record, recording);
        if (recording->has_enough)
            uprof_sampler_stop(recording->session->sampler);
        recording->is_done = counts.end != UPROF_SAMPLER_RUNNING;
        if (!recording->is_done && is_overdue(record, recording))
            uprof_recording_give_up(recording);
        if (looks_for_others && !recording->is_done &&
            uprof_marker_is_awaited(recording->session->domain->uuid))
            uprof_sampler_stop(recording->session->sampler);
        if (counts.end == UPROF_SAMPLER_STUCK && may_fall_back(record, recording))
            fall_back(record, recording);
        any |= !recording->is_done;
    }
    return any;
}

/* The run may still sample a domain that starts later. */
static bool
may_domains_start(const Record *record)
{
    const uint64_t asked_ns = record->settings->session.run->duration_ns;

    if (record->n_signals > 0 || record->guardian_died || record->is_refused)
        return false;
    if (record->awaited_names->len > 0 ||
        (record->settings->rejoins && (record->recordings->len > 0 || record->settings->all)))
        return true;
    /* a run that ends after so many samples does not wait for more domains */
    if (asked_ns == 0 && record->settings->samples > 0)
        return false;
    return record->settings->all &&
           (asked_ns == 0 || uprof_clock_now_ns() - record->start_ns < asked_ns);
}

static bool
has_waited_enough(const Record *record)
{
    const uint64_t wait_ns = record->settings->wait_ns;

    return wait_ns > 0 && uprof_clock_now_ns() - record->start_ns >= wait_ns;
}

static void
handle_guardian_death(Record *record)
{
    uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                 "the guardian process has died; sampling ends for guests that are held as a "
                 "whole");
    record->guardian_died = true;
    stop_guarded(record);
}

/* Ends the run as a signal does. */
static void
end_run(Record *record)
{
    record->n_signals++;
    stop_all(record);
}

static int
input_fd(const Record *record)
{
    return record->observer->input_fd ? record->observer->input_fd(record->observer->data) : -1;
}

static void
wait_for_event(Record *record)
{
    const UprofRunObserver *observer = record->observer;
    struct pollfd waits[] = {
        { .fd = record->signals, .events = POLLIN },
        { .fd = record->guardian_died ? -1 : uprof_guardian_fd(record->guardian),
          .events = POLLIN },
        { .fd = record->watch && (record->awaited_names->len > 0 || observer->on_domain_event)
                    ? uprof_domain_events_fd(record->watch)
                    : -1,
          .events = POLLIN },
        { .fd = input_fd(record), .events = POLLIN },
    };

    if (record->watch)
        uprof_domain_events_want_starts(record->watch, record->awaited_names->len > 0);
    poll(waits, G_N_ELEMENTS(waits), LOOP_MS);
    if (waits[2].revents)
        handle_domain_events(record);
    if (waits[0].revents)
        read_signal(record);
    if (waits[1].revents)
        handle_guardian_death(record);
    /* if the terminal is closed, poll() always returns at once, and there is nothing to read */
    if ((waits[3].revents & ~POLLIN) ||
        (waits[3].revents && !observer->input(record->recordings, observer->data)))
        end_run(record);
}

static void
run_observer(Record *record)
{
    const UprofRunObserver *observer = record->observer;

    if (observer->looped && record->n_signals == 0 &&
        !observer->looped(record->recordings, observer->data))
        end_run(record);
}

static void
save_recording(const Record *record, UprofRecording *recording)
{
    const UprofRunObserver *observer = record->observer;

    if (observer->ended)
        observer->ended(recording, observer->data);
    /* the observer of a run that joins domains again keeps the samples itself */
    if (record->settings->rejoins || !uprof_recording_check(recording))
        return;
    if (observer->saving)
        recording->code =
            uprof_error_merge(recording->code, observer->saving(recording, observer->data));
    uprof_recording_save(recording);
}

/* A domain whose sampling fails again and again is tried again after a longer and longer time. */
static void
note_rest(Record *record, const UprofRecording *recording)
{
    const char *uuid = recording->session->domain->uuid;
    Rest *rest = g_hash_table_lookup(record->rests, uuid);
    UprofSamplerCounts counts;

    uprof_sampler_counts(recording->session->sampler, &counts);
    const bool is_well =
        counts.end == UPROF_SAMPLER_DURATION || counts.end == UPROF_SAMPLER_GONE ||
        (counts.end == UPROF_SAMPLER_STOPPED && !uprof_worker_is_dead(recording->session->worker));
    if (is_well) {
        g_hash_table_remove(record->rests, uuid);
        return;
    }
    if (!rest) {
        rest = g_new0(Rest, 1);
        g_hash_table_insert(record->rests, g_strdup(uuid), rest);
    }
    rest->length_s = CLAMP(rest->length_s * 2, (unsigned)REST_S_MIN, (unsigned)REST_S_MAX);
    rest->until_ns = uprof_clock_now_ns() + rest->length_s * UPROF_NS_PER_S;
}

/* The domain will be sampled again: by the user's word, or when --all finds its number again. */
static void
await_again(Record *record, const UprofRecording *recording)
{
    note_rest(record, recording);
    if (recording->word)
        g_ptr_array_add(record->awaited_names, (gpointer)recording->word);
    else
        g_hash_table_remove(record->known_ids, GINT_TO_POINTER(recording->session->domain->id));
}

/*
 * Writes the files of a domain that is done, and gives back its lock, while other domains are
 * sampled or awaited.
 */
static void
finish_recording(Record *record, UprofRecording *recording)
{
    const UprofDomain *domain = recording->session->domain;

    uprof_loop_sync(record->loop);
    uprof_poller_remove(record->keeper, recording->session->guest);
    uprof_ring_flush(record->ring);
    uprof_recording_end(recording, record->recordings->len);
    save_recording(record, recording);
    if (record->observer->saved)
        record->observer->saved(recording->session->run, record->observer->data);
    uprof_error_count(record->tally, recording->code);
    if (record->settings->rejoins) {
        await_again(record, recording);
    } else {
        g_hash_table_add(record->finished, g_strdup(domain->uuid));
        g_hash_table_add(record->finished, g_strdup(domain->name));
    }
    g_ptr_array_remove(record->recordings, recording);
}

static void
finish_recordings(Record *record)
{
    for (guint i = record->recordings->len; i > 0; i--) {
        UprofRecording *recording = g_ptr_array_index(record->recordings, i - 1);
        /* the thread of a sampler that was given up may still use its recording */
        if (recording->is_done && !recording->is_left)
            finish_recording(record, recording);
    }
}

/* A daemon that hangs may keep the main thread from noticing that the duration is over. */
static void
limit_calls(const Record *record)
{
    const uint64_t asked_ms = record->settings->session.run->duration_ns / UPROF_NS_PER_MS;

    if (asked_ms > 0 && !record->settings->rejoins && !record->settings->wait)
        uprof_end_watch_limit_calls(record->ends, asked_ms + 2 * OVERDUE_S * 1000);
}

static void
sample_domains(Record *record)
{
    uprof_workers_feed(record->workers, record->ring,
                       record->settings->samples > 0 || record->observer->input_fd);
    record->is_sampling = true;
    record->start_ns = record->listed_ns = uprof_clock_now_ns();
    for (guint i = 0; i < record->recordings->len; i++)
        start_recording(record, g_ptr_array_index(record->recordings, i));
    if (record->ends)
        uprof_end_watch_set_patience(record->ends, BUSY_MAIN_MS);
    limit_calls(record);
    while (check_samplers(record) || may_domains_start(record)) {
        wait_for_event(record);
        run_observer(record);
        if (record->n_signals == 0)
            add_new_domains(record);
        if (record->n_signals == 0)
            look_for_xl(record);
        if (has_waited_enough(record))
            drop_awaited(record);
        if (record->n_signals == 0 && !record->settings->is_dry)
            finish_recordings(record);
    }
}

/* Sends the last samples to the workers. No sampler runs any more. */
static void
end_sampling(const Record *record)
{
    UprofEndWatch *ends = record->last_ends ? record->last_ends : record->ends;
    const bool is_hurried = record->n_signals > 0 || record->last_ends;

    uprof_end_watch_limit(ends, is_hurried ? LAST_SAMPLES_MS : 0);
    uprof_workers_stop(record->workers);
    uprof_end_watch_limit(ends, 0);
    if (record->observer->sampled)
        record->observer->sampled(record->observer->data);
}

/*
 * Blocks all signals, in this thread and in the threads that it starts later.
 *
 * Returns: a signalfd for the signals that the run handles
 */
static int
open_signals(void)
{
    static const int handled[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1 };
    sigset_t all, wanted;

    sigemptyset(&wanted);
    for (size_t i = 0; i < G_N_ELEMENTS(handled); i++)
        sigaddset(&wanted, handled[i]);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
}

static volatile sig_atomic_t n_ends;
static void (*abort_run)(void);
static UprofWorkers *volatile writers; /* (nullable) */

/*
 * Calls only functions that are safe in a handler. The first signal gives the workers a time limit.
 * The second one ends the process at once: while files are written, no guest is held.
 */
static void
abort_at_second(int number)
{
    if (writers)
        uprof_workers_hurry(writers);
    if (++n_ends >= 2)
        abort_run();
}

static void
handle_signals(const Record *record)
{
    static const int ending[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    const struct sigaction action = { .sa_handler = abort_at_second, .sa_flags = SA_RESTART };
    sigset_t none;

    n_ends = (sig_atomic_t)record->n_signals;
    abort_run = record->observer->abort_run;
    writers = record->workers;
    for (size_t i = 0; i < G_N_ELEMENTS(ending); i++)
        sigaction(ending[i], &action, NULL);
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
}

static void
save_recordings(Record *record)
{
    const UprofRunObserver *observer = record->observer;

    for (guint i = 0; i < record->recordings->len; i++) {
        UprofRecording *recording = g_ptr_array_index(record->recordings, i);
        if (record->n_signals < 2 && !record->settings->is_dry)
            save_recording(record, recording);
        if (observer->saved)
            observer->saved(recording->session->run, observer->data);
        uprof_error_count(record->tally, recording->code);
    }
}

/* Returns: the code of the run itself; the tally has the codes of the domains */
static UprofErrorCode
judge_run(const Record *record)
{
    if (record->recordings->len == 0 && record->tally->n == 0)
        return UPROF_ERROR_NOT_FOUND;
    return record->n_signals < 2 ? UPROF_ERROR_NONE : UPROF_ERROR_FAILED;
}

static UprofErrorCode
connect_host(Record *record)
{
    const char *uri = record->settings->session.uri;
    g_autoptr(GError) error = NULL;

    if (record->settings->wait || record->observer->on_domain_event)
        record->watch = uprof_domain_events_new(uri, &error);
    if (!error)
        record->host = uprof_host_open(uri, false, &error);
    return error ? uprof_notice_error(record->notices, error) : UPROF_ERROR_NONE;
}

/* Ends the process. Called in the thread of the watch, while the main thread waits for a daemon. */
static void
leave_at_once(bool in_call, void *data)
{
    const Record *record = data;

    uprof_notice(record->notices, UPROF_NOTICE_WARNING,
                 "libvirt, or a QEMU, does not answer; ending without its answer");
    record->observer->leave(record->tally, record->code);
}

static void
finish_run(Record *record)
{
    end_sampling(record);
    for (guint i = 0; i < record->recordings->len; i++)
        uprof_recording_end(g_ptr_array_index(record->recordings, i), record->recordings->len);
    handle_signals(record);
    save_recordings(record);
    record->code = judge_run(record);
}

/*
 * Ends the process as leave_at_once() does. If the main thread waits for the answer to a question,
 * it does not come back, and this thread first saves the samples.
 */
static void
leave_run(bool in_call, void *data)
{
    Record *record = data;
    struct pollfd wait = { .fd = record->signals, .events = POLLIN };

    if (in_call)
        record->last_ends = uprof_end_watch_new(record->signals, leave_at_once, record, NULL);
    if (!record->last_ends)
        leave_at_once(in_call, data);
    while (record->n_signals == 0 && uprof_signal_end_is_pending())
        read_signal(record);
    stop_all(record);
    record->signal_ns -= CALL_MS * UPROF_NS_PER_MS;
    while (check_samplers(record))
        if (poll(&wait, 1, LOOP_MS) > 0)
            read_signal(record);
    finish_run(record);
    leave_at_once(in_call, data);
}

static bool
start_watch(Record *record, GError **error)
{
    if (record->observer->leave)
        record->ends = uprof_end_watch_new(record->signals, leave_run, record, error);
    return record->ends || !record->observer->leave;
}

static bool
start_threads(Record *record, GError **error)
{
    record->loop = uprof_loop_new(error);
    record->keeper = record->loop ? uprof_poller_new(error) : NULL;
    return record->keeper != NULL;
}

static UprofErrorCode
run_record(Record *record)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    g_autoptr(GError) error = NULL;

    if (record->settings->recovers)
        code = uprof_session_recover(record->notices);
    if (code == UPROF_ERROR_NONE)
        code = connect_host(record);
    if (code != UPROF_ERROR_NONE)
        return code;
    /* from here on vCPUs are held: no signal may end the process before it restores their pages */
    record->signals = open_signals();
    if (!start_watch(record, &error))
        return uprof_notice_error(record->notices, error);
    open_domains(record);
    if (record->recordings->len == 0 && !may_domains_start(record))
        return UPROF_ERROR_NONE;
    if (!start_threads(record, &error))
        return uprof_notice_error(record->notices, error);
    sample_domains(record);
    finish_run(record);
    return record->code;
}

static void
clear_record(Record *record)
{
    uprof_end_watch_limit(record->ends, record->n_signals > 0 ? CLOSE_HURRIED_MS : CLOSE_MS);
    uprof_domain_events_free(record->watch);
    uprof_poller_free(record->keeper);
    uprof_loop_free(record->loop);
    g_ptr_array_unref(record->recordings);
    writers = NULL; /* for the handler of signals */
    uprof_workers_free(record->workers);
    g_ptr_array_unref(record->awaited_names);
    g_hash_table_unref(record->known_ids);
    g_hash_table_unref(record->complaints);
    g_hash_table_unref(record->rests);
    g_hash_table_unref(record->finished);
    uprof_ring_free(record->ring);
    uprof_host_close(record->host);
    g_free(record->time);
    uprof_end_watch_free(record->ends);
    if (record->signals >= 0)
        close(record->signals);
}

/*
 * Forks the processes that outlive a failure of this one, or have fewer rights. The ring comes
 * after them, so that they have no copy of it.
 */
static bool
start_helpers(Record *record, GError **error)
{
    const uint64_t duration_ns = record->settings->session.run->duration_ns;
    const UprofWorkerPlan plan = {
        .symbols = record->settings->session.symbols,
        .calls = record->settings->calls,
        .n_calls = record->settings->n_calls,
        .cpu_s = duration_ns > 0 ? duration_ns / UPROF_NS_PER_S + UPROF_WORKER_CPU_S : 0,
    };

    record->guardian = uprof_guardian_start(uprof_access_find, error);
    if (!record->guardian)
        return false;
    record->workers = uprof_workers_new(&plan, error);
    if (!record->workers)
        return false;
    record->ring = uprof_ring_new(RING_BYTES / sizeof(UprofSnapshot), error);
    return record->ring != NULL;
}

UprofErrorCode
uprof_record_domains(const UprofRecordSettings *settings, UprofErrorTally *tally)
{
    const UprofNotices *notices = settings->session.notices;
    g_autoptr(GError) error = NULL;
    UprofErrorCode code;
    Record record = {
        .settings = settings,
        .observer = settings->observer,
        .notices = notices,
        .tally = tally,
        .signals = -1,
        .code = UPROF_ERROR_FAILED,
        .recordings = g_ptr_array_new_with_free_func(free_recording),
        .awaited_names = g_ptr_array_new(),
        .known_ids = g_hash_table_new(NULL, NULL),
        .complaints = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .rests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
        .finished = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
        .time = uprof_clock_format_utc(uprof_clock_utc_ns(), TRUE),
    };

    if (start_helpers(&record, &error))
        code = run_record(&record);
    else
        code = uprof_notice_error(notices, error);
    clear_record(&record);
    return uprof_error_merge(
        code, uprof_session_end_guardian(record.guardian, record.guardian_died, notices));
}
