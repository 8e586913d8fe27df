/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "xl-domains-priv.h"

#include "uprof/scan.h"
#include "uprof/text.h"

#include <string.h>

static void
set_state(UprofDomain *domain, UprofXlState state)
{
    static const struct {
        UprofDomainState state;
        const char *name;
    } states[] = {
        [UPROF_XL_RUNNING] = { UPROF_DOMAIN_RUNNING, "running" },
        [UPROF_XL_PAUSED] = { UPROF_DOMAIN_PAUSED, "paused" },
        [UPROF_XL_CRASHED] = { UPROF_DOMAIN_CRASHED, "crashed" },
        [UPROF_XL_SHUTDOWN] = { UPROF_DOMAIN_OTHER, "in shutdown" },
    };

    domain->state = states[state].state;
    domain->state_name = states[state].name;
}

UprofDomain *
uprof_xl_domains_make(const char *name, const char *uuid, int id, const char *uri, unsigned n_vcpus,
                      unsigned n_vcpus_max)
{
    UprofDomain *domain = g_new0(UprofDomain, 1);

    domain->name = g_strdup(name);
    g_strlcpy(domain->uuid, uuid, sizeof(domain->uuid));
    domain->id = id;
    set_state(domain, UPROF_XL_RUNNING);
    domain->uri = g_strdup(uri);
    domain->driver = g_strdup("Xen");
    domain->is_local = true;
    domain->xml = g_new0(UprofDomainXml, 1);
    domain->xml->type = g_strdup("xen");
    domain->xml->name = g_strdup(name);
    domain->xml->uuid = g_strdup(domain->uuid);
    domain->xml->arch = g_strdup("x86_64");
    domain->xml->vcpus = MAX(n_vcpus, 1);
    domain->xml->vcpus_max = MAX(n_vcpus_max, domain->xml->vcpus);
    uprof_metadata_init(&domain->xml->metadata);
    return domain;
}

static UprofDomain *
make_domain(const UprofXlDomain *xl, const char *uri)
{
    UprofDomain *domain =
        uprof_xl_domains_make(xl->name, xl->uuid, xl->domid, uri, xl->n_vcpus, xl->n_vcpus_max);

    set_state(domain, xl->state);
    domain->is_of_xl = true;
    return domain;
}

static bool
is_known(const GPtrArray *known, const UprofXlDomain *xl)
{
    for (guint i = 0; i < known->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(known, i);
        if (domain->id == xl->domid || strcmp(domain->uuid, xl->uuid) == 0)
            return true;
    }
    return false;
}

static int
compare_domains(gconstpointer a, gconstpointer b)
{
    const UprofDomain *const *one = a;
    const UprofDomain *const *other = b;
    const int by_name = strcmp((*one)->name, (*other)->name);

    return by_name != 0 ? by_name : (*one)->id - (*other)->id;
}

GPtrArray *
uprof_xl_domains_list(const UprofXlModule *xl, const char *uri, const GPtrArray *known,
                      GError **error)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(UprofXlDomain));

    if (!xl->list(found, error))
        return NULL;
    GPtrArray *domains = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_domain_free);
    for (guint i = 0; i < found->len; i++) {
        const UprofXlDomain *one = &g_array_index(found, UprofXlDomain, i);
        if (!is_known(known, one))
            g_ptr_array_add(domains, make_domain(one, uri));
    }
    g_ptr_array_sort(domains, compare_domains);
    return domains;
}

static bool
is_number(const UprofDomain *domain, const char *word)
{
    uint64_t number;

    return uprof_slice_to_uint((UprofSlice){ word, strlen(word) }, 10, 0, G_MAXINT, &number) &&
           (int)number == domain->id;
}

static UprofDomain *
fail_ambiguous(const char *word, int one, int other, GError **error)
{
    g_autofree char *shown = uprof_text_quote(word);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                "'%s' means two domains that xl made, %d and %d: choose one with --domid", shown,
                one, other);
    return NULL;
}

UprofDomain *
uprof_xl_domains_choose(GPtrArray *domains, const char *word, GError **error)
{
    guint chosen = G_MAXUINT;

    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (strcmp(domain->name, word) != 0 && g_ascii_strcasecmp(domain->uuid, word) != 0 &&
            !is_number(domain, word))
            continue;
        if (chosen != G_MAXUINT)
            return fail_ambiguous(word, ((UprofDomain *)g_ptr_array_index(domains, chosen))->id,
                                  domain->id, error);
        chosen = i;
    }
    if (chosen != G_MAXUINT)
        return g_ptr_array_steal_index(domains, chosen);
    g_autofree char *shown = uprof_text_quote(word);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND, "xl has made no domain '%s'", shown);
    return NULL;
}

UprofDomain *
uprof_xl_domains_choose_id(GPtrArray *domains, int id)
{
    for (guint i = 0; i < domains->len; i++)
        if (((const UprofDomain *)g_ptr_array_index(domains, i))->id == id)
            return g_ptr_array_steal_index(domains, i);
    return NULL;
}

void
uprof_xl_domains_read_kernel(const UprofXlModule *xl, UprofDomain *domain)
{
    UprofXlDomain asked = { .domid = domain->id };
    g_autofree char *kernel = NULL;
    g_autoptr(GError) error = NULL;

    g_strlcpy(asked.uuid, domain->uuid, sizeof(asked.uuid));
    g_clear_pointer(&domain->kernel_problem, g_free);
    if (!xl->kernel(&asked, &kernel, &error)) {
        domain->kernel_problem = g_strdup_printf("%s: give its symbols with -s", error->message);
    } else if (kernel && !g_path_is_absolute(kernel)) {
        g_autofree char *shown = uprof_text_quote(kernel);
        domain->kernel_problem = g_strdup_printf(
            "its configuration names the kernel '%s' without its folder: give it with -s", shown);
    } else {
        domain->xml->kernel = g_steal_pointer(&kernel);
    }
}
