/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/host-findings.h"

#include "uprof/domid.h"
#include "uprof/marker.h"
#include "uprof/text.h"

#include "xen-loader-priv.h"

#include <unistd.h>

char *
uprof_host_findings_title(UprofHost *host, const UprofDomain *domain)
{
    g_autofree char *name = uprof_text_quote(domain->name);

    return g_strdup_printf("%s: %s, %s/%s, %s, %u vCPU%s, on %s", name, domain->state_name,
                           domain->driver, domain->xml->type,
                           domain->xml->arch ? domain->xml->arch : "?", domain->xml->vcpus,
                           domain->xml->vcpus == 1 ? "" : "s", uprof_host_uri(host));
}

static void
describe_xen(UprofDiagnosis *diagnosis)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GError) no_xl = NULL;

    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(UprofXlDomain));
    const UprofXlModule *xl = uprof_xen_loader_load_xl(&no_xl);
    if (xl && xl->list(found, &no_xl))
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "xl",
                            "domains that xl made are known by their names");
    else
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_NOTE, "xl",
                            "domains that xl made are known by their numbers only (--domid): %s",
                            no_xl->message);
    if (uprof_xen_loader_load(&error))
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "module",
                            "the module for domains of Xen can be loaded");
    else
        uprof_diagnosis_add_error(diagnosis, "module", error);
}

/* Reports the rights of the analysis's processes that this host does not allow to drop. */
static void
describe_confinement(UprofDiagnosis *diagnosis, const UprofConfined *confined)
{
    if (confined->why_same_user)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "analysis",
                            "the processes that read foreign bytes keep the user root: %s",
                            confined->why_same_user);
    if (confined->why_same_view)
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "analysis",
            "the processes that read foreign bytes have no namespaces of their own: %s; "
            "they cannot open files or sockets even so",
            confined->why_same_view);
    if (!confined->why_same_user && !confined->why_same_view)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "analysis",
                            "foreign bytes are read by processes without rights");
}

void
uprof_host_findings_add(UprofDiagnosis *diagnosis, UprofHost *host, const UprofConfined *confined,
                        bool healed)
{
    g_autofree char *about = uprof_host_describe(host);
    g_autoptr(GPtrArray) markers = uprof_marker_list();
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_domid_list(host, NULL, &error);
    unsigned n_running = 0;

    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "connection", "%s, on %s", about,
                        uprof_host_uri(host));
    for (guint i = 0; domains && i < domains->len; i++)
        n_running += ((UprofDomain *)g_ptr_array_index(domains, i))->state == UPROF_DOMAIN_RUNNING;
    if (domains)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "domains",
                            "%u, of which %u run; to check one: "
                            "virt-uprof check DOMAIN",
                            domains->len, n_running);
    else
        uprof_diagnosis_add_error(diagnosis, "domains", error);
    if (g_str_has_prefix(uprof_host_uri(host), "xen:"))
        describe_xen(diagnosis);
    else if (geteuid() == 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "rights",
                            "root: guest memory can be read from QEMU's process");
    else
        uprof_diagnosis_add(
            diagnosis, UPROF_LEVEL_NOTE, "rights",
            "not root: guest memory of system domains is read through libvirt, which is slower");
    describe_confinement(diagnosis, confined);
    if (healed)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_OK, "markers",
                            "no guest is left stopped by a killed run; %u markers in %s",
                            markers->len, uprof_marker_folder());
    else
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_FAIL, "markers",
                            "a dead run may have left a guest stopped; see the messages on stderr");
}
