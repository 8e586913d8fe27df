/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/qmp.h"

#include "qmp-priv.h"

#include <string.h>

#include "json-text-priv.h"
#include "uprof/error.h"
#include "uprof/scan.h"
#include "uprof/sorted.h"
#include "uprof/text.h"

/* reply = { "return": value, "id": ... } | { "error": { "class", "desc" }, ... } */

static const char name[] = "QMP reply";

static bool
set_bad_data(GError **error, const char *why)
{
    return uprof_json_fail(name, why, error);
}

/* Returns: false if @member is not a number from @min to @max */
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
    JsonNode *desc = uprof_json_member(reply, "desc", G_TYPE_STRING);
    g_autofree char *quoted = uprof_text_quote(desc ? json_node_get_string(desc) : NULL);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "QEMU says '%s'", quoted);
    return false;
}

static JsonParser *
load_reply(UprofSlice reply, GError **error)
{
    return uprof_json_load(name, reply, UPROF_QMP_BYTES_MAX, error);
}

/* Returns: (transfer none) (nullable): member "return", if its type is @type */
static JsonNode *
find_answer(JsonParser *parser, GType type, GError **error)
{
    JsonNode *root = json_parser_get_root(parser);
    JsonNode *refused = uprof_json_member(root, "error", JSON_TYPE_OBJECT);

    if (refused) {
        report_error(refused, error);
        return NULL;
    }

    JsonNode *answer = uprof_json_member(root, "return", type);
    if (!answer)
        set_bad_data(error, "no 'return', or not of the type expected");
    return answer;
}

/* Copies the characters of @text that fit with a NUL. */
static void
copy_text(char *into, size_t size, const char *text)
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
    g_autoptr(JsonParser) parser = load_reply(reply, error);
    if (!parser)
        return false;

    JsonNode *answer = find_answer(parser, JSON_TYPE_OBJECT, error);
    if (!answer)
        return false;

    JsonNode *running = uprof_json_member(answer, "running", G_TYPE_BOOLEAN);
    if (!running)
        return set_bad_data(error, "no 'running'");
    JsonNode *state = uprof_json_member(answer, "status", G_TYPE_STRING);
    if (!state)
        return set_bad_data(error, "no 'status'");

    UprofQmpStatus found = { .running = json_node_get_boolean(running) };
    g_autofree char *clean = uprof_text_quote(json_node_get_string(state));
    copy_text(found.status, sizeof(found.status), clean);
    *status = found;
    return true;
}

static bool
read_cpu(JsonNode *node, UprofQmpCpu *cpu, GError **error)
{
    JsonNode *thread = uprof_json_member(node, "thread-id", G_TYPE_INT64);
    int64_t index_found, thread_found = 0;

    if (!read_int(uprof_json_member(node, "cpu-index", G_TYPE_INT64), 0, UINT32_MAX, &index_found))
        return set_bad_data(error, "no 'cpu-index', or a bad one");
    if (thread && !read_int(thread, 0, INT32_MAX, &thread_found))
        return set_bad_data(error, "bad 'thread-id'");

    *cpu = (UprofQmpCpu){ .index = index_found, .thread = thread_found };
    return true;
}

static int
compare_cpus(gconstpointer a, gconstpointer b)
{
    const uint32_t first = ((const UprofQmpCpu *)a)->index;
    const uint32_t second = ((const UprofQmpCpu *)b)->index;

    return UPROF_COMPARE(first, second);
}

bool
uprof_qmp_parse_cpus(UprofSlice reply, GArray **cpus, GError **error)
{
    g_autoptr(JsonParser) parser = load_reply(reply, error);
    if (!parser)
        return false;

    JsonNode *answer = find_answer(parser, JSON_TYPE_ARRAY, error);
    if (!answer)
        return false;

    JsonArray *array = json_node_get_array(answer);
    const unsigned n = json_array_get_length(array);
    if (n > UPROF_QMP_CPUS_MAX)
        return set_bad_data(error, "too many CPUs");

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
            return set_bad_data(error, "the same CPU twice");

    *cpus = g_steal_pointer(&found);
    return true;
}

/* answer = "gpa: 0x" digits | "Unmapped" | "No cpu" (QEMU, monitor/misc.c, hmp_gva2gpa) */
bool
uprof_qmp_parse_translation(UprofSlice reply, bool *is_mapped, uint64_t *gpa, GError **error)
{
    g_autoptr(JsonParser) parser = load_reply(reply, error);
    if (!parser)
        return false;

    JsonNode *answer = find_answer(parser, G_TYPE_STRING, error);
    if (!answer)
        return false;

    const char *text = json_node_get_string(answer);
    UprofSlice words = uprof_slice_trim((UprofSlice){ text, strlen(text) }), word;
    if (uprof_slice_is(words, "Unmapped")) {
        *is_mapped = false;
        return true;
    }
    uint64_t found;
    if (!uprof_scan_word(&words, &word) || !uprof_slice_is(word, "gpa:") ||
        !uprof_scan_word(&words, &word) || !uprof_slice_starts(word, "0x") ||
        !uprof_slice_sub(word, 2, word.len - 2, &word) ||
        !uprof_slice_to_uint(word, 16, 0, UINT64_MAX, &found))
        return set_bad_data(error, "no translation");
    *is_mapped = true;
    *gpa = found;
    return true;
}
