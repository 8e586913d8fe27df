/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/parse/function-list-priv.h"

#include <string.h>

#include "uprof/error.h"

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *seen; /* of each function "[name][module][file]=line " */
    const char *error;
} cases[] = {
    { "all",         "memcpy\tlibc.so.6\t/src/mem.c\t12\n", "[memcpy][libc.so.6][/src/mem.c]=12 ", NULL },
    { "module",      "memcpy\tlibc.so.6\t\t0\n",            "[memcpy][libc.so.6][]=0 ", NULL },
    { "file",        "f(int, char)\t\ta b.c\t4294967295\n", "[f(int, char)][][a b.c]=4294967295 ", NULL },
    { "two",         "a\tm\t\t0\r\nb\t\tf\t1",              "[a][m][]=0 [b][][f]=1 ", NULL },
    { "empty",       "",                                    "", NULL },

    { "no-name",     "\tm\tf\t1\n",                         "", "file line 1: no function: *" },
    { "no-line",     "a\tm\tf\t\n",                         "", "file line 1: no function: *" },
    { "no-file",     "a\tm\t1\n",                           "", "file line 1: no function: *" },
    { "too-many",    "a\tm\tf\t1\t2\n",                     "", "file line 1: no function: *" },
    { "negative",    "a\tm\tf\t-1\n",                       "", "file line 1: no function: *" },
    { "too-large",   "a\tm\tf\t4294967296\n",               "", "file line 1: no function: *" },
    { "empty-line",  "a\tm\tf\t1\n\n",                      "[a][m][f]=1 ", "file line 2: no function: *" },
    { "stacks",      "vm;main 12\n",                        "", "file line 1: no function: *" },
};
/* clang-format on */

static void
see(const UprofFunctionLine *function, void *data)
{
    g_string_append_printf(data, "[%.*s][%.*s][%.*s]=%u ", (int)function->name.len,
                           (const char *)function->name.data, (int)function->module.len,
                           (const char *)function->module.data, (int)function->file.len,
                           (const char *)function->file.data, function->line);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const UprofSlice text = { cases[i].text, strlen(cases[i].text) };

    const bool ok = uprof_function_list_parse("file", text, see, seen, &error);

    g_assert_cmpstr(seen->str, ==, cases[i].seen);
    g_assert_true(ok == !cases[i].error);
    if (ok) {
        g_assert_no_error(error);
        return;
    }
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
}

static void
test_too_long(void)
{
    const size_t len = ((size_t)UPROF_FUNCTION_LIST_BYTES_MAX_MIB << 20) + 1;
    g_autofree char *text = g_malloc0(len);
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_function_list_parse("file", (UprofSlice){ text, len }, see, seen, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(seen->str, ==, "");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/function-list/", cases[i].name, NULL);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/function-list/too-long", test_too_long);
    return g_test_run();
}
