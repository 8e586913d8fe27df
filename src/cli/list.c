/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * list.c - the command list: every domain, and how it would be sampled
 *
 * The command asks libvirt and reads files, but touches no guest. So the list shows the access
 * method that a run would try first. `check` tries this method.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "terminal-priv.h"
#include "uprof/domain-list.h"
#include "uprof/domid.h"
#include "uprof/push-lag.h"

static GString *
render_domains(const GPtrArray *domains, const UprofDomainListSources *sources,
               const UprofOptions *options)
{
    const UprofDomainListStyle style = options->quiet     ? UPROF_DOMAIN_LIST_SHORT
                                       : options->verbose ? UPROF_DOMAIN_LIST_LONG
                                                          : UPROF_DOMAIN_LIST_USUAL;

    return options->json ? uprof_domain_list_json(domains, sources)
                         : uprof_domain_list_text(domains, sources, style);
}

int
uprof_list_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofKernelFiles) files = uprof_kernel_files_new(&error);

    if (!files)
        return uprof_exit_say_error(error);
    options->config = uprof_config_load(options->config_path, &error);
    if (!options->config)
        return uprof_exit_say_error(error);
    const char *folder = options->store ? options->store : options->config->store;
    g_autoptr(UprofStore) store = uprof_store_open(folder, false, NULL);
    const UprofDomainListSources sources = { files, options->config, store };
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, true, &error);
    if (!host)
        return uprof_exit_say_error(error);
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GPtrArray) domains = uprof_domid_list(host, &notices, &error);
    if (!domains)
        return uprof_exit_say_error(error);
    if (domains->len == 0 && !options->json)
        uprof_say("virt-uprof: no domains on %s%s", uprof_host_uri(host),
                  uprof_host_uri_hint(uprof_host_uri(host)));
    GString *text = render_domains(domains, &sources, options);
    g_autofree char *lag =
        store ? uprof_push_describe_lag(store, options->config->destinations) : g_strdup("");
    if (!options->json && !options->quiet)
        g_string_append(text, lag);
    return uprof_exit_of_code(uprof_terminal_print(text));
}
