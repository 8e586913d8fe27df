/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * text-priv.h - JSON strings, for the JSON writer
 */
#pragma once

#include "uprof/text.h"

enum {
    UPROF_TEXT_RAW_BYTES_MAX = 4096, /* of the input; the rest is ignored */
};

/**
 * uprof_text_append_json:
 * @out: @text is appended, with '"', '\', bytes below 0x20, and "</" escaped
 * @text: valid UTF-8
 */
void uprof_text_append_json(GString *out, const char *text);
