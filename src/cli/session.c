/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "session-priv.h"

#include "exit-priv.h"
#include "uprof/clock.h"
#include "uprof/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LOCK_WAIT_S = 60,
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
    uprof_pipeline_free(session->pipeline);
    uprof_guest_close(session->guest);
    uprof_marker_close(session->marker);
    if (session->guardian) {
        g_autoptr(GError) error = NULL;
        if (!uprof_guardian_forget(session->guardian, session->domain->uuid, &error) &&
            g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD))
            uprof_say_error(error); /* the guardian says so again at its end */
    }
    uprof_run_free(session->run);
    uprof_domain_free(session->domain);
    uprof_settings_clear(&session->settings);
    g_free(session->shown);
    g_free(session->why);
    g_free(session->symbols_hint);
    g_free(session->sizes);
    g_free(session->wanted);
    pthread_sigmask(SIG_SETMASK, &session->signals, NULL);
    g_free(session);
}

static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

bool
uprof_session_is_interrupted(void)
{
    sigset_t pending;

    sigpending(&pending);
    for (size_t i = 0; i < G_N_ELEMENTS(ending_signals); i++)
        if (sigismember(&pending, ending_signals[i]))
            return true;
    return false;
}

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
uprof_session_check_state(const UprofDomain *domain, GError **error)
{
    g_autofree char *name = uprof_text_quote(domain->name);

    /* of a pause libvirt may only have heard late: the backend asks the hypervisor itself */
    if (domain->state == UPROF_DOMAIN_RUNNING || domain->state == UPROF_DOMAIN_PAUSED)
        return true;
    if (domain->state == UPROF_DOMAIN_SHUTOFF)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' is shut off; start it with: virsh start %s", name,
                    uprof_text_shell_word(domain->name, domain->uuid));
    else
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "domain '%s' is %s; it can be sampled when it runs", name, domain->state_name);
    return false;
}

/* A round may be long: what it saw of metadata at its begin may have changed. */
static bool
check_enabled(const UprofSession *session, const UprofOptions *options, GError **error)
{
    const UprofMetadata *metadata = &session->domain->xml->metadata;
    UprofSettings settings = options->settings;
    g_autoptr(GError) bad = NULL;

    if (!uprof_settings_take_metadata(&settings, metadata, options->config, NULL, &bad)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "%s: %s", session->shown, bad->message);
        return false;
    }
    if (!metadata->present)
        settings.enabled = uprof_config_has_domain(options->config, session->domain->name);
    if (!settings.enabled)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND, "%s: it is not enabled any more",
                    session->shown);
    return settings.enabled;
}

/* Returns: whether <os><kernel> is a source of names now; else @why not */
static bool
add_kernel(UprofSym *sym, const UprofDomain *domain, char **why)
{
    const char *kernel = domain->xml->kernel;
    g_autofree char *shown = uprof_text_quote(kernel);
    g_autoptr(GError) error = NULL;

    *why = NULL;
    if (!kernel)
        *why = g_strdup("it boots from a disk: give its symbols with -s");
    else if (!domain->is_local)
        *why = g_strdup_printf("its kernel '%s' is on another host: copy it and give it with -s",
                               shown);
    else if (!uprof_sym_add_file(sym, kernel, true, &error)) {
        *why = g_strdup_printf("%s: give its symbols with -s", error->message);
        /* its code says where callers are, if not what they are called */
        uprof_sym_add_file(sym, kernel, false, NULL);
    }
    return !*why;
}

char *
uprof_session_find_kernel(const UprofDomain *domain, char **why)
{
    const UprofArch *arch = domain->xml->arch ? uprof_arch_find(domain->xml->arch) : NULL;
    g_autoptr(UprofNames) names = uprof_names_new();
    UprofSymSource source;

    *why = NULL;
    if (!arch)
        return NULL;
    g_autoptr(UprofSym) sym = uprof_sym_new(arch, names);
    if (!add_kernel(sym, domain, why))
        return NULL;
    uprof_sym_source(sym, 0, &source);
    return g_strdup(source.path);
}

/* Takes the domain's lock; another run is waited for, if asked to. */
static UprofMarker *
take_lock(const UprofSession *session, bool wait, bool quiet, bool *locked, GError **error)
{
    const uint64_t until_ns = uprof_clock_now_ns() + LOCK_WAIT_S * UPROF_NS_PER_S;
    bool said = false;

    for (;;) {
        g_autoptr(UprofMarker) marker = uprof_marker_open(session->domain->uuid, locked, error);
        bool was_held;
        if (marker) {
            /* the run that had it may have died meanwhile, and its guardian with it */
            return uprof_guardian_heal_marker(uprof_access_find, marker, &was_held, error)
                       ? g_steal_pointer(&marker)
                       : NULL;
        }
        if (!*locked)
            return NULL;
        if (!wait || uprof_clock_now_ns() >= until_ns || uprof_session_is_interrupted()) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                        "%s: another run of virt-uprof samples it", session->shown);
            return NULL;
        }
        if (!said && !quiet)
            uprof_say("%s: another run of virt-uprof samples it; waiting for its end",
                      session->shown);
        said = true;
        g_usleep(LOCK_STEP_MS * 1000);
    }
}

static bool
tell_guardian(UprofSession *session, UprofGuardian *guardian, const UprofOptions *options,
              GError **error)
{
    UprofMarkerInfo info = { .id = session->domain->id, .pid = getpid() };
    const char *uri = options->uri ? options->uri : session->domain->uri;
    UprofGuestFacts facts;

    uprof_guest_facts(session->guest, &facts);
    g_strlcpy(info.uuid, session->domain->uuid, sizeof(info.uuid));
    if (g_strlcpy(info.uri, uri, sizeof(info.uri)) >= sizeof(info.uri)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                    "%s: the connection's URI is longer than the %d bytes that the guardian takes",
                    session->shown, UPROF_MARKER_URI_BYTES_MAX - 1);
        return false;
    }
    g_strlcpy(info.name, session->shown, sizeof(info.name));
    g_strlcpy(info.access, session->guest->ops->name, sizeof(info.access));
    info.qemu_pid = facts.pid;
    info.qemu_start = facts.pid_start;
    info.start = uprof_marker_process_start(info.pid);
    uprof_marker_set_info(session->marker, &info);
    if (!uprof_guardian_watch(guardian, session->marker, error)) {
        g_prefix_error(error, "%s: the guardian cannot watch it: ", session->shown);
        return false;
    }
    session->guardian = guardian;
    return true;
}

/* Returns: (nullable) (transfer full) */
static UprofGuest *
open_way(const UprofSession *session, const UprofGuestOps *ops, const UprofOptions *options,
         bool may_be_paused, GError **error)
{
    const UprofDomain *domain = session->domain;
    const UprofTarget target = {
        .uri = options->uri ? options->uri : domain->uri,
        .uuid = domain->uuid,
        .name = domain->name,
        .id = domain->id,
        .arch = domain->xml->arch ? uprof_arch_find(domain->xml->arch) : NULL,
        .n_vcpus = domain->xml->vcpus_max,
        .kvm = strcmp(domain->xml->type, "kvm") == 0,
        .no_pause = session->settings.no_pause,
        .idle_stacks = session->settings.idle_stacks,
        .may_be_paused = may_be_paused,
        .max_pause_ns = session->settings.max_pause_ns,
        .marker = session->marker,
    };

    return uprof_guest_open(ops, &target, error);
}

/* Whether another way may do better, after one has failed with @error. */
static bool
may_try_next(const GError *error)
{
    return g_error_matches(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED) ||
           g_error_matches(error, UPROF_ERROR, UPROF_ERROR_DENIED);
}

/* Such errors begin with the domain's name, which stands before this anyway. */
static char *
describe_failure(const char *way, const GError *failure)
{
    g_autofree char *no_access = g_strdup_printf("no access '%s': ", way);
    const char *reason = strstr(failure->message, no_access);

    return g_strdup_printf("not '%s': %s", way,
                           reason ? reason + strlen(no_access) : failure->message);
}

static bool
open_guest(UprofSession *session, const UprofOptions *options, UprofGuardian *guardian,
           bool may_be_paused, GError **error)
{
    g_auto(UprofAccess) access = { 0 };

    if (!uprof_access_choose(session->domain, options->access, session->settings.no_pause, &access,
                             error))
        return false;
    session->why = g_steal_pointer(&access.why);
    for (unsigned i = 0; i < access.n; i++) {
        g_autoptr(GError) failure = NULL;
        session->guest = open_way(session, access.ways[i], options, may_be_paused, &failure);
        if (session->guest)
            break;
        if (i + 1 == access.n || !may_try_next(failure)) {
            g_propagate_error(error, g_steal_pointer(&failure));
            return false;
        }
        g_free(session->why);
        session->why = describe_failure(access.ways[i]->name, failure);
    }
    return session->guest->grain == UPROF_GRAIN_NONE || session->guest->paused ||
           tell_guardian(session, guardian, options, error);
}

static void
copy_settings(UprofSettings *to, const UprofSettings *from)
{
    *to = *from;
    if (to->vcpus)
        g_array_ref(to->vcpus);
}

UprofSession *
uprof_session_open(UprofDomain *domain, const UprofOptions *options, UprofGuardian *guardian,
                   bool may_be_paused, bool wait, bool *locked, GError **error)
{
    g_autoptr(UprofSession) session = g_new0(UprofSession, 1);

    *locked = false;
    block_signals(session);
    session->domain = domain;
    session->shown = uprof_text_quote(domain->name);
    copy_settings(&session->settings, &options->settings);
    if (!uprof_session_check_state(domain, error))
        return NULL;
    if (options->only_enabled && !check_enabled(session, options, error))
        return NULL;
    session->marker = take_lock(session, wait, options->quiet, locked, error);
    if (!session->marker || !open_guest(session, options, guardian, may_be_paused, error))
        return NULL;
    return g_steal_pointer(&session);
}

static void
fill_run(UprofSession *session)
{
    const UprofDomain *domain = session->domain;
    const UprofSettings *settings = &session->settings;
    UprofRun *run = uprof_run_new();

    run->program = g_strdup("virt-uprof " UPROF_VERSION);
    run->domain = g_strdup(domain->name);
    run->uuid = g_strdup(domain->uuid);
    run->driver = g_strdup(domain->driver);
    run->type = g_strdup(domain->xml->type);
    run->arch = g_strdup(domain->xml->arch);
    run->access = g_strdup(session->guest->ops->name);
    run->why = g_strdup(session->why);
    run->unwind = g_strdup(settings->unwind);
    run->vcpus =
        session->guest->grain == UPROF_GRAIN_VCPU ? domain->xml->vcpus : session->guest->n_vcpus;
    run->started_utc_ns = uprof_clock_utc_ns();
    run->rate_mhz = settings->rate_mhz;
    run->asked_ns = settings->duration_ns;
    run->max_depth = settings->max_depth;
    run->per_vcpu = settings->per_vcpu;
    run->pids = settings->pids;
    run->idle = settings->idle;
    run->idle_stacks = settings->idle_stacks;
    run->no_pause = settings->no_pause;
    run->divisor = 1;
    session->run = run;
}

static int
open_allowed(const char *path, void *config, GError **error)
{
    return uprof_settings_open_symbols(config, path, error);
}

/* Metadata names files only in the folders that root keeps for them, or the domain's own kernel. */
static void
add_metadata_symbols(UprofSession *session, UprofConfig *config, const GPtrArray *paths)
{
    const UprofSymOpener opener = { open_allowed, config };

    for (guint i = 0; i < paths->len; i++) {
        const char *path = g_ptr_array_index(paths, i);
        const bool is_kernel = g_strcmp0(path, session->domain->xml->kernel) == 0;
        g_autoptr(GError) error = NULL;
        if (!uprof_sym_add_file_by(session->pipeline->sym, path, is_kernel ? NULL : &opener, true,
                                   &error))
            uprof_say("virt-uprof: %s: metadata: %s; ignored", session->shown, error->message);
    }
}

/* Only where metadata names symbols it must be known what it may name. */
static void
take_metadata_symbols(UprofSession *session, const UprofOptions *options, const GPtrArray *paths)
{
    g_autoptr(UprofConfig) loaded = NULL;
    g_autoptr(GError) error = NULL;

    if (paths->len == 0)
        return;
    if (!options->config)
        loaded = uprof_config_load(NULL, &error);
    if (error)
        uprof_say("virt-uprof: %s: symbols of its metadata are ignored: %s", session->shown,
                  error->message);
    else
        add_metadata_symbols(session, options->config ? options->config : loaded, paths);
}

static bool
add_symbols(UprofSession *session, const UprofOptions *options, const GPtrArray *from_metadata,
            GError **error)
{
    UprofSym *sym = session->pipeline->sym;
    const UprofSymConfig config = uprof_options_sym_config(options);

    uprof_sym_configure(sym, &config);
    if (!uprof_options_add_symbols(options, sym, error))
        return false;
    if (options->symbols->len == 0)
        take_metadata_symbols(session, options, from_metadata);
    if (uprof_sym_n_sources(sym) > 0)
        return true;
    add_kernel(sym, session->domain, &session->symbols_hint);
    return true;
}

uint64_t
uprof_session_budget_ppm(const UprofSession *session)
{
    if (session->settings.budget_ppm > 0)
        return session->settings.budget_ppm;
    return session->guest->grain == UPROF_GRAIN_VCPU ? (uint64_t)BUDGET_DIRECT_PPM
                                                     : (uint64_t)BUDGET_MONITOR_PPM;
}

/* Returns: false if a vCPU was asked for that there is not, or none that there is */
static bool
choose_vcpus(UprofSession *session, GError **error)
{
    const UprofSettings *settings = &session->settings;
    const unsigned n_vcpus = session->guest->n_vcpus;
    /* in mid-run one that was asked for may have been unplugged */
    const bool is_strict = session->before.elapsed_ns == 0;
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
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "%s: there is no vCPU %u: its vCPUs are 0 to %u", session->shown, vcpu,
                    n_vcpus - 1);
        return false;
    }
    return true;
}

static bool
make_sampler(UprofSession *session, uint64_t duration_ns, UprofRing *ring, void *owner,
             GError **error)
{
    const UprofSettings *settings = &session->settings;
    const UprofSamplerCounts *before = &session->before;

    if (!choose_vcpus(session, error))
        return false;
    const UprofSamplerPlan plan = {
        .rate_mhz = MAX(settings->rate_mhz / MAX(before->divisor, 1), 1),
        .duration_ns = duration_ns,
        .budget_ppm = uprof_session_budget_ppm(session),
        .max_pause_ns = settings->max_pause_ns,
        .goes_on = before->elapsed_ns > 0,
        .gone_ns = before->elapsed_ns,
        .idle_stacks = settings->idle_stacks,
        .wanted = session->wanted,
        .sizes = session->sizes,
        .seed = uprof_clock_utc_ns(),
        .links = uprof_linux_links(session->pipeline->kernel),
        .owner = owner,
    };
    session->sampler = uprof_sampler_new(session->guest, &plan, ring);
    return true;
}

static bool
begin_pipeline(UprofSession *session, GError **error)
{
    session->pipeline->sizes = session->sizes;
    return uprof_pipeline_begin(session->pipeline, error);
}

bool
uprof_session_prepare(UprofSession *session, const UprofOptions *options, UprofWriter *writer,
                      UprofRing *ring, void *owner, GError **error)
{
    g_autoptr(GPtrArray) from_metadata = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) bad = NULL;

    if (!uprof_settings_take_metadata(&session->settings, &session->domain->xml->metadata,
                                      options->config, from_metadata, &bad))
        uprof_say("virt-uprof: %s: %s", session->shown, bad->message);
    fill_run(session);
    session->pipeline = uprof_pipeline_new(session->guest, session->run, writer);
    return add_symbols(session, options, from_metadata, error) &&
           make_sampler(session, session->settings.duration_ns, ring, owner, error) &&
           begin_pipeline(session, error);
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
    /* if it fails the run itself will meet why, and say so */
    if (uprof_sampler_shoot(session->sampler, slots, &n, NULL) != UPROF_OK)
        return;
    for (unsigned i = 0; i < n; i++) {
        slots[i]->is_prime = true;
        slots[i]->time_ns = 0;
        uprof_pipeline_take(session->pipeline, slots[i], NULL);
    }
}

/* What has to do with one way into the guest. */
static void
take_way(UprofSession *to, UprofSession *from)
{
    to->guest = g_steal_pointer(&from->guest);
    to->sampler = g_steal_pointer(&from->sampler);
    to->sizes = g_steal_pointer(&from->sizes);
    to->wanted = g_steal_pointer(&from->wanted);
    to->before = from->before;
}

static void
free_way(UprofSession *way)
{
    uprof_sampler_free(way->sampler);
    uprof_guest_close(way->guest);
    g_free(way->sizes);
    g_free(way->wanted);
}

/* Returns: false with what there is of the new way in the session */
static bool
open_monitor(UprofSession *session, const UprofOptions *options, UprofGuardian *guardian,
             uint64_t left_ns, UprofRing *ring, void *owner, GError **error)
{
    session->guest = open_way(session, uprof_access_find("monitor"), options, false, error);
    return session->guest && make_sampler(session, left_ns, ring, owner, error) &&
           uprof_guardian_forget(guardian, session->domain->uuid, error) &&
           tell_guardian(session, guardian, options, error);
}

bool
uprof_session_fall_back(UprofSession *session, const UprofOptions *options, UprofGuardian *guardian,
                        UprofRing *ring, void *owner, GError **error)
{
    const uint64_t asked_ns = uprof_sampler_asked_ns(session->sampler);
    UprofSamplerCounts counts;
    UprofSession old = { 0 };

    uprof_sampler_counts(session->sampler, &counts);
    const uint64_t left_ns =
        asked_ns > counts.elapsed_ns ? asked_ns - counts.elapsed_ns : asked_ns > 0;
    take_way(&old, session);
    session->before = counts;
    if (!open_monitor(session, options, guardian, left_ns, ring, owner, error)) {
        free_way(session);
        take_way(session, &old);
        return false;
    }
    uprof_pipeline_move(session->pipeline, session->guest);
    session->pipeline->sizes = session->sizes;
    free_way(&old);
    g_free(session->why);
    session->why = g_strdup("a vCPU thread did not stop in time in mid-run; 'direct' before");
    g_free(session->run->access);
    session->run->access = g_strdup(session->guest->ops->name);
    g_free(session->run->why);
    session->run->why = g_strdup(session->why);
    return true;
}

void
uprof_session_note_counts(UprofSession *session, UprofSamplerCounts *counts)
{
    const UprofSamplerCounts *before = &session->before;
    UprofRun *run = session->run;

    uprof_sampler_counts(session->sampler, counts);
    run->duration_ns = before->elapsed_ns + counts->elapsed_ns;
    run->divisor = counts->divisor * MAX(before->divisor, 1);
    run->late = before->late + counts->late;
    run->busy = before->busy + counts->busy;
    run->skipped = before->skipped + counts->skipped;
    run->stuck = before->stuck + counts->stuck;
    run->held_ns = before->most_held_ns + counts->most_held_ns;
}

static void
say_healed(const char *name, const GError *error, void *data)
{
    const bool *quiet = data;

    if (error)
        uprof_say_error(error);
    else if (!*quiet)
        uprof_say("virt-uprof: %s had been left by a run that died; it is not held any more", name);
}

int
uprof_session_heal(bool quiet)
{
    return uprof_guardian_heal(uprof_access_find, say_healed, &quiet) ? UPROF_EXIT_OK
                                                                      : UPROF_EXIT_LEFT_HELD;
}

int
uprof_session_end_guardian(UprofGuardian *guardian, bool died, bool quiet)
{
    g_autoptr(GError) error = NULL;

    if (uprof_guardian_end(guardian, &error))
        return UPROF_EXIT_OK;
    if (g_error_matches(error, UPROF_ERROR, UPROF_ERROR_LEFT_HELD))
        return uprof_say_error(error);
    /* it cannot look any more: do it here */
    if (!died)
        uprof_say_error(error);
    return uprof_exit_worse(uprof_session_heal(quiet), UPROF_EXIT_FAILED);
}
