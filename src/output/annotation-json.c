/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "json-priv.h"

#include "uprof/output.h"

static void
write_insn(UprofJsonWriter *json, const UprofAnnotatedInsn *insn)
{
    uprof_json_break_line(json, "\n    ");
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_uint(json, "address", insn->address);
    uprof_json_uint(json, "samples", insn->samples);
    if (insn->text)
        uprof_json_string(json, "text", insn->text);
    if (insn->callee)
        uprof_json_string(json, "callee", insn->callee);
    if (insn->line)
        uprof_json_string(json, "line", insn->line);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_function(UprofJsonWriter *json, const UprofAnnotatedFunction *function)
{
    uprof_json_break_line(json, "\n   ");
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    if (function->image)
        uprof_json_string(json, "image", function->image);
    uprof_json_uint(json, "start", function->start);
    uprof_json_uint(json, "self", function->self);
    uprof_json_begin(json, "instructions", UPROF_JSON_ARRAY);
    for (guint i = 0; i < function->insns->len; i++)
        write_insn(json, &g_array_index(function->insns, UprofAnnotatedInsn, i));
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
write_lines(UprofJsonWriter *json, const UprofAnnotation *annotation)
{
    g_autoptr(GArray) lines = uprof_annotation_lines(annotation);

    uprof_json_break_line(json, "\n  ");
    uprof_json_begin(json, "lines", UPROF_JSON_ARRAY);
    for (guint i = 0; i < lines->len; i++) {
        const UprofAnnotatedLine *line = &g_array_index(lines, UprofAnnotatedLine, i);
        uprof_json_break_line(json, "\n   ");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        if (line->line)
            uprof_json_string(json, "line", line->line);
        uprof_json_uint(json, "samples", line->samples);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
}

GString *
uprof_json_annotation(const UprofAnnotation *annotation, const char *name, const UprofRun *run)
{
    GString *out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    uprof_json_begin(&json, NULL, UPROF_JSON_OBJECT);
    uprof_json_write_run(&json, run);
    uprof_json_break_line(&json, "\n ");
    uprof_json_uint(&json, "weight", annotation->all);
    uprof_json_begin(&json, "annotation", UPROF_JSON_OBJECT);
    uprof_json_string(&json, "name", name);
    uprof_json_uint(&json, "self", uprof_annotation_self(annotation));
    uprof_json_uint(&json, "left_out", annotation->n_left_out);
    write_lines(&json, annotation);
    uprof_json_break_line(&json, "\n  ");
    uprof_json_begin(&json, "functions", UPROF_JSON_ARRAY);
    for (guint i = 0; i < annotation->functions->len; i++)
        write_function(&json, g_ptr_array_index(annotation->functions, i));
    uprof_json_end(&json, UPROF_JSON_ARRAY);
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    uprof_json_end(&json, UPROF_JSON_OBJECT);
    g_string_append_c(out, '\n');
    return out;
}
