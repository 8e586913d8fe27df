/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Picks an access method; the only place that knows what was built in. `direct`
 * (KVM, one vCPU at a time) and the Xen module join the table here.
 */
#include "access-priv.h"

#include "uprof/backend.h"
#include "uprof/text.h"

#include <string.h>

static const UprofGuestOps *const backends[] = {
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
    return NULL;
}

static const UprofGuestOps *
refuse(GError **error, const UprofDomain *domain, const char *why)
{
    g_autofree char *name = uprof_text_quote(domain->name);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED, "%s: %s", name, why);
    return NULL;
}

const UprofGuestOps *
uprof_access_choose(const UprofDomain *domain, const char *asked, const char **why, GError **error)
{
    const UprofGuestOps *monitor = uprof_access_find("monitor");
    g_autofree char *message = NULL;

    if (domain->bad_xml)
        return refuse(error, domain, domain->bad_xml);
    if (domain->xml->security) {
        g_autofree char *security = uprof_text_quote(domain->xml->security);
        message = g_strdup_printf("memory is encrypted (launchSecurity %s): neither registers nor "
                                  "stacks can be read",
                                  security);
        return refuse(error, domain, message);
    }
    if (strcmp(domain->driver, "Xen") == 0)
        return refuse(error, domain, "this build has no module for Xen domains");
    if (strcmp(domain->driver, "QEMU") != 0) {
        g_autofree char *driver = uprof_text_quote(domain->driver);
        message = g_strdup_printf("libvirt's driver '%s' gives no way into its guests", driver);
        return refuse(error, domain, message);
    }
    if (!monitor)
        return refuse(error, domain, "this build was made without QEMU (-Dqemu=disabled)");
    if (!domain->xml->arch || !uprof_arch_find(domain->xml->arch)) {
        g_autofree char *arch = uprof_text_quote(domain->xml->arch ? domain->xml->arch : "?");
        message = g_strdup_printf("guests of architecture '%s' cannot be sampled yet", arch);
        return refuse(error, domain, message);
    }
    *why = strcmp(domain->xml->type, "kvm") == 0 ? "works everywhere; stops the whole guest"
                                                 : "emulated: the only way";
    return monitor;
}
