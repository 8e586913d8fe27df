/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Only this file knows which backends this build has. xen-loader.c loads the backend for Xen.
 */
#include "uprof/access.h"

#include "uprof/backend.h"
#include "uprof/text.h"

#include "xen-loader-priv.h"

#include <string.h>

static const UprofGuestOps *const backends[] = {
#ifdef WITH_DIRECT
    &uprof_direct_ops,
#endif
#ifdef WITH_QEMU
    &uprof_monitor_ops,
#endif
    &uprof_replay_ops,
};

const UprofGuestOps *
uprof_access_find(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(backends); i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    const UprofXenModule *xen = strcmp(name, "xen") == 0 ? uprof_xen_loader_load(NULL) : NULL;
    return xen ? xen->ops : NULL;
}

bool
uprof_access_is_host(const UprofDomain *domain)
{
    return strcmp(domain->driver, "Xen") == 0 && domain->id == 0;
}

void
uprof_access_clear(UprofAccess *access)
{
    g_free(access->why);
}

static bool
refuse_with(GError **error, UprofErrorCode code, const UprofDomain *domain, const char *why)
{
    g_autofree char *name = uprof_text_quote(domain->name);

    g_set_error(error, UPROF_ERROR, (gint)code, "%s: %s", name, why);
    return false;
}

static bool
refuse_domain(GError **error, const UprofDomain *domain, const char *why)
{
    return refuse_with(error, UPROF_ERROR_UNSUPPORTED, domain, why);
}

/* Refuses an option that is for other domains: without the option, @domain can be sampled. */
static bool
refuse_option(GError **error, const UprofDomain *domain, const char *why)
{
    return refuse_with(error, UPROF_ERROR_USAGE, domain, why);
}

/* Refuses domains that no access method can sample. */
static bool
check_domain(const UprofDomain *domain, GError **error)
{
    g_autofree char *message = NULL;

    if (domain->bad_xml)
        return refuse_domain(error, domain, domain->bad_xml);
    if (domain->xml->security) {
        g_autofree char *security = uprof_text_quote(domain->xml->security);
        message = g_strdup_printf("memory is encrypted (launchSecurity %s): neither registers nor "
                                  "stacks can be read",
                                  security);
        return refuse_domain(error, domain, message);
    }
    if (uprof_access_is_host(domain))
        return refuse_domain(
            error, domain,
            "it is dom0, in which virt-uprof itself runs: pausing it would stop the profiler; "
            "to profile dom0 use perf");
    if (strcmp(domain->driver, "QEMU") != 0 && strcmp(domain->driver, "Xen") != 0) {
        g_autofree char *driver = uprof_text_quote(domain->driver);
        message = g_strdup_printf("guests of libvirt's driver '%s' cannot be sampled", driver);
        return refuse_domain(error, domain, message);
    }
    if (strcmp(domain->driver, "QEMU") == 0 && !uprof_access_find("monitor"))
        return refuse_domain(error, domain, "this build was made without QEMU (-Dqemu=disabled)");
    if (!domain->xml->arch || !uprof_arch_find(domain->xml->arch)) {
        g_autofree char *arch = uprof_text_quote(domain->xml->arch ? domain->xml->arch : "?");
        message = g_strdup_printf("guests of architecture '%s' cannot be sampled yet", arch);
        return refuse_domain(error, domain, message);
    }
    return true;
}

static bool
choose_xen(const UprofDomain *domain, const char *asked, UprofStop stop, UprofAccess *access,
           GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autofree char *message = NULL;

    if (strcmp(asked, "auto") != 0 && strcmp(asked, "xen") != 0) {
        message = g_strdup_printf("no access '%s' to a domain of Xen: leave out --access", asked);
        return refuse_option(error, domain, message);
    }
    if (stop == UPROF_STOP_NONE)
        return refuse_option(error, domain, "--no-pause is for KVM: leave it out");
    if (!domain->is_local)
        return refuse_domain(
            error, domain,
            "the connection is remote, and domains of Xen are sampled in their dom0: "
            "run virt-uprof there");
    const UprofXenModule *xen = uprof_xen_loader_load(&failure);
    if (!xen)
        return refuse_domain(error, domain, failure->message);
    access->methods[access->n++] = xen->ops;
    const char *why = strcmp(asked, "auto") != 0
                          ? "asked for"
                          : "Xen pauses the complete domain for microseconds";
    access->why =
        g_strconcat(domain->is_of_xl ? "not libvirt's domain, but made by xl; " : "", why, NULL);
    return true;
}

/* Returns: (nullable): why "direct" cannot be used; a literal. @code: (out): for that error */
static const char *
find_obstacle(const UprofDomain *domain, UprofStop stop, UprofErrorCode *code)
{
    *code = UPROF_ERROR_UNSUPPORTED;
    if (strcmp(domain->xml->type, "kvm") != 0)
        return "it is emulated, and emulation can only be stopped as a whole";
    if (!domain->is_local)
        return "the connection is remote";
    if (stop == UPROF_STOP_NONE)
        return "--no-pause was asked for";
    if (stop == UPROF_STOP_WHOLE)
        return "--pause holds the whole guest, and 'direct' holds one vCPU";
#ifdef WITH_DIRECT
    return uprof_direct_obstacle(code);
#else
    return "this build is for a host that is not x86";
#endif
}

bool
uprof_access_choose(const UprofDomain *domain, const char *asked, UprofStop stop,
                    UprofAccess *access, GError **error)
{
    const UprofGuestOps *direct = uprof_access_find("direct");
    UprofErrorCode code;

    *access = (UprofAccess){ .n = 0 };
    if (!check_domain(domain, error))
        return false;
    if (strcmp(domain->driver, "Xen") == 0)
        return choose_xen(domain, asked, stop, access, error);
    if (strcmp(asked, "xen") == 0)
        return refuse_option(error, domain, "no access 'xen': it is not a domain of Xen");
    const char *obstacle = find_obstacle(domain, stop, &code);
    if (strcmp(asked, "direct") == 0 && obstacle) {
        g_autofree char *name = uprof_text_quote(domain->name);
        g_set_error(error, UPROF_ERROR, (gint)code, "%s: no access 'direct': %s", name, obstacle);
        return false;
    }
    if (!obstacle && strcmp(asked, "monitor") != 0)
        access->methods[access->n++] = direct;
    if (strcmp(asked, "direct") != 0)
        access->methods[access->n++] = uprof_access_find("monitor");
    if (strcmp(asked, "auto") != 0)
        access->why = g_strdup("asked for");
    else if (access->n > 1)
        access->why = g_strdup("local KVM: one vCPU at a time, for microseconds");
    else if (stop == UPROF_STOP_NONE)
        access->why = g_strdup("without stopping (--no-pause): stacks that change while they are "
                               "read count as truncated");
    else
        access->why = g_strdup_printf("stops the whole guest; not 'direct': %s", obstacle);
    return true;
}
