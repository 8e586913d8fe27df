/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-log-text.c - the kernel's log as text and as JSON
 */
#include "uprof/kernel-log.h"

#include "uprof/json-writer.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <string.h>

#define NS_PER_US 1000
#define US_PER_S 1000000
/* In a record's caller: the rest is the number of a CPU. */
#define IS_CPU (UINT32_C(1) << 31)

static const char *const levels[] = { "emerg", "alert",  "crit", "err",
                                      "warn",  "notice", "info", "debug" };

static void
append_line(GString *out, const UprofPrintkRecord *record, const char *line)
{
    const uint64_t us = record->time_ns / NS_PER_US;

    g_string_append_printf(out, "[%5" G_GUINT64_FORMAT ".%06u] %s\n", us / US_PER_S,
                           (unsigned)(us % US_PER_S), line);
}

/* Returns: (transfer full): all lines of a record; a text without lines is one empty line */
static char *
clean_text(UprofSlice text)
{
    GString *clean = g_string_new(NULL);
    UprofSlice line;

    while (uprof_slice_split(text, '\n', &line, &text)) {
        g_autofree char *quoted = uprof_text_quote_slice(line);
        g_string_append_printf(clean, "%s\n", quoted);
    }
    g_autofree char *quoted = uprof_text_quote_slice(text);
    g_string_append(clean, quoted);
    return g_string_free(clean, FALSE);
}

static void
append_record(GString *out, const UprofPrintkRecord *record)
{
    g_autofree char *text =
        record->text.data ? clean_text(record->text) : g_strdup("[text overwritten]");
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);

    /* An empty text has no line here. */
    if (!lines[0])
        append_line(out, record, "");
    for (unsigned i = 0; lines[i]; i++)
        append_line(out, record, lines[i]);
}

/* ---- Limit ---- */

enum { GAP_BYTES = 64 }; /* of a line about missing records, or of a line break */

typedef void AppendRecord(GString *out, const UprofPrintkRecord *record);

/* Returns: index of the first record that is shown: the last words matter most */
static guint
find_first(const GArray *records, AppendRecord *append, size_t most)
{
    g_autoptr(GString) one = g_string_new(NULL);
    size_t sum = 0;
    guint first = records->len;

    for (; first > 0; first--) {
        g_string_truncate(one, 0);
        append(one, &g_array_index(records, UprofPrintkRecord, first - 1));
        sum += one->len + GAP_BYTES;
        if (sum > most)
            break;
    }
    return first;
}

/* ---- Text ---- */

/* Says that @n records are not there, unless it is 0. */
static void
append_gap(GString *out, uint64_t n, const char *how)
{
    if (n > 0)
        g_string_append_printf(out, "[%" G_GUINT64_FORMAT " record%s %s]\n", n, n == 1 ? "" : "s",
                               how);
}

unsigned
uprof_kernel_log_append_text(GString *out, const UprofKernelLog *log, size_t most)
{
    const GArray *records = uprof_kernel_log_records(log);
    const guint first = find_first(records, append_record, most);

    for (guint i = first; i < records->len; i++) {
        const UprofPrintkRecord *record = &g_array_index(records, UprofPrintkRecord, i);
        if (i == 0)
            append_gap(out, record->sequence, "overwritten");
        else
            append_gap(out, record->sequence - record[-1].sequence - 1, "missing");
        append_record(out, record);
    }
    return first;
}

/* ---- JSON ---- */

static void
write_record(UprofJsonWriter *json, const UprofPrintkRecord *record)
{
    g_autofree char *clean = clean_text(record->text);

    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_uint(json, "sequence", record->sequence);
    uprof_json_uint(json, "time_ns", record->time_ns);
    uprof_json_string(json, "level", levels[record->level % G_N_ELEMENTS(levels)]);
    uprof_json_uint(json, "facility", record->facility);
    uprof_json_uint(json, record->caller & IS_CPU ? "cpu" : "tid", record->caller & ~IS_CPU);
    if (record->text.data)
        uprof_json_string(json, "text", clean);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
append_object(GString *out, const UprofPrintkRecord *record)
{
    UprofJsonWriter json = { .out = out };

    write_record(&json, record);
}

unsigned
uprof_kernel_log_append_json(GString *out, const UprofKernelLog *log, size_t most)
{
    const GArray *records = uprof_kernel_log_records(log);
    const guint first = find_first(records, append_object, most);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_ARRAY);
    for (guint i = first; i < records->len; i++) {
        uprof_json_break_line(&json, "\n ");
        write_record(&json, &g_array_index(records, UprofPrintkRecord, i));
    }
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    g_string_append_c(out, '\n');
    return first;
}
