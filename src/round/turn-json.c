/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/turn-json.h"

#include "uprof/clock.h"
#include "uprof/json-writer.h"
#include "uprof/text.h"

static void
write_text(UprofJsonWriter *json, const char *key, const char *text)
{
    g_autofree char *clean = uprof_text_quote(text);

    uprof_json_string(json, key, clean);
}

GString *
uprof_turn_json(const UprofCandidate *candidate, const char *result, const char *reason,
                const UprofTaskResult *facts)
{
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_OBJECT);
    write_text(&json, "name", candidate->name);
    write_text(&json, "uuid", candidate->uuid);
    write_text(&json, "result", result);
    write_text(&json, "reason", reason);
    if (facts) {
        uprof_json_uint(&json, "samples", facts->samples);
        uprof_json_uint(&json, "duration_ms", facts->duration_ns / UPROF_NS_PER_MS);
        uprof_json_uint(&json, "held_us", facts->held_ns / UPROF_NS_PER_US);
    }
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    return out;
}
