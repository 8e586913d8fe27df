/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/history-text.h"

#include "uprof/clock.h"
#include "uprof/json-writer.h"
#include "uprof/number-text.h"
#include "uprof/time-text.h"

#include <string.h>

enum {
    STAMP_MINUTES_LEN = 16, /* of 2026-11-20T09:15 */
    NAME_COLUMNS = 20,
};

/* Returns: (transfer full): "2026-11-20", or "2026-11-20T09:15" */
static char *
format_start(const UprofHistoryRow *row)
{
    if (row->is_day)
        return uprof_time_format_date(row->start_s);
    char *text = uprof_clock_format_utc((uint64_t)MAX(row->start_s, 0) * UPROF_NS_PER_S, FALSE);
    text[STAMP_MINUTES_LEN] = '\0';
    return text;
}

/* Returns: (transfer full): a number of the table; "-" if no round has a profile */
static char *
format_share(const UprofHistoryRow *row, uint64_t part, uint64_t whole)
{
    return row->n_rounds > 0 ? uprof_format_percent(part, whole) : g_strdup("-");
}

static void
append_row(GString *out, const UprofHistoryRow *row)
{
    g_autofree char *start = format_start(row);
    g_autofree char *busy = format_share(row, row->running, row->samples);
    g_autofree char *self = format_share(row, row->hottest_self, row->weight);

    g_string_append_printf(out, "%-16s  %-*s", start, NAME_COLUMNS, row->name);
    if (row->is_day)
        g_string_append_printf(out, "  %6u  %6u", row->n_rounds, row->n_failed);
    g_string_append_printf(out, "  %5s  %8" G_GUINT64_FORMAT "  %5s  %s%s\n", busy,
                           (row->bytes + 1023) / 1024, self, row->failure ? "no profile: " : "",
                           row->failure   ? row->failure
                           : row->hottest ? row->hottest
                                          : "-");
}

void
uprof_history_render(GString *out, const GPtrArray *rows)
{
    if (rows->len == 0)
        return;
    const bool are_days = ((const UprofHistoryRow *)g_ptr_array_index(rows, 0))->is_day;
    g_string_append_printf(out, "%-16s  %-*s%s  %5s  %8s  %5s  %s\n",
                           are_days ? "day (UTC)" : "round (UTC)", NAME_COLUMNS, "domain",
                           are_days ? "  rounds  failed" : "", "busy%", "KiB", "self%",
                           "hottest function");
    for (guint i = 0; i < rows->len; i++)
        append_row(out, g_ptr_array_index(rows, i));
}

static void
write_row(UprofJsonWriter *json, const UprofHistoryRow *row)
{
    g_autofree char *day = uprof_time_format_date(row->start_s);
    g_autofree char *start =
        uprof_clock_format_utc((uint64_t)MAX(row->start_s, 0) * UPROF_NS_PER_S, FALSE);

    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, row->is_day ? "day" : "started", row->is_day ? day : start);
    uprof_json_string(json, "name", row->name);
    if (row->uuid)
        uprof_json_string(json, "uuid", row->uuid);
    if (row->is_day) {
        uprof_json_uint(json, "rounds", row->n_rounds);
        uprof_json_uint(json, "failed", row->n_failed);
    }
    if (row->n_rounds > 0) {
        uprof_json_uint(json, "duration_ms", row->duration_ns / UPROF_NS_PER_MS);
        uprof_json_uint(json, "samples", row->samples);
        uprof_json_uint(json, "running", row->running);
    }
    if (row->hottest) {
        uprof_json_uint(json, "weight", row->weight);
        uprof_json_string(json, "hottest", row->hottest);
        uprof_json_uint(json, "hottest_self", row->hottest_self);
    }
    if (row->failure)
        uprof_json_string(json, "failure", row->failure);
    uprof_json_uint(json, "bytes", row->bytes);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_rows(UprofJsonWriter *json, const char *key, const GPtrArray *rows)
{
    uprof_json_break_line(json, "\n ");
    uprof_json_begin(json, key, UPROF_JSON_ARRAY);
    for (guint i = 0; i < rows->len; i++) {
        uprof_json_break_line(json, "\n  ");
        write_row(json, g_ptr_array_index(rows, i));
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

GString *
uprof_history_json(const GPtrArray *days, const GPtrArray *rounds)
{
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_OBJECT);
    write_rows(&json, "days", days);
    write_rows(&json, "rounds", rounds);
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    return g_string_append_c(out, '\n');
}
