/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/folded-reader.h"

#include <string.h>

#include "uprof/error.h"

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *seen; /* of each stack "[frame][frame]=count " */
    const char *error;
} cases[] = {
    { "plain",         "vm;main;work 281\n",           "[vm][main][work]=281 ", NULL },
    { "no-last-newline", "vm;a 1\nvm;b 2",             "[vm][a]=1 [vm][b]=2 ", NULL },
    { "crlf",          "vm;a 1\r\n\r\nvm;b 2\r\n",     "[vm][a]=1 [vm][b]=2 ", NULL },
    { "comment",       "# rate: 99\nvm;a 1\n",         "[vm][a]=1 ", NULL },
    { "blanks",        "vm;operator new(int, char) 3\n", "[vm][operator new(int, char)]=3 ", NULL },
    { "two-numbers",   "vm;a 3 4\n",                   "[vm][a 3]=4 ", NULL },
    { "one-frame",     "vm 4\n",                       "[vm]=4 ", NULL },
    { "empty-frames",  ";a;;b; 4\n",                   "[][a][][b][]=4 ", NULL },
    { "zero",          "vm;a 0\nvm;b 1\n",             "[vm][b]=1 ", NULL },
    { "empty",         "",                             "", NULL },
    { "largest",       "a 4503599627370496\n",     "[a]=4503599627370496 ", NULL },

    { "no-count",      "vm;a 1\nvm;b\n",               "[vm][a]=1 ", "file line 2: no folded stack: *" },
    { "fraction",      "vm;a 1.5\n",                   "", "file line 1: no folded stack: *" },
    { "negative",      "vm;a -1\n",                    "", "file line 1: no folded stack: *" },
    { "count-only",    " 5\n",                         "", "file line 1: no folded stack: *" },
    { "too-large",     "a 18446744073709551616\n",     "", "file line 1: no folded stack: *" },
    { "sum-too-large", "a 4503599627370496\nb 1\n", "[a]=4503599627370496 ", "file line 2: counts are too large" },
    { "prose",         "hello world\n",                "", "file line 1: no folded stack: *" },
};
/* clang-format on */

static void
see(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    GString *seen = data;

    for (unsigned i = 0; i < n; i++)
        g_string_append_printf(seen, "[%.*s]", (int)frames[i].len, (const char *)frames[i].data);
    g_string_append_printf(seen, "=%" G_GUINT64_FORMAT "%s ", count, is_cut ? " cut" : "");
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    const UprofSlice text = { cases[i].text, strlen(cases[i].text) };

    const bool ok = uprof_folded_parse("file", text, see, seen, &error);

    g_assert_cmpstr(seen->str, ==, cases[i].seen);
    g_assert_true(ok == !cases[i].error);
    if (ok) {
        g_assert_no_error(error);
        return;
    }
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
}

typedef struct {
    unsigned n;
    bool is_cut;
    char first, second[8], last[8];
} Deep;

static void
see_deep(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Deep *deep = data;

    deep->n = n;
    deep->is_cut = is_cut;
    deep->first = *(const char *)frames[0].data;
    g_strlcpy(deep->second, frames[1].data, MIN(sizeof(deep->second), frames[1].len + 1));
    g_strlcpy(deep->last, frames[n - 1].data, MIN(sizeof(deep->last), frames[n - 1].len + 1));
}

/* A stack that is too deep keeps its root and its innermost frames. */
static void
test_depth(void)
{
    for (unsigned extra = 0; extra < 3; extra++) {
        g_autoptr(GString) text = g_string_new("r");
        Deep deep = { 0 };
        for (unsigned i = 2; i < UPROF_FOLDED_FRAMES_MAX + extra; i++)
            g_string_append(text, ";f");
        g_string_append(text, ";leaf 1\n");
        g_assert_true(uprof_folded_parse("file", (UprofSlice){ text->str, text->len }, see_deep,
                                         &deep, NULL));
        g_assert_cmpuint(deep.n, ==, UPROF_FOLDED_FRAMES_MAX);
        g_assert_true(deep.is_cut == (extra > 0));
        g_assert_cmpint(deep.first, ==, 'r');
        g_assert_cmpstr(deep.last, ==, "leaf");
    }
}

/* A stack of a million frames is read in linear time. */
static void
test_very_deep(void)
{
    const unsigned n = 1000 * 1000;
    g_autoptr(GString) text = g_string_new("r");
    Deep deep = { 0 };

    for (unsigned i = 0; i < n; i++)
        g_string_append(text, i == n - UPROF_FOLDED_FRAMES_MAX + 1 ? ";2nd" : ";f");
    g_string_append(text, " 1\n");
    g_assert_true(
        uprof_folded_parse("file", (UprofSlice){ text->str, text->len }, see_deep, &deep, NULL));
    g_assert_cmpuint(deep.n, ==, UPROF_FOLDED_FRAMES_MAX);
    g_assert_true(deep.is_cut);
    g_assert_cmpstr(deep.second, ==, "2nd");
    g_assert_cmpstr(deep.last, ==, "f");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/folded/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/folded/depth", test_depth);
    g_test_add_func("/folded/very-deep", test_very_deep);
    return g_test_run();
}
