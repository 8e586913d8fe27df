/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "domid-priv.h"

#include "uprof/scan.h"
#include "uprof/text.h"

#include "xen-loader-priv.h"
#include "xl-domains-priv.h"

#include <string.h>

#define PREFIX "/domid/"

char *
uprof_domid_word(unsigned domid)
{
    return g_strdup_printf(PREFIX "%u", domid);
}

bool
uprof_domid_may_be_xl(const UprofHost *host)
{
    const char *uri = uprof_host_uri(host);

    return g_str_has_prefix(uri, "xen:") && uprof_host_uri_is_local(uri);
}

/*
 * @known: of UprofDomain: the domains of libvirt
 * Returns: (transfer full) (nullable): the domains of xl, without their kernels
 */
static GPtrArray *
list_xl(const UprofHost *host, const GPtrArray *known, const UprofXlModule **xl, GError **error)
{
    *xl = uprof_xen_loader_load_xl(error);
    return *xl ? uprof_xl_domains_list(*xl, uprof_host_uri(host), known, error) : NULL;
}

/* Adds the domains of xl to @domains, which has all of libvirt's, and is sorted by name. */
static bool
add_xl(const UprofHost *host, GPtrArray *domains, bool with_kernels, GError **error)
{
    const UprofXlModule *xl;
    g_autoptr(GPtrArray) of_xl = list_xl(host, domains, &xl, error);

    if (!of_xl)
        return false;
    while (of_xl->len > 0) {
        UprofDomain *domain = g_ptr_array_steal_index(of_xl, 0);
        guint at = 0;
        if (with_kernels)
            uprof_xl_domains_read_kernel(xl, domain);
        while (at < domains->len &&
               strcmp(((UprofDomain *)g_ptr_array_index(domains, at))->name, domain->name) <= 0)
            at++;
        g_ptr_array_insert(domains, (gint)at, domain);
    }
    return true;
}

GPtrArray *
uprof_domid_list(UprofHost *host, const UprofNotices *notices, GError **error)
{
    g_autoptr(GPtrArray) domains = uprof_host_list(host, error);
    g_autoptr(GError) failure = NULL;

    if (domains && uprof_domid_may_be_xl(host) && !add_xl(host, domains, true, &failure))
        uprof_notice(notices, UPROF_NOTICE_HINT, "domains that xl made are not known here: %s",
                     failure->message);
    return g_steal_pointer(&domains);
}

GPtrArray *
uprof_domid_names(UprofHost *host, GError **error)
{
    g_autoptr(GPtrArray) domains = uprof_host_names(host, error);

    if (domains && uprof_domid_may_be_xl(host))
        add_xl(host, domains, false, NULL);
    return g_steal_pointer(&domains);
}

GArray *
uprof_domid_running(UprofHost *host)
{
    GArray *ids = uprof_host_running(host);
    g_autoptr(GPtrArray) domains =
        ids && uprof_domid_may_be_xl(host) ? uprof_domid_names(host, NULL) : NULL;

    for (guint i = 0; domains && i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (domain->is_of_xl && domain->state == UPROF_DOMAIN_RUNNING)
            g_array_append_val(ids, domain->id);
    }
    return ids;
}

/*
 * Looks for a domain of xl after libvirt has not found it.
 * @word: (nullable): as for uprof_xl_domains_choose(); %NULL: the domain has the number @id
 * @problem: (out) (transfer full) (nullable): why xl's domains cannot be listed
 *
 * Returns: (transfer full) (nullable): %NULL with an error, or with @problem, or with neither if no
 *   domain has the number @id
 */
static UprofDomain *
find_xl(UprofHost *host, const char *word, int id, char **problem, GError **error)
{
    g_autoptr(GPtrArray) known = uprof_host_names(host, error);
    g_autoptr(GError) failure = NULL;
    const UprofXlModule *xl;

    *problem = NULL;
    if (!known)
        return NULL;
    g_autoptr(GPtrArray) domains = list_xl(host, known, &xl, &failure);
    if (!domains) {
        *problem = g_strdup(failure->message);
        return NULL;
    }
    UprofDomain *domain = word ? uprof_xl_domains_choose(domains, word, error)
                               : uprof_xl_domains_choose_id(domains, id);
    if (domain)
        uprof_xl_domains_read_kernel(xl, domain);
    return domain;
}

/* It may be paused: the backend asks Xen before each hold. */
static UprofDomain *
make_domain(UprofHost *host, int domid, const UprofXenDomain *xen)
{
    g_autofree char *word = g_strdup_printf("domid-%d", domid);

    return uprof_xl_domains_make(xen->name[0] ? xen->name : word, xen->uuid, domid,
                                 uprof_host_uri(host), xen->n_vcpus, xen->n_vcpus);
}

UprofDomain *
uprof_domid_find_id(UprofHost *host, int id, GError **error)
{
    g_autoptr(GError) failure = NULL;
    UprofDomain *domain = uprof_host_find_id(host, id, &failure);
    g_autofree char *problem = NULL;

    if (!domain && uprof_domid_may_be_xl(host))
        domain = find_xl(host, NULL, id, &problem, NULL);
    if (!domain)
        g_propagate_error(error, g_steal_pointer(&failure));
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
    g_autofree char *problem = NULL;
    known = uprof_domid_may_be_xl(host) ? find_xl(host, NULL, domid, &problem, NULL) : NULL;
    if (known)
        return known;
    const UprofXenModule *module = uprof_xen_loader_load(error);
    if (!module || !module->find(domid, &xen, error))
        return NULL;
    UprofDomain *domain = make_domain(host, domid, &xen);
    g_autofree char *name = uprof_text_quote(domain->name);
    uprof_notice(notices, UPROF_NOTICE_HINT,
                 "%s: libvirt does not know domain %d, and xl cannot be asked for its kernel "
                 "(%s): give its symbols with -s",
                 name, domid, problem ? problem : "xl does not know it");
    return domain;
}

/* A name, UUID or number of libvirt comes first. libvirt's error also names the most similar
 * domain. */
static UprofDomain *
find_word(UprofHost *host, const char *word, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GError) of_xl = NULL;
    g_autofree char *problem = NULL;
    UprofDomain *domain = uprof_host_find(host, word, &failure);

    if (!domain && uprof_domid_may_be_xl(host) &&
        g_error_matches(failure, UPROF_ERROR, UPROF_ERROR_NOT_FOUND))
        domain = find_xl(host, word, -1, &problem, &of_xl);
    if (domain)
        return domain;
    if (problem)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                    "%s; domains that xl made are not known here: %s", failure->message, problem);
    else if (of_xl && !g_error_matches(of_xl, UPROF_ERROR, UPROF_ERROR_NOT_FOUND))
        g_propagate_error(error, g_steal_pointer(&of_xl));
    else
        g_propagate_error(error, g_steal_pointer(&failure));
    return NULL;
}

UprofDomain *
uprof_domid_find(UprofHost *host, const char *word, const UprofNotices *notices, GError **error)
{
    uint64_t domid;

    if (!g_str_has_prefix(word, PREFIX))
        return find_word(host, word, error);
    const char *number = word + strlen(PREFIX);
    if (!uprof_slice_to_uint((UprofSlice){ number, strlen(number) }, 10, 0, UPROF_DOMID_MAX,
                             &domid))
        return find_word(host, word, error);
    return find_domid(host, (int)domid, notices, error);
}

UprofDomain *
uprof_domid_find_definition(UprofHost *host, const char *word, GError **error)
{
    g_autoptr(UprofDomain) domain = uprof_domid_find(host, word, NULL, error);

    if (!domain || !domain->is_of_xl)
        return g_steal_pointer(&domain);
    g_autofree char *name = uprof_text_quote(domain->name);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_UNSUPPORTED,
                "%s: xl made this domain, so libvirt keeps no settings for it; rounds sample it if "
                "<collect domains> in the configuration file names it",
                name);
    return NULL;
}
