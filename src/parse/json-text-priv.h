/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-text-priv.h - JSON that nobody vouches for, as a tree
 *
 * json-glib recurses as deep as its input is nested, and takes more than JSON
 * (comments, other quotes). So everything is looked at once before.
 */
#pragma once

#include "uprof/bytes.h"

#include <json-glib/json-glib.h>

enum { UPROF_JSON_DEPTH_MAX = 16 };

/** uprof_json_fail: Returns: false with %UPROF_ERROR_BAD_DATA: "NAME: WHAT" */
bool uprof_json_fail(const char *name, const char *what, GError **error);

/**
 * uprof_json_load:
 * @name: of what is read, for messages
 * @len_max: bytes; what is longer is refused
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA; of a text of blanks
 *   it has no root
 */
JsonParser *uprof_json_load(const char *name, UprofSlice text, size_t len_max, GError **error);

/**
 * uprof_json_member: Returns: (transfer none) (nullable): the member @key of @node, if that is
 *   an object and has it, and of the type @type
 */
JsonNode *uprof_json_member(JsonNode *node, const char *key, GType type);
