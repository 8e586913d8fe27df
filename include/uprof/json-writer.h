/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-writer.h - writes JSON, with commas where they belong
 *
 * The caller must end every object and array that it begins. Each function that writes a value
 * takes the member's key, or %NULL in an array and for the outermost value.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/** UprofJsonWriter: initialize with the first two members set and all others zero */
typedef struct {
    GString *out;    /* borrowed; gets the text */
    bool is_compact; /* no blanks behind ',' and ':'; may change at any time */
    bool needs_comma;
    const char *line_break; /* (nullable): before the next value; borrowed */
} UprofJsonWriter;

/** UprofJsonKind: the values that contain others */
typedef enum { UPROF_JSON_OBJECT, UPROF_JSON_ARRAY } UprofJsonKind;

void uprof_json_begin(UprofJsonWriter *json, const char *key, UprofJsonKind kind);
void uprof_json_end(UprofJsonWriter *json, UprofJsonKind kind);

/** uprof_json_string: @text: valid UTF-8; the writer escapes it */
void uprof_json_string(UprofJsonWriter *json, const char *key, const char *text);
void uprof_json_uint(UprofJsonWriter *json, const char *key, uint64_t value);
void uprof_json_int(UprofJsonWriter *json, const char *key, int64_t value);
void uprof_json_bool(UprofJsonWriter *json, const char *key, bool value);

/**
 * uprof_json_break_line: puts the next value on a line of its own
 * @line_break: newline and indentation; a literal
 *
 * Nothing is written if the object or array ends before another value.
 */
void uprof_json_break_line(UprofJsonWriter *json, const char *line_break);
