/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/qmp-priv.h"
#include "uprof/error.h"
#include "uprof/qmp.h"

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* clang-format off */
#define NOT_RETURN "QMP reply: no 'return', or not of the type expected"
#define REFUSED "{\"id\": \"libvirt-43\", \"error\": {\"class\": \"CommandNotFound\", " \
    "\"desc\": \"The command no-such has not been found\"}}"

/* Replies that both parsers refuse. */
static const struct {
    const char *name;
    const char *reply;
    UprofErrorCode code;
    const char *error;
} failures[] = {
    { "refused",      REFUSED, UPROF_ERROR_FAILED,
      "QEMU says 'The command no-such has not been found'" },
    { "refused-controls", "{\"error\":{\"desc\":\"a\\u001b[2J\"}}", UPROF_ERROR_FAILED,
      "QEMU says 'a?[2J'" },
    { "refused-mute", "{\"error\":{}}",             UPROF_ERROR_FAILED,   "QEMU says ''" },
    { "empty",        "",                           UPROF_ERROR_BAD_DATA, "QMP reply: empty" },
    { "blank",        " \r\n",                      UPROF_ERROR_BAD_DATA, NOT_RETURN },
    { "null",         "null",                       UPROF_ERROR_BAD_DATA, NOT_RETURN },
    { "array",        "[]",                         UPROF_ERROR_BAD_DATA, NOT_RETURN },
    { "number",       "1",                          UPROF_ERROR_BAD_DATA, "QMP reply: *" },
    { "no-return",    "{\"id\":1}",                 UPROF_ERROR_BAD_DATA, NOT_RETURN },
    { "return-text",  "{\"return\":\"x\"}",         UPROF_ERROR_BAD_DATA, NOT_RETURN },
    { "return-null",  "{\"return\":null}",          UPROF_ERROR_BAD_DATA, NOT_RETURN },
    { "cut",          "{\"return\":{",              UPROF_ERROR_BAD_DATA, "*: ends too early" },
    { "cut-string",   "{\"return",                  UPROF_ERROR_BAD_DATA, "*: a string without an end" },
    { "cut-escape",   "{\"return\\",                UPROF_ERROR_BAD_DATA, "*: a string without an end" },
    { "raw-newline",  "{\"ret\nurn\":1}",           UPROF_ERROR_BAD_DATA, "*: a string without an end" },
    { "closes",       "{}}",                        UPROF_ERROR_BAD_DATA, "*: a bracket closes nothing" },
    { "mixed",        "{]",                         UPROF_ERROR_BAD_DATA, "*: not JSON" },
    { "comment",      "{/*\"*/}",                   UPROF_ERROR_BAD_DATA, "*: not JSON" },
    { "single-quote", "{'return':1}",               UPROF_ERROR_BAD_DATA, "*: not JSON" },
    { "words",        "{return}",                   UPROF_ERROR_BAD_DATA, "*: not JSON" },
    { "utf-8",        "{\"return\":\"\xff\"}",      UPROF_ERROR_BAD_DATA, "*: not JSON" },
    { "depth-17",     "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", UPROF_ERROR_BAD_DATA,
      "*: nested too deeply" },
    { "depth-16",     "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", UPROF_ERROR_BAD_DATA, NOT_RETURN },
};
/* clang-format on */

static void
assert_failure(size_t i, bool ok, const GError *error)
{
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, (int)failures[i].code);
    g_assert_true(g_pattern_match_simple(failures[i].error, error->message));
}

static void
test_failure(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSlice reply = slice_of(failures[i].reply);
    UprofQmpStatus status = { .status = "untouched" };
    GArray *cpus = NULL;
    g_autoptr(GError) error = NULL, other = NULL;

    const bool ok = uprof_qmp_parse_status(reply, &status, &error);
    assert_failure(i, ok, error);
    g_assert_cmpstr(status.status, ==, "untouched");

    const bool other_ok = uprof_qmp_parse_cpus(reply, &cpus, &other);
    assert_failure(i, other_ok, other);
    g_assert_null(cpus);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *reply;
    const char *error; /* NULL: must parse */
    bool running;
    const char *status;
} statuses[] = {
    { "running", "{\"return\": {\"status\": \"running\", \"singlestep\": false, "
      "\"running\": true}, \"id\": \"libvirt-42\"}", NULL, true, "running" },
    { "paused",  "{\"return\":{\"status\":\"paused\",\"running\":false}}", NULL, false, "paused" },
    { "longest", "{\"return\":{\"status\":\"0123456789012345678901234567890\",\"running\":false}}",
      NULL, false, "0123456789012345678901234567890" },
    { "cut",     "{\"return\":{\"status\":\"01234567890123456789012345678901\",\"running\":false}}",
      NULL, false, "0123456789012345678901234567890" },
    { "cut-wide", "{\"return\":{\"status\":\"012345678901234567890123456789\xc3\xbc\","
      "\"running\":false}}", NULL, false, "012345678901234567890123456789" },
    { "controls", "{\"return\":{\"status\":\"a\\nb\",\"running\":false}}", NULL, false, "a?b" },
    { "no-running",   "{\"return\":{\"status\":\"running\"}}", "QMP reply: no 'running'" },
    { "running-text", "{\"return\":{\"status\":\"running\",\"running\":\"true\"}}",
      "QMP reply: no 'running'" },
    { "no-status",    "{\"return\":{\"running\":true}}", "QMP reply: no 'status'" },
    { "status-number", "{\"return\":{\"running\":true,\"status\":1}}", "QMP reply: no 'status'" },
    { "an-array",     "{\"return\":[]}", NOT_RETURN },
};
/* clang-format on */

static void
test_status(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofQmpStatus status = { .status = "untouched" };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qmp_parse_status(slice_of(statuses[i].reply), &status, &error);

    if (!statuses[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_true(status.running == statuses[i].running);
        g_assert_cmpstr(status.status, ==, statuses[i].status);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, statuses[i].error);
    g_assert_cmpstr(status.status, ==, "untouched");
}

/* clang-format off */
#define CPU(index, thread) "{\"cpu-index\":" index ",\"thread-id\":" thread "}"

static const struct {
    const char *name;
    const char *reply;
    const char *error; /* NULL: must parse */
    unsigned n;
    UprofQmpCpu first, last;
} cpu_cases[] = {
    { "real", "{\"return\": [{\"thread-id\": 7213, \"props\": {\"core-id\": 0, \"thread-id\": 0, "
      "\"socket-id\": 0}, \"qom-path\": \"/machine/unattached/device[0]\", \"cpu-index\": 0, "
      "\"target\": \"x86_64\"}, {\"thread-id\": 7214, \"props\": {\"core-id\": 1, \"thread-id\": 0, "
      "\"socket-id\": 0}, \"qom-path\": \"/machine/unattached/device[2]\", \"cpu-index\": 1, "
      "\"target\": \"x86_64\"}], \"id\": \"libvirt-42\"}", NULL, 2, { 0, 7213 }, { 1, 7214 } },
    { "none",       "{\"return\":[]}", NULL, 0, { 0, 0 }, { 0, 0 } },
    { "sorted",     "{\"return\":[" CPU("7", "9") "," CPU("2", "8") "]}", NULL, 2, { 2, 8 }, { 7, 9 } },
    { "no-thread",  "{\"return\":[{\"cpu-index\":3}]}", NULL, 1, { 3, 0 }, { 3, 0 } },
    { "largest",    "{\"return\":[" CPU("4294967295", "2147483647") "]}", NULL, 1,
      { UINT32_MAX, INT32_MAX }, { UINT32_MAX, INT32_MAX } },
    { "index-plus-1",  "{\"return\":[" CPU("4294967296", "1") "]}", "*: no 'cpu-index', or a bad one" },
    { "thread-plus-1", "{\"return\":[" CPU("0", "2147483648") "]}", "*: bad 'thread-id'" },
    { "negative",   "{\"return\":[" CPU("-1", "1") "]}", "*: no 'cpu-index', or a bad one" },
    { "fraction",   "{\"return\":[" CPU("1.5", "1") "]}", "*: no 'cpu-index', or a bad one" },
    { "huge",       "{\"return\":[" CPU("99999999999999999999", "1") "]}", "*: no 'cpu-index'*" },
    { "no-index",   "{\"return\":[{\"thread-id\":1}]}", "*: no 'cpu-index', or a bad one" },
    { "no-object",  "{\"return\":[1]}", "*: no 'cpu-index', or a bad one" },
    { "null",       "{\"return\":[null]}", "*: no 'cpu-index', or a bad one" },
    { "twice",      "{\"return\":[" CPU("1", "1") "," CPU("1", "2") "]}", "*: the same CPU twice" },
    { "an-object",  "{\"return\":{}}", NOT_RETURN },
};
/* clang-format on */

static void
test_cpus(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GArray) cpus = NULL;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_qmp_parse_cpus(slice_of(cpu_cases[i].reply), &cpus, &error);

    if (!cpu_cases[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_cmpuint(cpus->len, ==, cpu_cases[i].n);
        if (cpus->len > 0) {
            const UprofQmpCpu *first = &g_array_index(cpus, UprofQmpCpu, 0);
            const UprofQmpCpu *last = &g_array_index(cpus, UprofQmpCpu, cpus->len - 1);

            g_assert_cmpmem(first, sizeof(*first), &cpu_cases[i].first, sizeof(*first));
            g_assert_cmpmem(last, sizeof(*last), &cpu_cases[i].last, sizeof(*last));
        }
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(cpu_cases[i].error, error->message));
    g_assert_null(cpus);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *reply;
    bool is_mapped;
    uint64_t gpa;
    const char *error; /* NULL: none */
} translations[] = {
    { "mapped",     "{\"return\":\"gpa: 0x42001ff0\\r\\n\",\"id\":\"libvirt-11\"}", true, 0x42001ff0, NULL },
    { "highest",    "{\"return\":\"gpa: 0xffffffffffffffff\"}", true, UINT64_MAX, NULL },
    { "unmapped",   "{\"return\":\"Unmapped\\r\\n\"}", false, 0, NULL },
    { "no-cpu",     "{\"return\":\"No cpu\\r\\n\"}", false, 0, "*no translation" },
    { "empty",      "{\"return\":\"\"}", false, 0, "*no translation" },
    { "no-number",  "{\"return\":\"gpa: \"}", false, 0, "*no translation" },
    { "no-prefix",  "{\"return\":\"gpa: 42\"}", false, 0, "*no translation" },
    { "too-long",   "{\"return\":\"gpa: 0x10000000000000000\"}", false, 0, "*no translation" },
    { "not-text",   "{\"return\":{}}", false, 0, "*no 'return'*" },
};
/* clang-format on */

static void
test_translation(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    bool is_mapped = false;
    uint64_t gpa = 0;
    g_autoptr(GError) error = NULL;

    const bool ok =
        uprof_qmp_parse_translation(slice_of(translations[i].reply), &is_mapped, &gpa, &error);

    g_assert_true(ok == !translations[i].error);
    g_assert_true(is_mapped == translations[i].is_mapped);
    g_assert_cmphex(gpa, ==, translations[i].gpa);
    if (ok)
        return;
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(translations[i].error, error->message));
}

static bool
parse_many(unsigned n, GError **error)
{
    g_autoptr(GString) reply = g_string_new("{\"return\":[");
    g_autoptr(GArray) cpus = NULL;

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(reply, "%s{\"cpu-index\":%u}", i ? "," : "", i);
    g_string_append(reply, "]}");
    return uprof_qmp_parse_cpus(slice_of(reply->str), &cpus, error);
}

static void
test_too_many_cpus(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_true(parse_many(UPROF_QMP_CPUS_MAX, NULL));
    g_assert_false(parse_many(UPROF_QMP_CPUS_MAX + 1, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "QMP reply: too many CPUs");
}

static void
test_too_long(void)
{
    g_autoptr(GString) reply = g_string_new("{\"return\":{\"status\":\"x\",\"running\":true}}");
    UprofQmpStatus status;
    g_autoptr(GError) error = NULL;

    while (reply->len < UPROF_QMP_BYTES_MAX)
        g_string_append_c(reply, ' ');
    g_assert_true(uprof_qmp_parse_status(slice_of(reply->str), &status, NULL));
    g_string_append_c(reply, ' ');
    g_assert_false(uprof_qmp_parse_status(slice_of(reply->str), &status, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "QMP reply: too long");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(failures); i++) {
        g_autofree char *path = g_strdup_printf("/qmp/failure/%s", failures[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_failure);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++) {
        g_autofree char *path = g_strdup_printf("/qmp/status/%s", statuses[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_status);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(cpu_cases); i++) {
        g_autofree char *path = g_strdup_printf("/qmp/cpus/%s", cpu_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_cpus);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(translations); i++) {
        g_autofree char *path = g_strdup_printf("/qmp/translation/%s", translations[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_translation);
    }
    g_test_add_func("/qmp/too-many-cpus", test_too_many_cpus);
    g_test_add_func("/qmp/too-long", test_too_long);
    return g_test_run();
}
