/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/base/text-priv.h"
#include "uprof/text.h"

#define FFFD "\xef\xbf\xbd"

/* clang-format off */
static const struct {
    const char *name;
    const char *raw;
    size_t len; /* 0: strlen() */
    const char *clean;
} cases[] = {
    { "plain",               "main",                  0, "main" },
    { "empty",               "",                      0, "[unknown]" },
    { "utf-8",               "f\xc3\xbcr",            0, "f\xc3\xbcr" },
    { "lone-continuation",   "a\x80" "b",             0, "a" FFFD "b" },
    { "cut-sequence",        "a\xe2\x82",             0, "a" FFFD FFFD },
    { "overlong",            "\xc0\xaf",              0, FFFD FFFD },
    { "surrogate",           "\xed\xa0\x80",          0, FFFD FFFD FFFD },
    { "above-unicode",       "\xf4\x90\x80\x80",      0, FFFD FFFD FFFD FFFD },
    { "nul",                 "a\0b",                  3, "a?b" },
    { "newline",             "a\nb",                  0, "a?b" },
    { "escape",              "\x1b[31m",              0, "?[31m" },
    { "del",                 "a\x7f",                 0, "a?" },
    { "c1",                  "a\xc2\x9b" "b",         0, "a?b" },
    { "bidi-override",       "a\xe2\x80\xae" "b",     0, "a?b" },
    { "zero-width",          "a\xe2\x80\x8b" "b",     0, "a?b" },
    { "bom",                 "\xef\xbb\xbf" "a",      0, "?a" },
    { "private-use",         "\xee\x80\x80",          0, "?" },
    { "noncharacter",        "\xef\xbf\xbf",          0, "?" },
    { "line-separator",      "a\xe2\x80\xa8" "b",     0, "a?b" },
    { "no-break-space",      "a\xc2\xa0" "b",         0, "a b" },
    { "ideographic-space",   "a\xe3\x80\x80" "1",     0, "a_1" },
    { "semicolon",           "a;b;c",                 0, "a:b:c" },
    { "count",               "main 12",               0, "main_12" },
    { "count-alone",         " 12",                   0, "_12" },
    { "two-counts",          "a 1 2",                 0, "a 1_2" },
    { "no-count",            "a 1b",                  0, "a 1b" },
    { "digits",              "12",                    0, "12" },
    { "hash",                "#include",              0, "_include" },
    { "marker",              "[idle]",                0, "{idle]" },
    { "kernel-suffix",       "f_[k]",                 0, "f_{k}" },
    { "suffix-alone",        "_[k]",                  0, "_{k}" },
    { "suffix-wide",         "f_[\xc3\xbc]",          0, "f_{\xc3\xbc}" },
    { "suffix-bracket",      "f_[[]",                 0, "f_{[}" },
    { "suffix-two",          "f_[kk]",                0, "f_[kk]" },
    { "suffix-none",         "f_[]",                  0, "f_[]" },
    { "suffix-inside",       "f_[k]g",                0, "f_[k]g" },
    { "hash-then-suffix",    "#[k]",                  0, "_{k}" },
    { "script",              "</script>&\"'",         0, "</script>&\"'" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSlice raw = { cases[i].raw, cases[i].len ? cases[i].len : strlen(cases[i].raw) };

    g_autofree char *clean = uprof_text_clean(raw);
    g_assert_cmpstr(clean, ==, cases[i].clean);

    if (raw.len > 0) {
        g_autofree char *again = uprof_text_clean((UprofSlice){ clean, strlen(clean) });
        g_assert_cmpstr(again, ==, clean);
    }
}

/* clang-format off */
static const struct {
    const char *name;
    const char *unit; /* this text is repeated */
    size_t n;
    size_t len;       /* of the clean text, in bytes */
    bool is_cut;
} limits[] = {
    { "longest",          "x",                1024, 1024, false },
    { "longest-plus-1",   "x",                1025, 1024, true  },
    { "wide",             "\xc3\xbc",         512,  1024, false },
    { "wide-plus-1",      "\xc3\xbc",         513,  1023, true  },
    { "wider-plus-1",     "\xe2\x82\xac",     342,  1023, true  },
    { "raw-most",         "\xf3\xb0\x80\x80", 1024, 1024, false },
    { "raw-most-plus-1",  "\xf3\xb0\x80\x80", 1025, 1024, true  },
    { "huge",             "\xff",             1 << 20, 1023, true },
};
/* clang-format on */

static void
test_limit(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GString) raw = g_string_new(NULL);

    for (size_t n = 0; n < limits[i].n; n++)
        g_string_append(raw, limits[i].unit);

    g_autofree char *clean = uprof_text_clean((UprofSlice){ raw->str, raw->len });
    g_assert_cmpuint(strlen(clean), ==, limits[i].len);
    g_assert_true(g_utf8_validate(clean, -1, NULL));
    g_assert_true(g_str_has_suffix(clean, "...") == limits[i].is_cut);

    g_autofree char *again = uprof_text_clean((UprofSlice){ clean, strlen(clean) });
    g_assert_cmpstr(again, ==, clean);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *raw, *quoted;
} quotes[] = {
    { "null",    NULL,           "" },
    { "empty",   "",             "" },
    { "as-is",   "[a]; #b_[k] 1", "[a]; #b_[k] 1" },
    { "escape",  "\x1b]0;x\a",   "?]0;x?" },
    { "invalid", "\xff",         FFFD },
    { "format",  "a%n%s",        "a%n%s" },
};

static const struct {
    const char *name;
    const char *text, *json, *xml;
} escapes[] = {
    { "plain",     "main",          "main",              "main" },
    { "quotes",    "a\"b'c",        "a\\\"b'c",          "a&quot;b&#39;c" },
    { "backslash", "a\\b",          "a\\\\b",            "a\\b" },
    { "control",   "a\nb\x1f",      "a\\u000ab\\u001f",  "a\nb\x1f" },
    { "script",    "</script>",     "<\\/script>",       "&lt;/script&gt;" },
    { "slash",     "a/b",           "a/b",               "a/b" },
    { "entity",    "&lt;",          "&lt;",              "&amp;lt;" },
    { "utf-8",     "\xc3\xbc",      "\xc3\xbc",          "\xc3\xbc" },
};

#define UUID "0123ABcd-4567-89ab-cdef-0123456789ab"
#define TEN "abcdefghij"
#define NINETY TEN TEN TEN TEN TEN TEN TEN TEN TEN

static const struct {
    const char *name;
    const char *domain, *uuid, *file;
} file_names[] = {
    { "plain",         "web-1.x_y",     UUID, "web-1.x_y" },
    { "dot",           ".",             UUID, "%2E" },
    { "dots",          "..",            UUID, "%2E." },
    { "dash",          "-rf",           UUID, "%2Drf" },
    { "slash",         "../a/b",        UUID, "%2E.%2Fa%2Fb" },
    { "percent",       "a%2F",          UUID, "a%252F" },
    { "tilde",         "a~b",           UUID, "a%7Eb" },
    { "bytes",         "\xc3\xbc\n",    UUID, "%C3%BC%0A" },
    { "empty",         "",              UUID, "~0123abcd" },
    { "longest",       NINETY TEN,      UUID, NINETY TEN },
    { "plus-1",        NINETY TEN "k",  UUID, NINETY TEN "~0123abcd" },
    { "escape-at-end", NINETY "abcdefghi/", UUID, NINETY "abcdefghi~0123abcd" },
    { "no-uuid",       "",              "",   "~00000000" },
    { "bad-uuid",      "",              "12/../..", "~12000000" },
};
/* clang-format on */

static void
test_quote(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *quoted = uprof_text_quote(quotes[i].raw);

    g_assert_cmpstr(quoted, ==, quotes[i].quoted);
}

static void
test_escape(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GString) json = g_string_new("x");
    g_autoptr(GString) xml = g_string_new("x");

    uprof_text_append_json(json, escapes[i].text);
    uprof_text_append_xml(xml, escapes[i].text);
    g_assert_cmpstr(json->str + 1, ==, escapes[i].json);
    g_assert_cmpstr(xml->str + 1, ==, escapes[i].xml);
}

static void
test_file_name(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autofree char *file = uprof_text_file_name(file_names[i].domain, file_names[i].uuid);

    g_assert_cmpstr(file, ==, file_names[i].file);
}

/* Lines and colors stay; other control sequences do not. */
static void
test_lines(void)
{
    static const struct {
        const char *raw, *safe;
    } line_cases[] = {
        { "one\ntwo\n", "one\ntwo\n" },
        { "\x1b[1mbold\x1b[0m", "\x1b[1mbold\x1b[0m" },
        { "\x1b[38;5;3mx", "\x1b[38;5;3mx" },
        { "\x1b[2Jx", "?[2Jx" },
        { "\x1b]0;title\a", "?]0;title?" },
        { "\x1b[1", "?[1" },
        { "\x1b[", "?[" },
        { "\x1b", "?" },
        { "a\rb\tc", "a?b?c" },
        { "\xff", "\xef\xbf\xbd" },
        { "", "" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(line_cases); i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        uprof_text_append_lines(out, (UprofSlice){ line_cases[i].raw, strlen(line_cases[i].raw) });
        g_assert_cmpstr(out->str, ==, line_cases[i].safe);
    }
}

/* Lines may be longer than other clean texts. */
static void
test_long_lines(void)
{
    g_autofree char *raw = g_strnfill(100 * 1000, 'x');
    g_autoptr(GString) out = g_string_new(NULL);

    uprof_text_append_lines(out, (UprofSlice){ raw, strlen(raw) });
    g_assert_cmpuint(out->len, ==, 100 * 1000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/text/clean/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        g_autofree char *path = g_strdup_printf("/text/limit/%s", limits[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_limit);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(quotes); i++) {
        g_autofree char *path = g_strdup_printf("/text/quote/%s", quotes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_quote);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(escapes); i++) {
        g_autofree char *path = g_strdup_printf("/text/escape/%s", escapes[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_escape);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(file_names); i++) {
        g_autofree char *path = g_strdup_printf("/text/file-name/%s", file_names[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_file_name);
    }
    g_test_add_func("/text/lines", test_lines);
    g_test_add_func("/text/long-lines", test_long_lines);
    return g_test_run();
}
