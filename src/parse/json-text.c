/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "json-text-priv.h"

#include <string.h>

#include "uprof/error.h"
#include "uprof/json-object.h"

bool
uprof_json_fail(const char *name, const char *what, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s: %s", name, what);
    return false;
}

/* Returns: bytes of the string at @at with its quotes; 0: the string has no end */
static size_t
measure_string(const char *text, size_t len, size_t at)
{
    for (size_t i = at + 1; i < len; i++) {
        if (text[i] == '"')
            return i + 1 - at;
        if ((unsigned char)text[i] < 0x20)
            return 0;
        if (text[i] == '\\')
            i++;
    }
    return 0;
}

/* Checks nesting, strings and characters. */
static bool
check_shape(const char *name, UprofSlice reply, GError **error)
{
    const char *text = reply.data;
    unsigned depth = 0;
    bool has_ended = false;

    for (size_t i = 0; i < reply.len; i++) {
        const char c = text[i];

        if (has_ended && (c == '\0' || !strchr(" \t\r\n]}", c)))
            return uprof_json_fail(name, "more than one value", error);
        if (c == '"') {
            const size_t len = measure_string(text, reply.len, i);
            if (len == 0)
                return uprof_json_fail(name, "a string without an end", error);
            i += len - 1;
        } else if (c == '{' || c == '[') {
            if (++depth > UPROF_JSON_DEPTH_MAX)
                return uprof_json_fail(name, "nested too deeply", error);
        } else if (c == '}' || c == ']') {
            if (depth-- == 0)
                return uprof_json_fail(name, "a bracket closes nothing", error);
            has_ended = depth == 0;
        } else if (c == '\0' || !strchr(" \t\r\n:,+-.", c)) {
            if (!g_ascii_isalnum(c))
                return uprof_json_fail(name, "not JSON", error);
        }
    }
    return depth == 0 || uprof_json_fail(name, "ends too early", error);
}

JsonParser *
uprof_json_load(const char *name, UprofSlice text, size_t len_max, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new_immutable();

    if (text.len > len_max) {
        uprof_json_fail(name, "too long", error);
        return NULL;
    }
    if (text.len == 0) {
        uprof_json_fail(name, "empty", error);
        return NULL;
    }
    if (!check_shape(name, text, error))
        return NULL;
    if (!json_parser_load_from_data(parser, text.data, (gssize)text.len, NULL)) {
        uprof_json_fail(name, "not JSON", error);
        return NULL;
    }
    return g_steal_pointer(&parser);
}

JsonNode *
uprof_json_member(JsonNode *node, const char *key, GType type)
{
    if (!node || !JSON_NODE_HOLDS_OBJECT(node))
        return NULL;

    JsonNode *member = json_object_get_member(json_node_get_object(node), key);
    if (!member || json_node_get_value_type(member) != type)
        return NULL;
    return member;
}

bool
uprof_json_is_object(UprofSlice text)
{
    g_autoptr(JsonParser) parser = uprof_json_load("JSON", text, text.len, NULL);
    JsonNode *root = parser ? json_parser_get_root(parser) : NULL;

    return root && JSON_NODE_HOLDS_OBJECT(root);
}
