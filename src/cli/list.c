/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * list: every domain, and how it would be sampled. Asks libvirt and reads
 * files; touches no guest. Which access is *expected*: `check` finds out.
 */
#include "commands-priv.h"

#include "access-priv.h"
#include "exit-priv.h"
#include "session-priv.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char *name;
    char *access;
    char *why;
    char *symbols;
    char *hint;
} Row;

static void
clear_row(Row *row)
{
    g_free(row->name);
    g_free(row->access);
    g_free(row->why);
    g_free(row->symbols);
    g_free(row->hint);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Row, clear_row)

static void
fill_row(Row *row, const UprofDomain *domain)
{
    g_autoptr(GError) error = NULL;
    g_auto(UprofAccess) access = { 0 };
    const bool ok = uprof_access_choose(domain, "auto", false, &access, &error);

    row->name = uprof_text_quote(domain->name);
    row->access = g_strdup(ok ? access.ways[0]->name : "-");
    if (ok) {
        row->why = g_strdup(access.why);
    } else {
        /* the name stands in its own column */
        const char *reason = strstr(error->message, ": ");
        row->why = g_strdup(reason ? reason + 2 : error->message);
    }
    g_autofree char *kernel = uprof_session_find_kernel(domain, &row->hint);
    row->symbols = uprof_text_quote(kernel ? kernel : "-");
}

static void
print_json(GString *out, const UprofDomain *domain, const Row *row)
{
    const char *const members[][2] = {
        { "name", row->name },           { "uuid", domain->uuid },
        { "state", domain->state_name }, { "driver", domain->driver },
        { "type", domain->xml->type },   { "arch", domain->xml->arch ? domain->xml->arch : "" },
        { "access", row->access },       { "why", row->why },
        { "symbols", row->symbols },     { "hint", row->hint ? row->hint : "" },
    };

    g_string_append_printf(out, "{\"id\": %d, \"vcpus\": %u", domain->id, domain->xml->vcpus);
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        g_autofree char *clean = uprof_text_quote(members[i][1]);
        g_string_append_printf(out, ", \"%s\": \"", members[i][0]);
        uprof_text_append_json(out, clean);
        g_string_append_c(out, '"');
    }
    g_string_append_c(out, '}');
}

static int
print_all(const GPtrArray *domains, const UprofOptions *options)
{
    GString *out = g_string_new(options->json ? "[" : NULL);

    if (!options->json)
        g_string_append_printf(out, "%-20s %-10s %-6s %-8s %5s  %-8s %s\n", "name", "state",
                               "driver", "arch", "vCPUs", "access", "symbols");
    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        g_auto(Row) row = { 0 };
        fill_row(&row, domain);
        if (options->json) {
            g_string_append(out, i > 0 ? ",\n " : "");
            print_json(out, domain, &row);
            continue;
        }
        g_string_append_printf(out, "%-20s %-10s %-6s %-8s %5u  %-8s %s\n", row.name,
                               domain->state_name, domain->driver,
                               domain->xml->arch ? domain->xml->arch : "?", domain->xml->vcpus,
                               row.access, row.symbols);
        if (!options->quiet) {
            g_string_append_printf(out, "%-20s   access: %s\n", "", row.why);
            if (row.hint)
                g_string_append_printf(out, "%-20s   symbols: %s\n", "", row.hint);
        }
    }
    if (options->json)
        g_string_append(out, "]\n");
    fputs(out->str, stdout);
    g_string_free(out, TRUE);
    return fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

int
uprof_list_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;

    uprof_host_init();
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, true, &error);
    if (!host)
        return uprof_say_error(error);
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);
    if (!domains)
        return uprof_say_error(error);
    return print_all(domains, options);
}
