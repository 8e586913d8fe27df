/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/diagnosis-text.h"

static const char *
name_level(UprofLevel level)
{
    static const char *const names[] = {
        [UPROF_LEVEL_OK] = "ok",
        [UPROF_LEVEL_NOTE] = "note",
        [UPROF_LEVEL_WARN] = "warn",
        [UPROF_LEVEL_FAIL] = "FAIL",
    };

    return names[level];
}

void
uprof_diagnosis_text_append(GString *out, const UprofDiagnosis *diagnosis, bool only_failures)
{
    bool has_title = false;

    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis->findings, UprofFinding, i);
        if (only_failures && finding->level != UPROF_LEVEL_FAIL)
            continue;
        if (!has_title)
            g_string_append_printf(out, "%s\n", diagnosis->title);
        has_title = true;
        g_string_append_printf(out, "  %-5s %-14s %s\n", name_level(finding->level), finding->topic,
                               finding->text);
    }
}

void
uprof_diagnosis_text_write(UprofJsonWriter *json, const UprofDiagnosis *diagnosis, int exit_code)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "title", diagnosis->title);
    uprof_json_int(json, "exit", exit_code);
    uprof_json_begin(json, "findings", UPROF_JSON_ARRAY);
    for (guint i = 0; i < diagnosis->findings->len; i++) {
        const UprofFinding *finding = &g_array_index(diagnosis->findings, UprofFinding, i);
        uprof_json_break_line(json, "\n  ");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_json_string(json, "level", name_level(finding->level));
        uprof_json_string(json, "topic", finding->topic);
        uprof_json_string(json, "text", finding->text);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}
