/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/symbol-priv.h"
#include "../../../src/parse/nm-priv.h"
#include "uprof/error.h"
#include "uprof/nm.h"

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* clang-format off */
#define MAIN "0000000000001139 T main\n"

static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: must parse, to this */
    unsigned n;
    const char *last;
    uint64_t start, size;
    UprofBinding binding;
    bool code;
} cases[] = {
    { "nm",           MAIN, NULL, 1, "main", 0x1139, 0, UPROF_BINDING_GLOBAL, true },
    { "no-newline",   "1139 t main", NULL, 1, "main", 0x1139, 0, UPROF_BINDING_LOCAL, true },
    { "crlf",         "1139 t main\r\n", NULL, 1, "main", 0x1139, 0, UPROF_BINDING_LOCAL, true },
    { "nm-s",         "0000000000001139 000000000000000b W main\n", NULL,
      1, "main", 0x1139, 11, UPROF_BINDING_WEAK, true },
    { "data",         MAIN "0000000000004010 D counter\n", NULL,
      2, "counter", 0x4010, 0, UPROF_BINDING_GLOBAL, false },
    { "letter-is-hex", MAIN "0000000000004010 b buffer\n", NULL,
      2, "buffer", 0x4010, 0, UPROF_BINDING_LOCAL, false },
    { "undefined",    "                 U puts\n                 w __gmon_start__\n" MAIN, NULL,
      1, "main", 0x1139, 0, UPROF_BINDING_GLOBAL, true },
    { "undefined-0",  MAIN "0000000000000000 U puts\n", NULL,
      1, "main", 0x1139, 0, UPROF_BINDING_GLOBAL, true },
    { "empty-lines",  "\n\n" MAIN "\n", NULL, 1, "main", 0x1139, 0, UPROF_BINDING_GLOBAL, true },
    { "kallsyms",     "ffffffffc0000010 t nf_hook\t[nf_tables]\n", NULL,
      1, "nf_hook", UINT64_C(0xffffffffc0000010), 0, UPROF_BINDING_LOCAL, true },
    { "demangled",    "1000 T run(int, char*)\n", NULL,
      1, "run(int, char*)", 0x1000, 0, UPROF_BINDING_GLOBAL, true },
    { "version",      "1000 T run@@V2\n", NULL, 1, "run", 0x1000, 0, UPROF_BINDING_GLOBAL, true },
    { "at-first",     "1000 T @run\n", NULL, 1, "@run", 0x1000, 0, UPROF_BINDING_GLOBAL, true },
    { "dropped",      MAIN "2000 t .L1\n2000 t $x\n2000 t $d.7\n2000 A absolute\n2000 C common\n"
      "2000 N .debug\n2000 - stab\n2000 ? what\n2000 I other\n", NULL,
      1, "main", 0x1139, 0, UPROF_BINDING_GLOBAL, true },
    { "not-dropped",  "2000 t $xy\n", NULL, 1, "$xy", 0x2000, 0, UPROF_BINDING_LOCAL, true },
    { "top",          "ffffffffffffffff ffffffffffffffff t f\n", NULL,
      1, "f", UINT64_MAX, 0, UPROF_BINDING_LOCAL, true },
    { "some-zero",    "0 A base\n0 D cpu\n" MAIN, NULL, 2, "main", 0x1139, 0, UPROF_BINDING_GLOBAL, true },

    { "empty",        "",                        "map line 0: no symbol up to here" },
    { "only-undefined", "                 U puts\n", "map line 1: no symbol up to here" },
    { "all-zero",     "0000000000000000 T _text\n0000000000000000 t f\n",
      "map line 2: every address is 0: the kernel hid them (kptr_restrict)*" },
    { "prose",        MAIN "hello world\n",      "map line 2: not 'ADDRESS TYPE NAME'" },
    { "address-only", "1139\n",                  "map line 1: not 'ADDRESS TYPE NAME'" },
    { "no-name",      "1139 T\n",                "map line 1: not 'ADDRESS TYPE NAME'" },
    { "blank-name",   "1139 T \n",               "map line 1: not 'ADDRESS TYPE NAME'" },
    { "module-only",  "1139 T \t[m]\n",          "map line 1: not 'ADDRESS TYPE NAME'" },
    { "wide-address", "10000000000000000 T f\n", "map line 1: not 'ADDRESS TYPE NAME'" },
    { "long-address", "00000000000000001 T f\n", "map line 1: not 'ADDRESS TYPE NAME'" },
    { "0x",           "0x1139 T f\n",            "map line 1: not 'ADDRESS TYPE NAME'" },
    { "wide-size",    "1139 10000000000000000 T f\n", "map line 1: not 'ADDRESS TYPE NAME'" },
    { "type-unknown", "1139 Z f\n",              "map line 1: not 'ADDRESS TYPE NAME'" },
    { "type-long",    "1139 0001 TT f\n",        "map line 1: not 'ADDRESS TYPE NAME'" },
    { "blank-line",   " \n",                     "map line 1: not 'ADDRESS TYPE NAME'" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GArray) symbols = NULL;
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_nm_parse(slice_of(cases[i].text), "map", &symbols, &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        g_assert_true(uprof_nm_is(slice_of(cases[i].text)));
        g_assert_cmpuint(symbols->len, ==, cases[i].n);

        const UprofSymbol *last = &g_array_index(symbols, UprofSymbol, symbols->len - 1);
        g_assert_cmpmem(last->name.data, last->name.len, cases[i].last, strlen(cases[i].last));
        g_assert_cmphex(last->start, ==, cases[i].start);
        g_assert_cmphex(last->size, ==, cases[i].size);
        g_assert_cmpint(last->binding, ==, cases[i].binding);
        g_assert_true(last->code == cases[i].code);
        return;
    }
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
    g_assert_null(symbols);
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    bool is;
} looks[] = {
    { "nm",          MAIN,                        true  },
    { "undefined",   "                 U puts\n", true  },
    { "empty",       "",                          false },
    { "empty-lines", "\n\n\n",                    false },
    { "elf",         "\177ELF\2\1\1",             false },
    { "late-prose",  MAIN "\n\n\n\n\n\n\n\n\nhello\n", true },
    { "prose",       MAIN "\n\n\n\n\n\n\n\nhello\n", false },
};
/* clang-format on */

static void
test_is(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);

    g_assert_true(uprof_nm_is(slice_of(looks[i].text)) == looks[i].is);
}

static void
test_every_letter(void)
{
    static const char code[] = "TtWwi", data[] = "DdBbRrGgSsVvunp", skipped[] = "AaCcINU-?";

    for (unsigned c = 1; c < 256; c++) {
        g_autofree char *text = g_strdup_printf("1 T first\n2 %c last\n", (char)c);
        g_autoptr(GArray) symbols = NULL;

        if (!uprof_nm_parse(slice_of(text), "map", &symbols, NULL)) {
            g_assert_false(strchr(code, c) || strchr(data, c) || strchr(skipped, c));
            continue;
        }
        const UprofSymbol *last = &g_array_index(symbols, UprofSymbol, symbols->len - 1);
        g_assert_true(symbols->len == 1 ? strchr(skipped, c) != NULL
                                        : strchr(last->code ? code : data, c) != NULL);
    }
}

static void
test_too_many(void)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GArray) symbols = NULL;
    g_autoptr(GError) error = NULL;

    for (unsigned i = 0; i < UPROF_SYMBOLS_MAX; i++)
        g_string_append(text, "1 t f\n");
    g_assert_true(uprof_nm_parse(slice_of(text->str), "map", &symbols, NULL));
    g_assert_cmpuint(symbols->len, ==, UPROF_SYMBOLS_MAX);
    g_clear_pointer(&symbols, g_array_unref);

    g_string_append(text, "1 t f\n");
    g_assert_false(uprof_nm_parse(slice_of(text->str), "map", &symbols, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "map line 4000001: more than 4000000 symbols");
}

static void
test_long_name(void)
{
    g_autofree char *name = g_strnfill(UPROF_SYMBOL_NAME_BYTES_MAX + 1, 'x');
    g_autofree char *text = g_strdup_printf("1 t %s\n", name);
    g_autoptr(GArray) symbols = NULL;

    g_assert_true(uprof_nm_parse(slice_of(text), "map", &symbols, NULL));
    g_assert_cmpuint(g_array_index(symbols, UprofSymbol, 0).name.len, ==,
                     UPROF_SYMBOL_NAME_BYTES_MAX);
}

static void
test_too_long(void)
{
    const UprofSlice text = { "never looked at", (size_t)UPROF_NM_BYTES_MAX + 1 };
    g_autoptr(GArray) symbols = NULL;
    g_autoptr(GError) error = NULL;

    g_assert_false(uprof_nm_parse(text, "map", &symbols, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==, "map line 0: 536870913 bytes are too many");
}

static void
test_binding(void)
{
    g_assert_cmpint(uprof_nm_binding('T'), ==, UPROF_BINDING_GLOBAL);
    g_assert_cmpint(uprof_nm_binding('t'), ==, UPROF_BINDING_LOCAL);
    g_assert_cmpint(uprof_nm_binding('V'), ==, UPROF_BINDING_WEAK);
    g_assert_cmpint(uprof_nm_binding('u'), ==, UPROF_BINDING_GLOBAL);
    g_assert_cmpint(uprof_nm_binding('\0'), ==, UPROF_BINDING_LOCAL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/nm/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(looks); i++) {
        g_autofree char *path = g_strdup_printf("/nm/is/%s", looks[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_is);
    }
    g_test_add_func("/nm/every-letter", test_every_letter);
    g_test_add_func("/nm/binding", test_binding);
    g_test_add_func("/nm/too-many", test_too_many);
    g_test_add_func("/nm/long-name", test_long_name);
    g_test_add_func("/nm/too-long", test_too_long);
    return g_test_run();
}
