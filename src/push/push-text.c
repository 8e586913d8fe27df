/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/push-rounds.h"

#include "uprof/json-writer.h"
#include "uprof/number-text.h"

/* @more: (nullable) */
static void
append_part(GString *text, unsigned n, const char *what, const char *more)
{
    if (n > 0)
        g_string_append_printf(text, "%s%u %s%s", text->len > 0 ? ", " : "", n, what,
                               more ? more : "");
}

char *
uprof_push_describe(const UprofPushResult *result)
{
    g_autofree char *size = uprof_format_bytes(result->bytes_sent);
    g_autofree char *bytes = g_strdup_printf(" (%s)", size);
    g_autofree char *why = g_strconcat(" (", result->why_left, ")", NULL);
    g_autoptr(GString) text = g_string_new(NULL);

    append_part(text, result->n_sent, result->n_sent == 1 ? "profile sent" : "profiles sent",
                bytes);
    append_part(text, result->n_refused, "refused", NULL);
    append_part(text, result->n_too_old, "too old", NULL);
    append_part(text, result->n_left, result->is_of_run ? "not sent" : "left for the next run",
                result->why_left ? why : NULL);
    if (result->error)
        g_string_append_printf(text, "%s%s", text->len > 0 ? "; " : "", result->error);
    return g_strconcat(result->name, ": ", text->len > 0 ? text->str : "nothing to send", NULL);
}

static void
write_result(UprofJsonWriter *json, const UprofPushResult *result)
{
    uprof_json_break_line(json, "\n  ");
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "name", result->name);
    uprof_json_string(json, "type", result->type);
    uprof_json_string(json, "url", result->url);
    uprof_json_uint(json, "sent", result->n_sent);
    uprof_json_uint(json, "bytes", result->bytes_sent);
    uprof_json_uint(json, "refused", result->n_refused);
    uprof_json_uint(json, "too_old", result->n_too_old);
    uprof_json_uint(json, "left", result->n_left);
    if (result->why_left)
        uprof_json_string(json, "why_left", result->why_left);
    if (result->error)
        uprof_json_string(json, "error", result->error);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

GString *
uprof_push_json(const GArray *results)
{
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_OBJECT);
    uprof_json_begin(&json, "destinations", UPROF_JSON_ARRAY);
    for (guint i = 0; i < results->len; i++)
        write_result(&json, &g_array_index(results, UprofPushResult, i));
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    g_string_append_c(out, '\n');
    return out;
}
