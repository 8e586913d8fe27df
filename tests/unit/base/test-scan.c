/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/error.h"
#include "uprof/scan.h"

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *lines[4]; /* NULL-terminated if fewer */
} line_cases[] = {
    { "empty",           "",               { NULL } },
    { "no-last-newline", "a\nbc",          { "a", "bc", NULL } },
    { "crlf",            "a\r\nb\r\n",     { "a", "b", NULL } },
    { "empty-lines",     "\n\r\n\n",       { "", "", "", NULL } },
    { "cr-inside",       "a\rb\r\r\n",     { "a\rb\r", NULL } },
    { "cr-at-the-end",   "a\r",            { "a", NULL } },
};

static const struct {
    const char *name;
    const char *line;
    const char *words[4];
} word_cases[] = {
    { "empty",    "",               { NULL } },
    { "blank",    " \t ",           { NULL } },
    { "one",      "abc",            { "abc", NULL } },
    { "several",  "  a\tbc  d ",    { "a", "bc", "d", NULL } },
};

static const struct {
    const char *name;
    const char *text;
    unsigned base;
    uint64_t min, max;
    bool ok;
    uint64_t value;
} number_cases[] = {
    { "zero",             "0",                    10, 0, UINT64_MAX, true,  0 },
    { "largest",          "18446744073709551615", 10, 0, UINT64_MAX, true,  UINT64_MAX },
    { "one-more",         "18446744073709551616", 10, 0, UINT64_MAX, false, 0 },
    { "ten-times",        "184467440737095516150", 10, 0, UINT64_MAX, false, 0 },
    { "hex",              "fFfFfFfFfFfFfFfF",     16, 0, UINT64_MAX, true,  UINT64_MAX },
    { "hex-one-more",     "10000000000000000",    16, 0, UINT64_MAX, false, 0 },
    { "leading-zeros",    "00000000000000000001", 16, 0, 1,          true,  1 },
    { "empty",            "",                     10, 0, UINT64_MAX, false, 0 },
    { "plus",             "+1",                   10, 0, UINT64_MAX, false, 0 },
    { "minus",            "-1",                   10, 0, UINT64_MAX, false, 0 },
    { "blank-before",     " 1",                   10, 0, UINT64_MAX, false, 0 },
    { "blank-behind",     "1 ",                   10, 0, UINT64_MAX, false, 0 },
    { "prefix",           "0x1",                  16, 0, UINT64_MAX, false, 0 },
    { "hex-as-decimal",   "1f",                   10, 0, UINT64_MAX, false, 0 },
    { "tail",             "4096k",                10, 0, UINT64_MAX, false, 0 },
    { "at-min",           "5",                    10, 5, 7,          true,  5 },
    { "below-min",        "4",                    10, 5, 7,          false, 0 },
    { "at-max",           "7",                    10, 5, 7,          true,  7 },
    { "above-max",        "8",                    10, 5, 7,          false, 0 },
};

static const struct {
    const char *name;
    const char *text, *trimmed;
} trim_cases[] = {
    { "empty",     "",                "" },
    { "nothing",   " \t\r\n",         "" },
    { "both-ends", "\r\n a b\t \r\n", "a b" },
    { "clean",     "ab",              "ab" },
};
/* clang-format on */

static void
assert_slice(UprofSlice slice, const char *text)
{
    g_assert_cmpmem(slice.data, slice.len, text, strlen(text));
    g_assert_true(uprof_slice_is(slice, text));
}

static void
test_line(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofScan scan = { .name = "test", .rest = slice_of(line_cases[i].text) };
    UprofSlice line;
    unsigned n = 0;

    for (; line_cases[i].lines[n]; n++) {
        g_assert_true(uprof_scan_line(&scan, &line));
        assert_slice(line, line_cases[i].lines[n]);
        g_assert_cmpuint(scan.line, ==, n + 1);
    }
    g_assert_false(uprof_scan_line(&scan, &line));
    g_assert_cmpuint(scan.line, ==, n);
}

static void
test_word(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofSlice line = slice_of(word_cases[i].line);
    UprofSlice word = { "untouched", 9 };

    for (unsigned n = 0; word_cases[i].words[n]; n++) {
        g_assert_true(uprof_scan_word(&line, &word));
        assert_slice(word, word_cases[i].words[n]);
    }
    const UprofSlice last = word;
    g_assert_false(uprof_scan_word(&line, &word));
    g_assert_true(word.data == last.data && word.len == last.len);
}

static void
test_number(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    uint64_t value = 42;

    const bool ok = uprof_slice_to_uint(slice_of(number_cases[i].text), number_cases[i].base,
                                        number_cases[i].min, number_cases[i].max, &value);

    g_assert_true(ok == number_cases[i].ok);
    g_assert_cmpuint(value, ==, ok ? number_cases[i].value : 42);
}

static void
test_trim(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    assert_slice(uprof_slice_trim(slice_of(trim_cases[i].text)), trim_cases[i].trimmed);
}

static void
test_compare(void)
{
    const UprofSlice none = { NULL, 0 };
    const UprofSlice text = slice_of("CPU#1");

    g_assert_true(uprof_slice_is(none, ""));
    g_assert_false(uprof_slice_is(none, "x"));
    g_assert_false(uprof_slice_is(text, "CPU#"));
    g_assert_false(uprof_slice_is(text, "CPU#12"));
    g_assert_true(uprof_slice_starts(text, ""));
    g_assert_true(uprof_slice_starts(text, "CPU#"));
    g_assert_false(uprof_slice_starts(text, "CPU#12"));
    g_assert_false(uprof_slice_starts(none, "x"));
}

static void
test_find(void)
{
    size_t at = 42;

    g_assert_false(uprof_slice_find((UprofSlice){ NULL, 0 }, "x", &at));
    g_assert_false(uprof_slice_find(slice_of("abc"), "abcd", &at));
    g_assert_cmpuint(at, ==, 42);
    g_assert_true(uprof_slice_find(slice_of("abcabc"), "ca", &at));
    g_assert_cmpuint(at, ==, 2);
    g_assert_true(uprof_slice_find(slice_of("abc"), "c", NULL));
}

static void
test_split(void)
{
    UprofSlice before = slice_of("untouched"), behind = before;

    g_assert_false(uprof_slice_split(slice_of("abc"), '=', &before, &behind));
    g_assert_false(uprof_slice_split((UprofSlice){ NULL, 0 }, '=', &before, &behind));
    assert_slice(before, "untouched");
    assert_slice(behind, "untouched");
    g_assert_true(uprof_slice_split(slice_of("a=b=c"), '=', &before, &behind));
    assert_slice(before, "a");
    assert_slice(behind, "b=c");
    g_assert_true(uprof_slice_split(slice_of("="), '=', &before, &behind));
    assert_slice(before, "");
    assert_slice(behind, "");
}

static void
test_fail(void)
{
    UprofScan scan = { .name = "vmcoreinfo", .rest = slice_of("a\nb\n") };
    UprofSlice line;
    g_autoptr(GError) error = NULL;

    g_assert_true(uprof_scan_line(&scan, &line));
    g_assert_true(uprof_scan_line(&scan, &line));
    g_assert_false(uprof_scan_fail(&scan, &error, "no '%s'", "KEY"));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "vmcoreinfo line 2: no 'KEY'");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(line_cases); i++) {
        g_autofree char *path = g_strdup_printf("/scan/line/%s", line_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_line);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(word_cases); i++) {
        g_autofree char *path = g_strdup_printf("/scan/word/%s", word_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_word);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(number_cases); i++) {
        g_autofree char *path = g_strdup_printf("/scan/number/%s", number_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_number);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(trim_cases); i++) {
        g_autofree char *path = g_strdup_printf("/scan/trim/%s", trim_cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_trim);
    }
    g_test_add_func("/scan/compare", test_compare);
    g_test_add_func("/scan/find", test_find);
    g_test_add_func("/scan/split", test_split);
    g_test_add_func("/scan/fail", test_fail);
    return g_test_run();
}
