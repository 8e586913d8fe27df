/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-text-priv.h - turns hostile JSON into a tree of json-glib
 *
 * json-glib recurses as deep as its input is nested, and accepts more than JSON, such as
 * comments and other quotes. So this file checks the text before json-glib reads the text.
 */
#pragma once

#include "uprof/bytes.h"

#include <json-glib/json-glib.h>

enum { UPROF_JSON_DEPTH_MAX = 16 };

/** uprof_json_fail: Sets %UPROF_ERROR_BAD_DATA: "NAME: WHAT". Returns: false */
bool uprof_json_fail(const char *name, const char *what, GError **error);

/**
 * uprof_json_load:
 * @name: of the text, for messages
 * @len_max: bytes; longer texts are refused
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA; if the text has only
 *   blanks, the parser has no root
 */
JsonParser *uprof_json_load(const char *name, UprofSlice text, size_t len_max, GError **error);

/**
 * uprof_json_member:
 * @node: (nullable): need not be an object
 *
 * Returns: (transfer none) (nullable): the member @key of @node, if its type is @type
 */
JsonNode *uprof_json_member(JsonNode *node, const char *key, GType type);
