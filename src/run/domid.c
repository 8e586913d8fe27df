/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/domid.h"

#include "uprof/scan.h"
#include "uprof/text.h"

#include "xen-loader-priv.h"

#include <string.h>

#define PREFIX "/domid/"

char *
uprof_domid_word(unsigned domid)
{
    return g_strdup_printf(PREFIX "%u", domid);
}

static UprofDomain *
make_domain(UprofHost *host, int domid, const UprofXenDomain *xen)
{
    UprofDomain *domain = g_new0(UprofDomain, 1);

    domain->name = xen->name[0] ? g_strdup(xen->name) : g_strdup_printf("domid-%d", domid);
    g_strlcpy(domain->uuid, xen->uuid, sizeof(domain->uuid));
    domain->id = domid;
    domain->state = UPROF_DOMAIN_RUNNING; /* the backend asks Xen before each hold */
    domain->state_name = "running";
    domain->uri = g_strdup(uprof_host_uri(host));
    domain->driver = g_strdup("Xen");
    domain->is_local = true;
    domain->xml = g_new0(UprofDomainXml, 1);
    domain->xml->type = g_strdup("xen");
    domain->xml->name = g_strdup(domain->name);
    domain->xml->uuid = g_strdup(domain->uuid);
    domain->xml->arch = g_strdup("x86_64");
    domain->xml->vcpus = domain->xml->vcpus_max = MAX(xen->n_vcpus, 1);
    uprof_metadata_init(&domain->xml->metadata);
    return domain;
}

static UprofDomain *
find_domid(UprofHost *host, int domid, const UprofNotices *notices, GError **error)
{
    UprofXenDomain xen;

    if (!g_str_has_prefix(uprof_host_uri(host), "xen:")) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                    "--domid %d: only Xen domains of this host have numbers, and the connection is "
                    "'%s'; try: -c xen:///system",
                    domid, uprof_host_uri(host));
        return NULL;
    }
    UprofDomain *known = uprof_host_find_id(host, domid, NULL);
    if (known)
        return known;
    const UprofXenModule *module = uprof_xen_loader_load(error);
    if (!module || !module->find(domid, &xen, error))
        return NULL;
    UprofDomain *domain = make_domain(host, domid, &xen);
    g_autofree char *name = uprof_text_quote(domain->name);
    uprof_notice(notices, UPROF_NOTICE_HINT,
                 "%s: libvirt does not know domain %d (was it made by xl?), and so neither its "
                 "settings nor its kernel: use options such as -F and -s",
                 name, domid);
    return domain;
}

UprofDomain *
uprof_domid_find(UprofHost *host, const char *word, const UprofNotices *notices, GError **error)
{
    uint64_t domid;

    if (!g_str_has_prefix(word, PREFIX))
        return uprof_host_find(host, word, error);
    const char *number = word + strlen(PREFIX);
    if (!uprof_slice_to_uint((UprofSlice){ number, strlen(number) }, 10, 0, UPROF_DOMID_MAX,
                             &domid))
        return uprof_host_find(host, word, error);
    return find_domid(host, (int)domid, notices, error);
}
