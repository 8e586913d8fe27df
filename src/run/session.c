/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session-priv.h"

#include "uprof/clock.h"
#include "uprof/process-stat.h"
#include "uprof/signal-mask.h"
#include "uprof/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOCK_WAIT_S = 60,
    YIELD_WAIT_S = 10, /* the same, for a run that gives up the domain */
    LOCK_STEP_MS = 100,
    BUDGET_MONITOR_PPM = 100000, /* 10 %: a hold takes milliseconds */
    BUDGET_DIRECT_PPM = 50000,   /* 5 %: microseconds */
};

void
uprof_session_close(UprofSession *session)
{
    if (!session)
        return;
    uprof_sampler_free(session->sampler);
    uprof_worker_free(session->worker);
    uprof_file_rules_free(session->rules);
    uprof_guest_close(session->guest);
    uprof_marker_close(session->marker);
    if (session->guardian) {
        g_autoptr(GError) error = NULL;
        if (!uprof_guardian_forget(session->guardian, session->domain->uuid, &error) &&
            g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD))
            uprof_notice_error(session->caller_settings->notices,
                               error); /* the guardian shows this again when it ends */
    }
    uprof_run_free(session->run);
    uprof_domain_free(session->domain);
    uprof_settings_clear(&session->settings);
    g_free(session->shown);
    g_free(session->why);
    g_free(session->sizes);
    g_free(session->wanted);
    pthread_sigmask(SIG_SETMASK, &session->signals, NULL);
    g_free(session);
}

static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

static void
block_signals(UprofSession *session)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTSTP);
    for (size_t i = 0; i < G_N_ELEMENTS(ending_signals); i++)
        sigaddset(&blocked, ending_signals[i]);
    pthread_sigmask(SIG_BLOCK, &blocked, &session->signals);
}

bool
uprof_session_check_state(const UprofDomain *domain, bool may_be_paused, GError **error)
{
    g_autofree char *name = uprof_text_quote(domain->name);
    const char *word = uprof_text_shell_word(domain->name, domain->uuid);

    /* libvirt may learn late that a pause begins or ends, so the backend asks the hypervisor */
    if (uprof_domain_has_memory(domain) && (may_be_paused || domain->state != UPROF_DOMAIN_CRASHED))
        return true;
    g_autofree char *virsh = uprof_host_virsh(domain->uri);
    if (domain->state == UPROF_DOMAIN_SHUTOFF)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' is shut off; start it with: %s start %s", name, virsh, word);
    else if (domain->state == UPROF_DOMAIN_CRASHED)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' has crashed; its memory still shows its stacks, tasks and log: "
                    "try 'virt-uprof dump %s', and 'ps' and 'dmesg'",
                    name, word);
    else
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' is %s; it can be sampled when it runs", name, domain->state_name);
    return false;
}

/* Checks again: the metadata may have changed since the round of `collect` began. */
static bool
check_enabled(const UprofSession *session, GError **error)
{
    const UprofMetadata *metadata = &session->domain->xml->metadata;
    UprofConfig *config = session->caller_settings->config;
    UprofSettings settings = *session->caller_settings->run;
    g_autoptr(GError) bad = NULL;

    if (!uprof_settings_take_metadata(&settings, metadata, config, NULL, &bad)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s: %s", session->shown, bad->message);
        return false;
    }
    if (!metadata->present)
        settings.enabled = uprof_config_has_domain(config, session->domain->name);
    if (!settings.enabled)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "%s: the domain is not enabled any more", session->shown);
    return settings.enabled;
}

/*
 * @hint: (out) (transfer full) (nullable): why there is no kernel file that could have names
 *
 * Returns: (nullable) (transfer none): the file of <os><kernel>
 */
static const char *
find_kernel_file(const UprofDomain *domain, char **hint)
{
    const char *kernel = domain->xml->kernel;
    g_autofree char *shown = uprof_text_quote(kernel);

    *hint = NULL;
    if (domain->kernel_problem)
        *hint = g_strdup(domain->kernel_problem);
    else if (!kernel)
        *hint = g_strdup("the domain boots from a disk: give its symbols with -s");
    else if (!domain->is_local)
        *hint = g_strdup_printf("its kernel '%s' is on another host: copy it and give it with -s",
                                shown);
    return *hint ? NULL : kernel;
}

char *
uprof_session_find_kernel(const UprofDomain *domain, UprofKernelFiles *files, char **why)
{
    const UprofArch *arch = domain->xml->arch ? uprof_arch_find(domain->xml->arch) : NULL;
    g_autoptr(GError) error = NULL;

    *why = NULL;
    if (!arch)
        return NULL;
    const char *kernel = find_kernel_file(domain, why);
    char *found = kernel ? uprof_kernel_files_find(files, arch, kernel, &error) : NULL;
    if (error)
        *why = g_strdup_printf("%s: give its symbols with -s", error->message);
    return found;
}

/* Returns: (transfer full): "another run of virt-uprof (process 4711) is sampling it" */
static char *
describe_other_run(const char *uuid)
{
    const pid_t owner = uprof_marker_owner(uuid);
    g_autofree char *process = owner > 0 ? g_strdup_printf(" (process %d)", (int)owner) : NULL;

    return g_strdup_printf("another run of virt-uprof%s is sampling it", process ? process : "");
}

static void
close_wait(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static bool
fail_locked(const UprofSession *session, GError **error)
{
    g_autofree char *other = describe_other_run(session->domain->uuid);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_LOCKED, "%s: %s", session->shown, other);
    return false;
}

static void
say_wait(const UprofSession *session)
{
    g_autofree char *other = describe_other_run(session->domain->uuid);

    uprof_notice(session->caller_settings->notices, UPROF_NOTICE_INFO,
                 "%s: %s; waiting up to %d s for its end (Ctrl-C gives up)", session->shown, other,
                 LOCK_WAIT_S);
}

/*
 * Takes the domain's lock. Waits up to a minute with WAIT_FOR_LOCK, and some seconds if the other
 * run is a `watch`, which gives the domain up.
 */
static UprofMarker *
take_lock(const UprofSession *session, UprofSessionFlags flags, GError **error)
{
    const char *uuid = session->domain->uuid;
    const uint64_t start_ns = uprof_clock_now_ns();
    bool said = false, locked, was_held;
    __attribute__((cleanup(close_wait))) int waiting = -1;

    for (;;) {
        g_autoptr(UprofMarker) marker = uprof_marker_open(uuid, &locked, error);
        if (marker) {
            /* if the last run and its guardian died together, the guest may still be stopped */
            return uprof_guardian_heal_marker(uprof_access_find, marker, &was_held, error)
                       ? g_steal_pointer(&marker)
                       : NULL;
        }
        if (!locked)
            return NULL;
        const bool yields = !session->caller_settings->yields && !(flags & UPROF_SESSION_NO_WAIT) &&
                            uprof_marker_owner_yields(uuid);
        const unsigned wait_s = flags & UPROF_SESSION_WAIT_FOR_LOCK ? LOCK_WAIT_S
                                : yields                            ? YIELD_WAIT_S
                                                                    : 0;
        if (uprof_clock_now_ns() - start_ns >= wait_s * UPROF_NS_PER_S ||
            uprof_signal_end_is_pending()) {
            fail_locked(session, error);
            return NULL;
        }
        if (waiting < 0)
            waiting = uprof_marker_await(uuid);
        if (!said && !yields)
            say_wait(session);
        said |= !yields;
        g_usleep(LOCK_STEP_MS * 1000);
    }
}

static bool
tell_guardian(UprofSession *session, UprofGuardian *guardian, GError **error)
{
    UprofMarkerInfo info = {
        .id = session->domain->id,
        .pid = getpid(),
        .yields = session->caller_settings->yields,
    };
    const char *asked_uri = session->caller_settings->uri;
    const char *uri = asked_uri ? asked_uri : session->domain->uri;
    UprofGuestFacts facts;

    uprof_guest_facts(session->guest, &facts);
    g_strlcpy(info.uuid, session->domain->uuid, sizeof(info.uuid));
    if (g_strlcpy(info.uri, uri, sizeof(info.uri)) >= sizeof(info.uri)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "%s: the connection's URI is longer than %d bytes", session->shown,
                    UPROF_MARKER_URI_BYTES_MAX - 1);
        return false;
    }
    g_strlcpy(info.name, session->shown, sizeof(info.name));
    g_strlcpy(info.access, session->guest->ops->name, sizeof(info.access));
    info.qemu_pid = facts.pid;
    info.qemu_start = facts.pid_start;
    info.start = uprof_process_stat_start(info.pid);
    uprof_marker_set_info(session->marker, &info);
    if (!uprof_guardian_watch(guardian, session->marker, error)) {
        g_prefix_error(error, "%s: the guardian cannot watch it: ", session->shown);
        return false;
    }
    session->guardian = guardian;
    return true;
}

static UprofGuest *
open_method(const UprofSession *session, const UprofGuestOps *ops, bool may_be_paused,
            GError **error)
{
    const UprofDomain *domain = session->domain;
    const UprofTarget target = {
        .uri = session->caller_settings->uri ? session->caller_settings->uri : domain->uri,
        .uuid = domain->uuid,
        .name = domain->name,
        .id = domain->id,
        .arch = domain->xml->arch ? uprof_arch_find(domain->xml->arch) : NULL,
        .n_vcpus = domain->xml->vcpus_max,
        .kvm = strcmp(domain->xml->type, "kvm") == 0,
        .may_panic = domain->xml->has_panic,
        .no_pause = session->settings.no_pause,
        .idle_stacks = session->settings.idle_stacks,
        .may_be_paused = may_be_paused,
        .max_pause_ns = session->settings.max_pause_ns,
        .marker = session->marker,
    };

    return uprof_guest_open(ops, &target, error);
}

/* The next access method may work although this one failed with @error. */
static bool
may_try_next(const GError *error)
{
    return g_error_matches(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED) ||
           g_error_matches(error, UPROF_ERROR, UPROF_ERROR_DENIED);
}

/* Leaves out the domain's name at the beginning of the error: the caller shows the name. */
static char *
describe_failure(const char *method, const GError *failure)
{
    g_autofree char *no_access = g_strdup_printf("no access '%s': ", method);
    const char *reason = strstr(failure->message, no_access);

    return g_strdup_printf("not '%s': %s", method,
                           reason ? reason + strlen(no_access) : failure->message);
}

static UprofStop
find_stop(const UprofSession *session)
{
    return session->settings.no_pause       ? UPROF_STOP_NONE
           : session->settings.pause_ns > 0 ? UPROF_STOP_WHOLE
                                            : UPROF_STOP_ANY;
}

static bool
open_guest(UprofSession *session, UprofGuardian *guardian, bool may_be_paused, GError **error)
{
    g_auto(UprofAccess) access = { 0 };

    if (!uprof_access_choose(session->domain, session->caller_settings->access, find_stop(session),
                             &access, error))
        return false;
    session->why = g_steal_pointer(&access.why);
    for (unsigned i = 0; i < access.n; i++) {
        g_autoptr(GError) failure = NULL;
        session->guest = open_method(session, access.methods[i], may_be_paused, &failure);
        if (session->guest)
            break;
        if (i + 1 == access.n || !may_try_next(failure)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        g_free(session->why);
        session->why = describe_failure(access.methods[i]->name, failure);
    }
    return session->guest->grain == UPROF_GRAIN_NONE || session->guest->paused ||
           tell_guardian(session, guardian, error);
}

static void
copy_settings(UprofSettings *to, const UprofSettings *from)
{
    *to = *from;
    if (to->vcpus)
        g_array_ref(to->vcpus);
}

UprofSession *
uprof_session_open(UprofDomain *domain, const UprofSessionSettings *settings,
                   UprofGuardian *guardian, UprofSessionFlags flags, GError **error)
{
    g_autoptr(UprofSession) session = g_new0(UprofSession, 1);

    block_signals(session);
    session->caller_settings = settings;
    session->domain = domain;
    session->shown = uprof_text_quote(domain->name);
    copy_settings(&session->settings, settings->run);
    if (!uprof_session_check_state(domain, flags & UPROF_SESSION_MAY_BE_PAUSED, error))
        return NULL;
    if (settings->only_enabled && !check_enabled(session, error))
        return NULL;
    session->marker = take_lock(session, flags, error);
    if (!session->marker ||
        !open_guest(session, guardian, flags & UPROF_SESSION_MAY_BE_PAUSED, error))
        return NULL;
    return g_steal_pointer(&session);
}

static void
fill_run(UprofSession *session)
{
    const UprofDomain *domain = session->domain;
    const UprofSettings *settings = &session->settings;
    UprofRun *run = uprof_run_new();

    run->program = g_strdup(session->caller_settings->program);
    run->domain = g_strdup(domain->name);
    run->uuid = g_strdup(domain->uuid);
    run->driver = g_strdup(domain->driver);
    run->type = g_strdup(domain->xml->type);
    run->arch = g_strdup(domain->xml->arch);
    run->labels = g_strdup(domain->xml->metadata.labels);
    run->access = g_strdup(session->guest->ops->name);
    run->why = g_strdup(session->why);
    run->unwind = g_strdup(settings->unwind);
    run->vcpus =
        session->guest->grain == UPROF_GRAIN_VCPU ? domain->xml->vcpus : session->guest->n_vcpus;
    run->vcpus_sampled = settings->vcpus ? settings->vcpus->len : 0;
    run->started_utc_ns = uprof_clock_utc_ns();
    run->rate_mhz = settings->rate_mhz;
    run->asked_ns = settings->duration_ns;
    run->max_depth = settings->max_depth;
    run->per_vcpu = settings->per_vcpu;
    run->pids = settings->pids;
    run->cgroups = settings->cgroups;
    run->native = settings->native;
    run->idle = settings->idle;
    run->idle_stacks = settings->idle_stacks;
    run->no_pause = settings->no_pause;
    run->divisor = 1;
    session->run = run;
}

/*
 * Finds the folders in which symbol files of metadata may be. Reads the configuration only if there
 * are such files.
 *
 * @paths: (inout): emptied if the configuration cannot be read
 *
 * Returns: (transfer full): of char: the folders
 */
static GPtrArray *
find_metadata_folders(UprofSession *session, GPtrArray *paths)
{
    UprofConfig *config = session->caller_settings->config;
    GPtrArray *folders = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(UprofConfig) loaded = NULL;
    g_autoptr(GError) error = NULL;

    if (paths->len == 0)
        return folders;
    if (!config)
        config = loaded = uprof_config_load(NULL, &error);
    if (!config) {
        uprof_notice(session->caller_settings->notices, UPROF_NOTICE_WARNING,
                     "%s: symbols of its metadata are ignored: %s", session->shown, error->message);
        g_ptr_array_set_size(paths, 0);
        return folders;
    }
    for (guint i = 0; i < config->symbol_folders->len; i++)
        g_ptr_array_add(folders, g_strdup(g_ptr_array_index(config->symbol_folders, i)));
    return folders;
}

static void
make_rules(UprofSession *session, const GPtrArray *metadata_folders, const char *kernel)
{
    session->rules = uprof_file_rules_new();
    uprof_file_rules_set_domain(session->rules, session->domain->uuid);
    uprof_file_rules_add_settings(session->rules, &session->caller_settings->symbols);
    for (guint i = 0; i < metadata_folders->len; i++)
        uprof_file_rules_add_folder(session->rules, g_ptr_array_index(metadata_folders, i));
    if (kernel)
        uprof_file_rules_add_symbols(session->rules, kernel);
}

/* @from_metadata: (inout): files that the metadata names */
static bool
start_worker(UprofSession *session, UprofWorkers *workers, GPtrArray *from_metadata,
             const UprofSessionOutputs *outputs, GError **error)
{
    g_autoptr(GPtrArray) folders = find_metadata_folders(session, from_metadata);
    g_autoptr(GPtrArray) no_names = g_ptr_array_new();
    g_autoptr(GArray) no_outputs = g_array_new(FALSE, FALSE, sizeof(UprofWorkerOutput));
    g_autofree char *hint = NULL;
    const char *kernel = find_kernel_file(session->domain, &hint);

    if (session->domain->kernel_problem && session->caller_settings->symbols.files->len == 0)
        uprof_notice(session->caller_settings->notices, UPROF_NOTICE_HINT, "%s: %s", session->shown,
                     session->domain->kernel_problem);
    const UprofWorkerJob job = {
        .shown = session->shown,
        .guest = session->guest,
        .run = session->run,
        .metadata_symbols = from_metadata,
        .metadata_folders = folders,
        .kernel = kernel,
        .kernel_hint = hint,
        .outputs = outputs ? outputs->outputs : no_outputs,
        .file_names = outputs ? outputs->file_names : no_names,
        .waits = session->settings.waits,
        .notices = session->caller_settings->notices,
    };

    make_rules(session, folders, kernel);
    session->worker = uprof_worker_new(workers, &job, session->rules, error);
    return session->worker != NULL;
}

uint64_t
uprof_session_budget_ppm(const UprofSession *session)
{
    if (session->settings.budget_ppm > 0)
        return session->settings.budget_ppm;
    return session->guest->grain == UPROF_GRAIN_VCPU ? (uint64_t)BUDGET_DIRECT_PPM
                                                     : (uint64_t)BUDGET_MONITOR_PPM;
}

/* Returns: false if a vCPU of the settings does not exist; after a fall-back, if none exists */
static bool
choose_vcpus(UprofSession *session, GError **error)
{
    const UprofSettings *settings = &session->settings;
    const unsigned n_vcpus = session->guest->n_vcpus;
    /* a vCPU of the settings may have been unplugged before a fall-back */
    const bool is_strict = session->counts_before.elapsed_ns == 0;
    unsigned n_wanted = 0;

    session->wanted = g_new0(bool, n_vcpus);
    session->sizes = g_new0(UprofWindowSize, n_vcpus);
    for (unsigned i = 0; i < n_vcpus; i++) {
        session->wanted[i] = uprof_settings_has_vcpu(settings, i);
        n_wanted += session->wanted[i];
        uprof_window_size_init(&session->sizes[i]);
    }
    for (guint i = 0; settings->vcpus && i < settings->vcpus->len; i++) {
        const uint32_t vcpu = g_array_index(settings->vcpus, uint32_t, i);
        if (vcpu < n_vcpus || (!is_strict && n_wanted > 0))
            continue;
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                    "%s: no vCPU %u: the domain has vCPUs 0 to %u", session->shown, vcpu,
                    n_vcpus - 1);
        return false;
    }
    return true;
}

static bool
make_sampler(UprofSession *session, uint64_t duration_ns, UprofRing *ring, GError **error)
{
    const UprofSettings *settings = &session->settings;
    const UprofSamplerCounts *before = &session->counts_before;

    if (!choose_vcpus(session, error))
        return false;
    const UprofSamplerSettings sampling = {
        .rate_mhz = MAX(settings->rate_mhz / MAX(before->divisor, 1), 1),
        .duration_ns = duration_ns,
        .budget_ppm = uprof_session_budget_ppm(session),
        .max_pause_ns = settings->max_pause_ns,
        .continues_run = before->elapsed_ns > 0,
        .run_offset_ns = before->elapsed_ns,
        .idle_stacks = settings->idle_stacks,
        .wanted = session->wanted,
        .sizes = session->sizes,
        .seed = uprof_clock_utc_ns(),
        .links = uprof_worker_links(session->worker),
        .chains = uprof_worker_chains(session->worker),
        .owner = session->worker,
    };
    uprof_worker_set_sizes(session->worker, session->sizes, session->guest->n_vcpus);
    session->sampler = uprof_sampler_new(session->guest, &sampling, ring);
    return true;
}

bool
uprof_session_prepare(UprofSession *session, UprofWorkers *workers,
                      const UprofSessionOutputs *outputs, UprofRing *ring, GError **error)
{
    g_autoptr(GPtrArray) from_metadata = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) bad = NULL;

    if (!uprof_settings_take_metadata(&session->settings, &session->domain->xml->metadata,
                                      session->caller_settings->config, from_metadata, &bad))
        uprof_notice(session->caller_settings->notices, UPROF_NOTICE_WARNING, "%s: %s",
                     session->shown, bad->message);
    fill_run(session);
    return start_worker(session, workers, from_metadata, outputs, error) &&
           make_sampler(session, session->settings.duration_ns, ring, error);
}

void
uprof_session_prime(UprofSession *session)
{
    const unsigned n_vcpus = session->guest->n_vcpus;
    g_autofree UprofSnapshot **slots = g_new0(UprofSnapshot *, n_vcpus);
    g_autofree UprofSnapshot *pool = g_new0(UprofSnapshot, n_vcpus);
    unsigned n = 0;

    for (unsigned i = 0; i < n_vcpus; i++)
        slots[i] = &pool[i];
    /* if this fails, sampling fails too, and the error of sampling says why */
    if (uprof_sampler_sample_once(session->sampler, slots, &n, NULL) != UPROF_OK)
        return;
    for (unsigned i = 0; i < n; i++) {
        slots[i]->is_prime = true;
        slots[i]->time_ns = 0;
        uprof_worker_take(session->worker, slots[i]);
    }
    uprof_worker_sync(session->worker, NULL);
}

/* Moves the members that depend on the access method. */
static void
move_access(UprofSession *to, UprofSession *from)
{
    to->guest = g_steal_pointer(&from->guest);
    to->sampler = g_steal_pointer(&from->sampler);
    to->sizes = g_steal_pointer(&from->sizes);
    to->wanted = g_steal_pointer(&from->wanted);
    to->counts_before = from->counts_before;
}

static void
free_access(UprofSession *access)
{
    uprof_sampler_free(access->sampler);
    uprof_guest_close(access->guest);
    g_free(access->sizes);
    g_free(access->wanted);
}

/* Returns: false with the error; the session keeps the members that were made before the error */
static bool
open_monitor(UprofSession *session, UprofGuardian *guardian, uint64_t left_ns, UprofRing *ring,
             GError **error)
{
    session->guest = open_method(session, uprof_access_find("monitor"), false, error);
    return session->guest && uprof_worker_move(session->worker, session->guest, error) &&
           make_sampler(session, left_ns, ring, error) &&
           uprof_guardian_forget(guardian, session->domain->uuid, error) &&
           tell_guardian(session, guardian, error);
}

bool
uprof_session_fall_back(UprofSession *session, UprofGuardian *guardian, UprofRing *ring,
                        GError **error)
{
    const uint64_t asked_ns = uprof_sampler_asked_ns(session->sampler);
    UprofSamplerCounts counts;
    UprofSession old = { 0 };

    uprof_sampler_counts(session->sampler, &counts);
    const uint64_t left_ns =
        asked_ns > counts.elapsed_ns ? asked_ns - counts.elapsed_ns : asked_ns > 0;
    move_access(&old, session);
    session->counts_before = counts;
    if (!open_monitor(session, guardian, left_ns, ring, error)) {
        /* the worker must not read from a guest that is closed */
        uprof_worker_move(session->worker, old.guest, NULL);
        free_access(session);
        move_access(session, &old);
        return false;
    }
    free_access(&old);
    g_free(session->why);
    session->why = g_strdup(
        "changed from 'direct' during the run, because a vCPU thread did not stop in time");
    g_free(session->run->access);
    session->run->access = g_strdup(session->guest->ops->name);
    g_free(session->run->why);
    session->run->why = g_strdup(session->why);
    return true;
}

void
uprof_session_note_counts(UprofSession *session, UprofSamplerCounts *counts)
{
    const UprofSamplerCounts *before = &session->counts_before;
    UprofRun *run = session->run;

    uprof_sampler_counts(session->sampler, counts);
    run->duration_ns = before->elapsed_ns + counts->elapsed_ns;
    run->divisor = counts->divisor * MAX(before->divisor, 1);
    run->late = before->late + counts->late;
    run->busy = before->busy + counts->busy;
    run->skipped = before->skipped + counts->skipped + uprof_worker_lost(session->worker);
    run->stuck = before->stuck + counts->stuck;
    run->held_ns = before->most_held_ns + counts->most_held_ns;
}

static void
report_recovery(const char *name, const GError *error, void *data)
{
    const UprofNotices *notices = data;

    if (error)
        uprof_notice_error(notices, error);
    else
        uprof_notice(notices, UPROF_NOTICE_HINT,
                     "%s: a run that died had left it stopped; virt-uprof has resumed it", name);
}

UprofErrorCode
uprof_session_recover(const UprofNotices *notices)
{
    return uprof_guardian_heal(uprof_access_find, report_recovery, (void *)notices)
               ? UPROF_ERROR_NONE
               : UPROF_ERROR_LEFT_HELD;
}

UprofErrorCode
uprof_session_end_guardian(UprofGuardian *guardian, bool died, const UprofNotices *notices)
{
    g_autoptr(GError) error = NULL;

    if (uprof_guardian_end(guardian, &error))
        return UPROF_ERROR_NONE;
    if (g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD))
        return uprof_notice_error(notices, error);
    /* the guardian has died, so this process resumes its guests */
    if (!died)
        uprof_notice_error(notices, error);
    return uprof_error_merge(uprof_session_recover(notices), UPROF_ERROR_FAILED);
}
