/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/intern.h"

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

static void
test_equal_is_same(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();

    const UprofName *a = uprof_names_intern(names, slice_of("a;b"));
    const UprofName *b = uprof_names_intern(names, slice_of("a:b"));
    const UprofName *c = uprof_names_intern(names, slice_of("a:c"));

    g_assert_true(a == b && a != c);
    g_assert_cmpstr(uprof_name_text(a), ==, "a:b");
}

static void
test_marker_differs_from_name(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();

    const UprofName *marker = uprof_names_marker(names, "[idle]");
    const UprofName *forged = uprof_names_intern(names, slice_of("[idle]"));

    g_assert_true(marker != forged);
    g_assert_true(marker == uprof_names_marker(names, "[idle]"));
    g_assert_cmpstr(uprof_name_text(marker), ==, "[idle]");
    g_assert_cmpstr(uprof_name_text(forged), ==, "{idle]");
}

static void
test_many(void)
{
    enum { N = 20000 };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autofree const UprofName **all = g_new0(const UprofName *, N);

    for (unsigned i = 0; i < N; i++) {
        g_autofree char *text = g_strdup_printf("function_%u", i);
        all[i] = uprof_names_intern(names, slice_of(text));
    }
    for (unsigned i = 0; i < N; i++) {
        g_autofree char *text = g_strdup_printf("function_%u", i);
        g_assert_true(uprof_names_intern(names, slice_of(text)) == all[i]);
        g_assert_cmpstr(uprof_name_text(all[i]), ==, text);
    }
}

/* At its limit the table stops growing, and keeps its names. */
static void
test_limit(void)
{
    enum { MAX = 100 };
    g_autoptr(UprofNames) names = uprof_names_new();
    const UprofName *first = uprof_names_intern(names, slice_of("first"));

    uprof_names_limit(names, MAX);
    const UprofName *unknown = uprof_names_marker(names, "[unknown]");
    for (unsigned i = 0; i < 3 * MAX; i++) {
        g_autofree char *text = g_strdup_printf("0x%x", i);
        const UprofName *name = uprof_names_marker(names, text);
        g_assert_true((name == unknown) == (i >= MAX - 2));
    }
    g_assert_cmpstr(uprof_name_text(uprof_names_intern(names, slice_of("late"))), ==, "[unknown]");
    g_assert_true(uprof_names_intern(names, slice_of("first")) == first);
}

/* clang-format off */
static const struct {
    const char *raw;
    const char *name;
} files[] = {
    { "main",          "main" },
    { "[idle]",        "[idle]" },
    { "[truncated]",   "[truncated]" },
    { "[unknown]",     "[unknown]" },
    { "[app+0x1a2b]",  "[app+0x1a2b]" },
    { "copy_[k]",      "copy_[k]" },
    { "memcpy_[i]",    "memcpy_[i]" },
    { "a\n_[k]",      "a?_[k]" },
    { "[x]_[k]",       "{x]_[k]" },
    { "_[k]",          "_{k}" },
    { "x_[j]",         "x_{j}" },
    { "[idle] ",       "{idle] " },
    { "[Idle]",        "{Idle]" },
    { "[app+0x]",      "{app+0x]" },
    { "[app+0xZ]",     "{app+0xZ]" },
    { "[+0x1]",        "{+0x1]" },
    { "[a b+0x1]",     "{a b+0x1]" },
    { "[app+0x1]x",    "{app+0x1]x" },
    { "",              "[unknown]" },
};
/* clang-format on */

static void
test_read_back(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();

    for (size_t i = 0; i < G_N_ELEMENTS(files); i++)
        g_assert_cmpstr(uprof_name_text(uprof_names_read_back(names, slice_of(files[i].raw))), ==,
                        files[i].name);
}

static void
test_module(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    const UprofName *name = uprof_names_intern(names, slice_of("f"));
    const UprofName *one = uprof_names_intern(names, slice_of("libc.so.6"));
    const UprofName *other = uprof_names_intern(names, slice_of("libm.so.6"));

    g_assert_null(uprof_name_module(name));
    for (unsigned i = 0; i < 2; i++) {
        uprof_name_add_module(name, one);
        g_assert_true(uprof_name_module(name) == one);
    }
    g_assert_true(uprof_names_intern(names, slice_of("f")) == name);
    /* of two modules none is known, whatever comes later */
    for (unsigned i = 0; i < 2; i++) {
        uprof_name_add_module(name, other);
        g_assert_null(uprof_name_module(name));
    }
    uprof_name_add_module(name, one);
    g_assert_null(uprof_name_module(name));
}

static void
assert_source(const UprofName *name, const char *file, unsigned line)
{
    const UprofNameSource source = uprof_name_source(name);

    g_assert_cmpstr(source.file ? uprof_name_text(source.file) : NULL, ==, file);
    g_assert_cmpuint(source.line, ==, line);
}

/* A name that two functions have is copied without a source, and gets none later. */
static void
test_source(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofNames) others = uprof_names_new();
    const UprofName *name = uprof_names_intern(names, slice_of("f"));
    const UprofName *file = uprof_names_intern(names, slice_of("/src/f.c"));
    const UprofNameSource source = { file, 12 }, other = { file, 30 };

    uprof_name_add_source(name, (UprofNameSource){ NULL, 7 });
    uprof_name_add_source(name, (UprofNameSource){ uprof_names_marker(names, "[unknown]"), 7 });
    assert_source(name, NULL, 0);
    for (unsigned i = 0; i < 2; i++)
        uprof_name_add_source(name, source);
    assert_source(name, "/src/f.c", 12);
    assert_source(uprof_names_copy(others, name), "/src/f.c", 12);
    for (unsigned i = 0; i < 2; i++) {
        uprof_name_add_source(name, i == 0 ? other : source);
        assert_source(name, NULL, 0);
    }
    assert_source(uprof_names_copy(others, name), NULL, 0);
    uprof_name_add_source(uprof_names_copy(others, name), source);
    assert_source(uprof_names_copy(others, name), NULL, 0);
}

/* A function of another module has another source, also if that is not known. */
static void
test_source_of_modules(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    const UprofNameSource source = { uprof_names_intern(names, slice_of("/src/f.c")), 12 };
    const UprofName *one = uprof_names_intern(names, slice_of("f"));
    const UprofName *two = uprof_names_intern(names, slice_of("g"));

    for (unsigned i = 0; i < 2; i++) {
        uprof_name_add_module(one, NULL);
        uprof_name_add_source(one, source);
        assert_source(one, "/src/f.c", 12);
    }
    uprof_name_add_module(two, uprof_names_intern(names, slice_of("libc.so.6")));
    uprof_name_add_source(two, source);
    assert_source(two, "/src/f.c", 12);
    uprof_name_add_module(two, NULL);
    assert_source(two, NULL, 0);
    uprof_name_add_source(two, source);
    assert_source(two, NULL, 0);
}

/* The name of a process, too, leaves a function without a module. */
static void
test_no_module(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    const UprofName *name = uprof_names_intern(names, slice_of("sleep"));
    const UprofName *module = uprof_names_intern(names, slice_of("libc.so.6"));

    uprof_name_add_module(name, NULL);
    uprof_name_add_module(name, module);
    g_assert_null(uprof_name_module(name));
    const UprofName *later = uprof_names_intern(names, slice_of("kill"));
    uprof_name_add_module(later, module);
    uprof_name_add_module(later, NULL);
    g_assert_null(uprof_name_module(later));
}

static void
test_copy(void)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofNames) others = uprof_names_new();
    const UprofName *module = uprof_names_intern(names, slice_of("libc.so.6"));
    const UprofName *name = uprof_names_intern(names, slice_of("sleep"));

    const UprofName *copy = uprof_names_copy(others, name);
    g_assert_cmpstr(uprof_name_text(copy), ==, "sleep");
    g_assert_null(uprof_name_module(copy));
    uprof_name_add_module(name, module);
    g_assert_true(uprof_names_copy(others, name) == copy);
    g_assert_cmpstr(uprof_name_text(uprof_name_module(copy)), ==, "libc.so.6");
    g_assert_true(uprof_name_module(copy) != module);
    uprof_name_add_module(name, NULL);
    uprof_names_copy(others, name);
    g_assert_null(uprof_name_module(copy));
}

static void
test_free_null(void)
{
    uprof_names_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/intern/equal-is-same", test_equal_is_same);
    g_test_add_func("/intern/marker-differs-from-name", test_marker_differs_from_name);
    g_test_add_func("/intern/many", test_many);
    g_test_add_func("/intern/limit", test_limit);
    g_test_add_func("/intern/read-back", test_read_back);
    g_test_add_func("/intern/module", test_module);
    g_test_add_func("/intern/source", test_source);
    g_test_add_func("/intern/source-of-modules", test_source_of_modules);
    g_test_add_func("/intern/no-module", test_no_module);
    g_test_add_func("/intern/copy", test_copy);
    g_test_add_func("/intern/free-null", test_free_null);
    return g_test_run();
}
