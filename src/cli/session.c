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
};

/* Symbol files that metadata may name: it is not root's word. */
#define SYMBOLS_FOLDER "/var/lib/virt-uprof/symbols"

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
    g_free(session->symbols_hint);
    g_free(session->sizes);
    g_free(session->wanted);
    g_free(session);
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
    else if (!uprof_sym_add_file(sym, kernel, true, &error))
        *why = g_strdup_printf("%s: give its symbols with -s", error->message);
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
        if (!wait || uprof_clock_now_ns() >= until_ns) {
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

static bool
open_guest(UprofSession *session, const UprofOptions *options, UprofGuardian *guardian,
           bool may_be_paused, GError **error)
{
    const UprofDomain *domain = session->domain;
    const UprofGuestOps *ops = uprof_access_choose(domain, options->access, &session->why, error);
    const UprofTarget target = {
        .uri = options->uri ? options->uri : domain->uri,
        .uuid = domain->uuid,
        .name = domain->name,
        .id = domain->id,
        .arch = domain->xml->arch ? uprof_arch_find(domain->xml->arch) : NULL,
        .n_vcpus = domain->xml->vcpus,
        .kvm = strcmp(domain->xml->type, "kvm") == 0,
        .no_pause = session->settings.no_pause,
        .may_be_paused = may_be_paused,
        .marker = session->marker,
    };

    if (!ops)
        return false;
    session->guest = uprof_guest_open(ops, &target, error);
    if (!session->guest)
        return false;
    return session->guest->grain != UPROF_GRAIN_GUEST || session->guest->paused ||
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
    session->domain = domain;
    session->shown = uprof_text_quote(domain->name);
    copy_settings(&session->settings, &options->settings);
    if (!uprof_session_check_state(domain, error))
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
    run->unwind = g_strdup("fp");
    run->vcpus = session->guest->n_vcpus;
    run->started_utc_ns = uprof_clock_utc_ns();
    run->rate_mhz = settings->rate_mhz;
    run->asked_ns = settings->duration_ns;
    run->max_depth = settings->max_depth;
    run->per_vcpu = settings->per_vcpu;
    run->idle = settings->idle;
    run->no_pause = settings->no_pause;
    run->divisor = 1;
    session->run = run;
}

/*
 * Metadata names files only in the folder that root keeps for them, or the
 * domain's own kernel. Returns: (transfer full) (nullable): the file without links
 */
static char *
resolve_allowed(const UprofSession *session, const char *path)
{
    g_autofree char *absolute = g_canonicalize_filename(path, "/");
    char *resolved = realpath(absolute, NULL);
    char *allowed = NULL;

    if (resolved && (g_str_has_prefix(resolved, SYMBOLS_FOLDER "/") ||
                     g_strcmp0(path, session->domain->xml->kernel) == 0))
        allowed = g_strdup(resolved);
    free(resolved);
    return allowed;
}

static void
add_metadata_symbols(UprofSession *session, const GPtrArray *paths)
{
    for (guint i = 0; i < paths->len; i++) {
        const char *path = g_ptr_array_index(paths, i);
        g_autoptr(GError) error = NULL;
        g_autofree char *shown = uprof_text_quote(path);
        g_autofree char *allowed = resolve_allowed(session, path);
        if (!allowed)
            uprof_say(
                "virt-uprof: %s: metadata names symbols '%s', which are not under " SYMBOLS_FOLDER
                "; ignored",
                session->shown, shown);
        else if (!uprof_sym_add_file(session->pipeline->sym, allowed, true, &error))
            uprof_say("virt-uprof: %s: metadata: %s; ignored", session->shown, error->message);
    }
}

static bool
add_symbols(UprofSession *session, const UprofOptions *options, const GPtrArray *from_metadata,
            GError **error)
{
    UprofSym *sym = session->pipeline->sym;

    for (guint i = 0; i < options->symbols->len; i++)
        if (!uprof_sym_add_file(sym, g_ptr_array_index(options->symbols, i), true, error))
            return false;
    if (options->symbols->len == 0)
        add_metadata_symbols(session, from_metadata);
    if (uprof_sym_n_sources(sym) > 0)
        return true;
    add_kernel(sym, session->domain, &session->symbols_hint);
    return true;
}

uint64_t
uprof_session_budget_ppm(const UprofSession *session)
{
    return session->settings.budget_ppm ? session->settings.budget_ppm
                                        : (uint64_t)BUDGET_MONITOR_PPM;
}

static bool
make_sampler(UprofSession *session, GError **error)
{
    const UprofSettings *settings = &session->settings;
    const unsigned n_vcpus = session->guest->n_vcpus;
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
        if (vcpu < n_vcpus)
            continue;
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "%s: there is no vCPU %u: its vCPUs are 0 to %u", session->shown, vcpu,
                    n_vcpus - 1);
        return false;
    }
    const UprofSamplerPlan plan = {
        .rate_mhz = settings->rate_mhz,
        .duration_ns = settings->duration_ns,
        .budget_ppm = uprof_session_budget_ppm(session),
        .max_pause_ns = settings->max_pause_ns,
        .wanted = session->wanted,
        .sizes = session->sizes,
        .seed = uprof_clock_utc_ns(),
    };
    session->sampler = uprof_sampler_new(session->guest, &plan);
    session->pipeline->sizes = session->sizes;
    return n_wanted > 0;
}

bool
uprof_session_prepare(UprofSession *session, const UprofOptions *options, UprofWriter *writer,
                      GError **error)
{
    g_autoptr(GPtrArray) from_metadata = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) bad = NULL;

    if (!uprof_settings_take_metadata(&session->settings, &session->domain->xml->metadata,
                                      from_metadata, &bad))
        uprof_say("virt-uprof: %s: %s", session->shown, bad->message);
    fill_run(session);
    session->pipeline = uprof_pipeline_new(session->guest, session->run, writer);
    return add_symbols(session, options, from_metadata, error) && make_sampler(session, error) &&
           uprof_pipeline_begin(session->pipeline, error);
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
