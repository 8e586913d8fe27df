/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/json-text-priv.h"
#include "uprof/error.h"
#include "uprof/json-object.h"

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: must be read */
} cases[] = {
    { "object",       "{\"a\": [1, -2, true, null, \"}\"]}", NULL },
    { "array",        "[]",             NULL },
    { "blank",        " \r\n\t",        NULL },
    { "depth-16",     "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]", NULL },
    { "depth-17",     "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", "it: nested too deeply" },
    { "empty",        "",               "it: empty" },
    { "long",         "{\"0123456789012345678901234567890123456789\": 1}", "it: too long" },
    { "cut",          "{\"a\": {",      "it: ends too early" },
    { "cut-string",   "{\"a",           "it: a string without an end" },
    { "cut-escape",   "{\"a\\",         "it: a string without an end" },
    { "newline",      "{\"a\nb\": 1}",  "it: a string without an end" },
    { "closes",       "{}}",            "it: a bracket closes nothing" },
    { "mixed",        "{]",             "it: not JSON" },
    { "comment",      "{/*\"*/}",       "it: not JSON" },
    { "single-quote", "{'a':1}",        "it: not JSON" },
    { "words",        "{return}",       "it: not JSON" },
    { "utf-8",        "{\"a\":\"\xff\"}", "it: not JSON" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSlice text = { cases[i].text, strlen(cases[i].text) };
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonParser) parser = uprof_json_load("it", text, 40, &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_nonnull(parser);
        return;
    }
    g_assert_null(parser);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, cases[i].error);
}

static void
test_member(void)
{
    static const char text[] = "{\"a\": 1, \"b\": {\"c\": \"x\"}, \"d\": 1e999}";
    g_autoptr(JsonParser) parser =
        uprof_json_load("it", (UprofSlice){ text, strlen(text) }, 1000, NULL);
    JsonNode *root = json_parser_get_root(parser);

    g_assert_nonnull(uprof_json_member(root, "a", G_TYPE_INT64));
    g_assert_null(uprof_json_member(root, "a", G_TYPE_STRING));
    g_assert_null(uprof_json_member(root, "d", G_TYPE_INT64));
    g_assert_null(uprof_json_member(root, "c", G_TYPE_STRING));
    g_assert_null(uprof_json_member(NULL, "a", G_TYPE_INT64));
    JsonNode *inner = uprof_json_member(root, "b", JSON_TYPE_OBJECT);
    g_assert_nonnull(uprof_json_member(inner, "c", G_TYPE_STRING));
    g_assert_null(uprof_json_member(uprof_json_member(root, "a", G_TYPE_INT64), "c", G_TYPE_INT64));
}

static void
test_object(void)
{
    static const char *const objects[] = { "{}", " {\"a\": [1, {}]}\r\n" };
    static const char *const others[] = { "",     "{",        "{}x",    "x{}",       "[]", "\"x\"",
                                          "null", "{'a': 1}", "{% %}",  "{\"a\"}",   " ",  "\xff",
                                          "{}{}", "{} []",    "<html>", "{\"a\":1,}" };

    for (size_t i = 0; i < G_N_ELEMENTS(objects); i++)
        g_assert_true(uprof_json_is_object((UprofSlice){ objects[i], strlen(objects[i]) }));
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
        if (uprof_json_is_object((UprofSlice){ others[i], strlen(others[i]) }))
            g_error("'%s' is an object", others[i]);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/json-text/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/json-text/member", test_member);
    g_test_add_func("/json-text/is-object", test_object);
    return g_test_run();
}
