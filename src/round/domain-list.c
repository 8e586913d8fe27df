/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/domain-list.h"

#include "uprof/access.h"
#include "uprof/clock.h"
#include "uprof/json-writer.h"
#include "uprof/session.h"
#include "uprof/text.h"

#include <string.h>

/* A domain. */
typedef struct {
    char *name;            /* safe to print */
    char *access;          /* the access method, or "-" */
    char *why;             /* why this method, or why none */
    char *symbols;         /* path of the symbol file, or "-" */
    char *hint;            /* (nullable): a problem with the symbols */
    const char *collected; /* "yes", "no", or "bad" for metadata that is ignored; literal */
    int64_t last_s;        /* when a round last sampled the domain, or failed to; 0: never */
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

/* Says if and why rounds sample the domain. */
static void
fill_rounds(Row *row, const UprofDomain *domain, const UprofDomainListSources *sources)
{
    g_autoptr(GError) error = NULL;
    const bool is_enabled =
        uprof_settings_is_enabled(sources->config, domain->name, &domain->xml->metadata, &error);

    row->collected = error ? "bad" : is_enabled ? "yes" : "no";
    if (sources->store)
        row->last_s = uprof_store_last_attempt(sources->store, domain->name, domain->uuid,
                                               uprof_clock_utc_s());
}

static void
fill_row(Row *row, const UprofDomain *domain, const UprofDomainListSources *sources)
{
    g_autoptr(GError) error = NULL;
    g_auto(UprofAccess) access = { 0 };
    const bool ok = uprof_access_choose(domain, "auto", UPROF_STOP_ANY, &access, &error);

    row->name = uprof_text_quote(domain->name);
    row->access = g_strdup(ok ? access.methods[0]->name : "-");
    if (ok) {
        row->why = g_strdup(access.why);
    } else {
        /* The message begins with the name, which has a column of its own. */
        const char *reason = strstr(error->message, ": ");
        row->why = g_strdup(reason ? reason + 2 : error->message);
    }
    g_autofree char *kernel = uprof_session_find_kernel(domain, sources->files, &row->hint);
    row->symbols = uprof_text_quote(kernel ? kernel : "-");
    fill_rounds(row, domain, sources);
}

static void
write_json(UprofJsonWriter *json, const UprofDomain *domain, const Row *row)
{
    g_autofree char *last =
        row->last_s > 0 ? uprof_clock_format_utc((uint64_t)row->last_s * UPROF_NS_PER_S, false)
                        : g_strdup("");
    const char *const members[][2] = {
        { "name", row->name },
        { "uuid", domain->uuid },
        { "state", domain->state_name },
        { "driver", domain->driver },
        { "type", domain->xml->type },
        { "arch", domain->xml->arch ? domain->xml->arch : "" },
        { "access", row->access },
        { "why", row->why },
        { "symbols", row->symbols },
        { "hint", row->hint ? row->hint : "" },
        { "collected", row->collected },
        { "last_round", last },
        { "toolstack", domain->is_of_xl ? "xl" : "libvirt" },
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

#define ROW_FORMAT "%-20s %-10s %4s %5s  %-8s %-9s %-16s %s\n"

static void
append_row(GString *out, const UprofDomain *domain, const Row *row, UprofDomainListStyle style)
{
    const bool is_off = domain->id < 0;
    g_autofree char *id = is_off ? g_strdup("-") : g_strdup_printf("%d", domain->id);
    g_autofree char *vcpus = g_strdup_printf("%u", domain->xml->vcpus);
    g_autofree char *last =
        row->last_s > 0 ? uprof_clock_format_local(row->last_s) : g_strdup("never");

    g_string_append_printf(out, ROW_FORMAT, row->name, domain->state_name, id, vcpus,
                           is_off ? "-" : row->access, row->collected, last, row->symbols);
    if (style == UPROF_DOMAIN_LIST_SHORT)
        return;
    const bool is_long = style == UPROF_DOMAIN_LIST_LONG;
    /* the best access needs no reason */
    if (is_long || (!is_off && strcmp(row->access, "direct") != 0))
        g_string_append_printf(out, "%-20s   access: %s\n", "", row->why);
    if (row->hint && (is_long || !is_off))
        g_string_append_printf(out, "%-20s   symbols: %s\n", "", row->hint);
    if (is_long)
        g_string_append_printf(out, "%-20s   machine: %s, %s\n", "", domain->driver,
                               domain->xml->arch ? domain->xml->arch : "?");
}

GString *
uprof_domain_list_text(const GPtrArray *domains, const UprofDomainListSources *sources,
                       UprofDomainListStyle style)
{
    GString *out = g_string_new(NULL);

    g_string_append_printf(out, ROW_FORMAT, "name", "state", "id", "vCPUs", "access", "collected",
                           "last round", "symbols");
    for (guint i = 0; i < domains->len; i++) {
        g_auto(Row) row = { 0 };
        fill_row(&row, g_ptr_array_index(domains, i), sources);
        append_row(out, g_ptr_array_index(domains, i), &row, style);
    }
    return out;
}

GString *
uprof_domain_list_json(const GPtrArray *domains, const UprofDomainListSources *sources)
{
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_ARRAY);
    for (guint i = 0; i < domains->len; i++) {
        g_auto(Row) row = { 0 };
        fill_row(&row, g_ptr_array_index(domains, i), sources);
        write_json(&json, g_ptr_array_index(domains, i), &row);
    }
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    g_string_append_c(out, '\n');
    return out;
}
