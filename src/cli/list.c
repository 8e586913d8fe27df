/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * list.c - the command list: every domain, and how it would be sampled
 *
 * The command asks libvirt and reads files, but touches no guest. So the list shows the access
 * method that a run would try first. `check` tries this method.
 */
#include "commands-priv.h"

#include "uprof/access.h"
#include "exit-priv.h"
#include "uprof/json-writer.h"
#include "uprof/session.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    char *name;    /* safe to print */
    char *access;  /* the access method, or "-" */
    char *why;     /* why this method, or why none */
    char *symbols; /* path of the symbol file, or "-" */
    char *hint;    /* (nullable): a problem with the symbols */
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
fill_row(Row *row, const UprofDomain *domain, UprofKernelFiles *files)
{
    g_autoptr(GError) error = NULL;
    g_auto(UprofAccess) access = { 0 };
    const bool ok = uprof_access_choose(domain, "auto", false, &access, &error);

    row->name = uprof_text_quote(domain->name);
    row->access = g_strdup(ok ? access.methods[0]->name : "-");
    if (ok) {
        row->why = g_strdup(access.why);
    } else {
        /* The message begins with the name, which has a column of its own. */
        const char *reason = strstr(error->message, ": ");
        row->why = g_strdup(reason ? reason + 2 : error->message);
    }
    g_autofree char *kernel = uprof_session_find_kernel(domain, files, &row->hint);
    row->symbols = uprof_text_quote(kernel ? kernel : "-");
}

static void
write_json(UprofJsonWriter *json, const UprofDomain *domain, const Row *row)
{
    const char *const members[][2] = {
        { "name", row->name },           { "uuid", domain->uuid },
        { "state", domain->state_name }, { "driver", domain->driver },
        { "type", domain->xml->type },   { "arch", domain->xml->arch ? domain->xml->arch : "" },
        { "access", row->access },       { "why", row->why },
        { "symbols", row->symbols },     { "hint", row->hint ? row->hint : "" },
    };

    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_int(json, "id", domain->id);
    uprof_json_uint(json, "vcpus", domain->xml->vcpus);
    for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
        g_autofree char *clean = uprof_text_quote(members[i][1]);
        uprof_json_string(json, members[i][0], clean);
    }
    uprof_json_end(json, UPROF_JSON_OBJECT);
    uprof_json_break_line(json, "\n ");
}

static int
print_all(const GPtrArray *domains, UprofKernelFiles *files, const UprofOptions *options)
{
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    if (options->json)
        uprof_json_begin(&json, NULL, UPROF_JSON_ARRAY);
    else
        g_string_append_printf(out, "%-20s %-10s %-6s %-8s %5s  %-8s %s\n", "name", "state",
                               "driver", "arch", "vCPUs", "access", "symbols");
    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        g_auto(Row) row = { 0 };
        fill_row(&row, domain, files);
        if (options->json) {
            write_json(&json, domain, &row);
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
    if (options->json) {
        uprof_json_end(&json, UPROF_JSON_ARRAY);
        g_string_append_c(out, '\n');
    }
    fputs(out->str, stdout);
    g_string_free(out, TRUE);
    return fflush(stdout) == 0 ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

int
uprof_list_run(UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofKernelFiles) files = uprof_kernel_files_new(&error);

    if (!files)
        return uprof_say_error(error);
    uprof_host_init();
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, true, &error);
    if (!host)
        return uprof_say_error(error);
    g_autoptr(GPtrArray) domains = uprof_host_list(host, &error);
    if (!domains)
        return uprof_say_error(error);
    return print_all(domains, files, options);
}
