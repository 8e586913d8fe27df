/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/qmp.h"

#include <json-glib/json-glib.h>
#include <string.h>

#include "uprof/error.h"
#include "uprof/text.h"

/*
 * reply = { "return": value, "id": ... } | { "error": { "class", "desc" }, ... }
 *
 * json-glib recurses as deep as its input is nested, and takes more than JSON
 * (comments, other quotes). So everything is looked at once before.
 */

enum { DEPTH_MAX = 16 };

static bool
fail(GError **error, const char *what)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "QMP reply: %s", what);
    return false;
}

/* Returns: bytes of the string that begins at @at, quotes included; 0: no end */
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

static bool
check_shape(UprofSlice reply, GError **error)
{
    const char *text = reply.data;
    unsigned depth = 0;

    for (size_t i = 0; i < reply.len; i++) {
        const char c = text[i];

        if (c == '"') {
            const size_t len = measure_string(text, reply.len, i);
            if (len == 0)
                return fail(error, "a string without an end");
            i += len - 1;
        } else if (c == '{' || c == '[') {
            if (++depth > DEPTH_MAX)
                return fail(error, "nested too deeply");
        } else if (c == '}' || c == ']') {
            if (depth-- == 0)
                return fail(error, "a bracket closes nothing");
        } else if (c == '\0' || !strchr(" \t\r\n:,+-.", c)) {
            if (!g_ascii_isalnum(c))
                return fail(error, "not JSON");
        }
    }
    return depth == 0 || fail(error, "ends too early");
}

/* Returns: (transfer none) (nullable): the member @name, if it has the type @type */
static JsonNode *
find_member(JsonNode *node, const char *name, GType type)
{
    if (!node || !JSON_NODE_HOLDS_OBJECT(node))
        return NULL;

    JsonNode *member = json_object_get_member(json_node_get_object(node), name);
    if (!member || json_node_get_value_type(member) != type)
        return NULL;
    return member;
}

/* Returns: whether @member is a number in that range */
static bool
read_int(JsonNode *member, int64_t min, int64_t max, int64_t *value)
{
    if (!member)
        return false;

    const int64_t number = json_node_get_int(member);
    if (number < min || number > max)
        return false;
    *value = number;
    return true;
}

static bool
report_error(JsonNode *reply, GError **error)
{
    JsonNode *desc = find_member(reply, "desc", G_TYPE_STRING);
    g_autofree char *quoted = uprof_text_quote(desc ? json_node_get_string(desc) : NULL);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "QEMU says '%s'", quoted);
    return false;
}

static JsonParser *
load(UprofSlice reply, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new_immutable();

    if (reply.len > UPROF_QMP_BYTES_MAX) {
        fail(error, "too long");
        return NULL;
    }
    if (reply.len == 0) {
        fail(error, "empty");
        return NULL;
    }
    if (!check_shape(reply, error))
        return NULL;
    if (!json_parser_load_from_data(parser, reply.data, reply.len, NULL)) {
        fail(error, "not JSON");
        return NULL;
    }
    return g_steal_pointer(&parser);
}

/* Returns: (transfer none) (nullable): what was asked for, if it has the type @type */
static JsonNode *
find_answer(JsonParser *parser, GType type, GError **error)
{
    JsonNode *root = json_parser_get_root(parser);
    JsonNode *refused = find_member(root, "error", JSON_TYPE_OBJECT);

    if (refused) {
        report_error(refused, error);
        return NULL;
    }

    JsonNode *answer = find_member(root, "return", type);
    if (!answer)
        fail(error, "no 'return', or not of the type expected");
    return answer;
}

/* as much of @text as fits with its NUL, cut between characters */
static void
copy_cut(char *into, size_t size, const char *text)
{
    size_t len = strnlen(text, size);

    if (len == size)
        len = g_utf8_find_prev_char(text, text + size) - text;
    memcpy(into, text, len);
    into[len] = '\0';
}

bool
uprof_qmp_parse_status(UprofSlice reply, UprofQmpStatus *status, GError **error)
{
    g_autoptr(JsonParser) parser = load(reply, error);
    if (!parser)
        return false;

    JsonNode *answer = find_answer(parser, JSON_TYPE_OBJECT, error);
    if (!answer)
        return false;

    JsonNode *running = find_member(answer, "running", G_TYPE_BOOLEAN);
    if (!running)
        return fail(error, "no 'running'");
    JsonNode *state = find_member(answer, "status", G_TYPE_STRING);
    if (!state)
        return fail(error, "no 'status'");

    UprofQmpStatus found = { .running = json_node_get_boolean(running) };
    g_autofree char *clean = uprof_text_quote(json_node_get_string(state));
    copy_cut(found.status, sizeof(found.status), clean);
    *status = found;
    return true;
}

static bool
read_cpu(JsonNode *node, UprofQmpCpu *cpu, GError **error)
{
    JsonNode *thread = find_member(node, "thread-id", G_TYPE_INT64);
    int64_t index_found, thread_found = 0;

    if (!read_int(find_member(node, "cpu-index", G_TYPE_INT64), 0, UINT32_MAX, &index_found))
        return fail(error, "no 'cpu-index', or a bad one");
    if (thread && !read_int(thread, 0, INT32_MAX, &thread_found))
        return fail(error, "bad 'thread-id'");

    *cpu = (UprofQmpCpu){ .index = index_found, .thread = thread_found };
    return true;
}

static int
compare_cpus(gconstpointer a, gconstpointer b)
{
    const uint32_t first = ((const UprofQmpCpu *)a)->index;
    const uint32_t second = ((const UprofQmpCpu *)b)->index;

    return first < second ? -1 : first > second;
}

bool
uprof_qmp_parse_cpus(UprofSlice reply, GArray **cpus, GError **error)
{
    g_autoptr(JsonParser) parser = load(reply, error);
    if (!parser)
        return false;

    JsonNode *answer = find_answer(parser, JSON_TYPE_ARRAY, error);
    if (!answer)
        return false;

    JsonArray *array = json_node_get_array(answer);
    const unsigned n = json_array_get_length(array);
    if (n > UPROF_QMP_CPUS_MAX)
        return fail(error, "too many CPUs");

    g_autoptr(GArray) found = g_array_sized_new(FALSE, FALSE, sizeof(UprofQmpCpu), n);
    for (unsigned i = 0; i < n; i++) {
        UprofQmpCpu cpu;

        if (!read_cpu(json_array_get_element(array, i), &cpu, error))
            return false;
        g_array_append_val(found, cpu);
    }
    g_array_sort(found, compare_cpus);
    for (unsigned i = 1; i < n; i++)
        if (g_array_index(found, UprofQmpCpu, i - 1).index ==
            g_array_index(found, UprofQmpCpu, i).index)
            return fail(error, "the same CPU twice");

    *cpus = g_steal_pointer(&found);
    return true;
}
