/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/query.h"

#include "uprof/clock.h"
#include "uprof/text.h"

#include "catalog-priv.h"

static char *
format_time(int64_t at_s)
{
    return uprof_clock_format_utc((uint64_t)MAX(at_s, 0) * UPROF_NS_PER_S, FALSE);
}

static void
warn_of_nothing(const UprofQuery *query, const UprofNotices *notices)
{
    g_autofree char *quoted = query->domain ? uprof_text_quote(query->domain) : NULL;
    g_autofree char *shown = quoted ? g_strdup_printf(" of '%s'", quoted) : g_strdup("");
    g_autofree char *since = format_time(query->since_s);
    g_autofree char *until =
        query->until_s == INT64_MAX ? g_strdup("now") : format_time(query->until_s);
    g_autofree char *stored = uprof_catalog_describe_range(query->catalog);

    uprof_notice(notices, UPROF_NOTICE_WARNING,
                 "no profile%s is stored from %s to %s; stored: %s; to see what was collected "
                 "on a day: virt-uprof summary DAY",
                 shown, since, until, stored);
}

static void
warn_of_deleted(const UprofQuery *query, unsigned n, const UprofNotices *notices)
{
    g_autofree char *shown = uprof_text_quote(query->domain ? query->domain : "all domains");

    uprof_notice(notices, UPROF_NOTICE_WARNING,
                 "%s: %u profiles of that time are left out: they are stored only as part of a "
                 "closed day; give --since and --until as days",
                 shown, n);
}

/* Returns: (transfer container): of char, borrowed: the UUIDs of a selection */
static GPtrArray *
list_domains(const GPtrArray *selection)
{
    GPtrArray *uuids = g_ptr_array_new();

    for (guint i = 0; i < selection->len; i++) {
        const UprofSelected *selected = g_ptr_array_index(selection, i);
        if (!g_ptr_array_find_with_equal_func(uuids, selected->run->uuid, g_str_equal, NULL))
            g_ptr_array_add(uuids, selected->run->uuid);
    }
    return uuids;
}

/* @uuid: (nullable): of the only domain */
static UprofErrorCode
load_domain(const UprofQuery *query, const char *uuid, UprofLoad *load)
{
    const UprofNotices *notices = load->settings->notices;
    UprofOmissions omissions = { 0 };
    UprofErrorCode code = UPROF_ERROR_NONE;
    g_autoptr(GPtrArray) selection =
        uprof_catalog_select(query->catalog, query->since_s, query->until_s, uuid, &omissions);

    if (omissions.n_deleted > 0)
        warn_of_deleted(query, omissions.n_deleted, notices);
    if (omissions.n_damaged > 0) {
        load->is_partial = true;
        code = UPROF_ERROR_FAILED;
    }
    if (selection->len == 0) {
        warn_of_nothing(query, notices);
        return uprof_error_merge(code, UPROF_ERROR_EMPTY);
    }
    g_autoptr(GPtrArray) uuids = list_domains(selection);
    for (guint i = 0; i < uuids->len; i++)
        code = uprof_error_merge(
            code, uprof_selection_load(selection, g_ptr_array_index(uuids, i), load, NULL));
    return code;
}

UprofErrorCode
uprof_query_load(const UprofQuery *query, UprofLoad *load)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *uuid =
        query->domain ? uprof_catalog_find_domain(query->catalog, query->domain, &error) : NULL;

    return error ? uprof_notice_error(load->settings->notices, error)
                 : load_domain(query, uuid, load);
}
