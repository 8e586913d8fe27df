/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/json-writer.h"

#include "uprof/text.h"

#include "text-priv.h"

static void
append_string(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    uprof_text_append_json(out, text);
    g_string_append_c(out, '"');
}

/* A list of all tasks has some 100,000 numbers: printf() took half of the time to write it. */
static void
append_uint(GString *out, uint64_t value)
{
    char digits[20]; /* of UINT64_MAX */
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    g_string_append_len(out, digits + at, (gssize)(sizeof(digits) - at));
}

static void
begin_value(UprofJsonWriter *json, const char *key)
{
    if (json->needs_comma)
        g_string_append_c(json->out, ',');
    if (json->line_break)
        g_string_append(json->out, json->line_break);
    else if (json->needs_comma && !json->is_compact)
        g_string_append_c(json->out, ' ');
    json->line_break = NULL;
    json->needs_comma = true;
    if (!key)
        return;
    append_string(json->out, key);
    g_string_append(json->out, json->is_compact ? ":" : ": ");
}

void
uprof_json_begin(UprofJsonWriter *json, const char *key, UprofJsonKind kind)
{
    begin_value(json, key);
    g_string_append_c(json->out, kind == UPROF_JSON_OBJECT ? '{' : '[');
    json->needs_comma = false;
}

void
uprof_json_end(UprofJsonWriter *json, UprofJsonKind kind)
{
    g_string_append_c(json->out, kind == UPROF_JSON_OBJECT ? '}' : ']');
    json->line_break = NULL;
    json->needs_comma = true;
}

void
uprof_json_string(UprofJsonWriter *json, const char *key, const char *text)
{
    begin_value(json, key);
    append_string(json->out, text);
}

void
uprof_json_uint(UprofJsonWriter *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    append_uint(json->out, value);
}

void
uprof_json_int(UprofJsonWriter *json, const char *key, int64_t value)
{
    begin_value(json, key);
    g_string_append_printf(json->out, "%" G_GINT64_FORMAT, value);
}

void
uprof_json_bool(UprofJsonWriter *json, const char *key, bool value)
{
    begin_value(json, key);
    g_string_append(json->out, value ? "true" : "false");
}

void
uprof_json_break_line(UprofJsonWriter *json, const char *line_break)
{
    json->line_break = line_break;
}
