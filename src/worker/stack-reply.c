/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/stack-reply.h"

#include "uprof/json-writer.h"
#include "uprof/stack-text.h"

static void
begin_json(UprofJsonWriter *json, const UprofAnalysis *analysis, const UprofStackRequest *request)
{
    if (!request->is_first) {
        json->needs_comma = true;
        uprof_json_break_line(json, "\n  ");
        return;
    }
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "domain", analysis->shown);
    uprof_json_string(json, "uuid", request->uuid);
    uprof_json_bool(json, "paused", request->is_paused);
    uprof_json_break_line(json, "\n ");
    uprof_json_begin(json, "vcpus", UPROF_JSON_ARRAY);
}

static void
end_json(UprofJsonWriter *json)
{
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
    g_string_append_c(json->out, '\n');
}

void
uprof_stack_reply_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply)
{
    const UprofStackRequest *request = argument.data;
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_pipeline_take(analysis->pipeline, &request->snapshot, NULL);
    uprof_sym_resolve(analysis->pipeline->sym, UPROF_SYM_RESOLVE_MS);
    if (request->is_json) {
        begin_json(&json, analysis, request);
        uprof_stack_text_write(&json, analysis->pipeline, &request->snapshot);
        if (request->is_last)
            end_json(&json);
    } else {
        uprof_stack_text_append(out, analysis->pipeline, &request->snapshot, analysis->shown);
    }
    g_byte_array_append(reply, (const guint8 *)out->str, (guint)out->len);
    g_string_free(out, TRUE);
}
