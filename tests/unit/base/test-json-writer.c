/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/json-writer.h"

static void
write_values(UprofJsonWriter *json)
{
    uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
    uprof_json_string(json, "text", "a\"b\n</c");
    uprof_json_uint(json, "most", UINT64_MAX);
    uprof_json_int(json, "least", INT64_MIN);
    uprof_json_begin(json, "empty", UPROF_JSON_ARRAY);
    uprof_json_break_line(json, "\n");
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_break_line(json, "\n ");
    uprof_json_begin(json, "rows", UPROF_JSON_ARRAY);
    for (unsigned i = 0; i < 2; i++) {
        uprof_json_break_line(json, "\n  ");
        uprof_json_begin(json, NULL, UPROF_JSON_OBJECT);
        uprof_json_bool(json, "first", i == 0);
        uprof_json_end(json, UPROF_JSON_OBJECT);
    }
    uprof_json_end(json, UPROF_JSON_ARRAY);
    uprof_json_bool(json, "last", true);
    uprof_json_end(json, UPROF_JSON_OBJECT);
}

static void
test_spaced(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };

    write_values(&json);
    g_assert_cmpstr(out->str, ==,
                    "{\"text\": \"a\\\"b\\u000a<\\/c\", \"most\": 18446744073709551615, "
                    "\"least\": -9223372036854775808, \"empty\": [],\n \"rows\": [\n"
                    "  {\"first\": true},\n  {\"first\": false}], \"last\": true}");
}

static void
test_compact(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out, .is_compact = true };

    write_values(&json);
    g_assert_cmpstr(out->str, ==,
                    "{\"text\":\"a\\\"b\\u000a<\\/c\",\"most\":18446744073709551615,"
                    "\"least\":-9223372036854775808,\"empty\":[],\n \"rows\":[\n"
                    "  {\"first\":true},\n  {\"first\":false}],\"last\":true}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json-writer/spaced", test_spaced);
    g_test_add_func("/json-writer/compact", test_compact);
    return g_test_run();
}
