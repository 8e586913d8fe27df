/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>
#include <time.h>

#include "../../../src/sym/demangle-priv.h"

enum { CXX_BYTES_MAX = 1024 }; /* libiberty limits its use of the stack by this */

/* clang-format off */
static const struct {
    const char *raw;
    const char *name; /* NULL: not changed */
} cases[] = {
    { "main", NULL }, { "", NULL }, { "_", NULL }, { "_Z", NULL }, { "_R", NULL }, { "_D", NULL }, { "caml", NULL },
    { "_Zen", NULL }, { "_Random", NULL }, { "_DYNAMIC", NULL }, { "_Z1", NULL }, { "Z3foov", NULL },
    { "_Z3foov", "foo()" },
    { "_ZN2ns3Foo3barEiPKc", "ns::Foo::bar(int, char const*)" },
    { "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)" },
    { "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const" },
    { "_ZN12_GLOBAL__N_13fooEv", "(anonymous namespace)::foo()" },
    { "_Z3fooi.constprop.0", "foo(int) [clone .constprop.0]" },
    { "_Z3fooi.part.0.cold", "foo(int) [clone .part.0] [clone .cold]" },
    { "_ZTV3Foo", "vtable for Foo" },
    { "_ZSt11make_sharedIiJiEESt10shared_ptrIT_EDpOT0_", "std::shared_ptr<int> std::make_shared<int, int>(int&&)" },
    { "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
    { "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
      "<Test + 'static as foo::Bar<Test>>::bar" },
    { "_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar" },
    { "_D3std5stdio7writelnFAyaZv", "std.stdio.writeln(immutable(char)[])" },
    { "camlStdlib__List__map_342", "Stdlib.List.map" },
    { "camlStdlib__List.map_342", "Stdlib.List.map" },
    { "camlMain__entry", "Main.entry" },
    { "camlMain__fun_1234", "Main.fun" },
    { "camlMain.$2b$2b_12", "Main.++" },
    { "camlMain__$3e$3e$3d_7", "Main.>>=" },
    { "camlDune__exe__Main__go__there_5", "Dune.exe__Main__go__there" },
    { "camlA__b_1_2", "A.b_1" },
    { "camlA__b_", "A.b_" },
    { "camlA__1", "A.1" },
    { "camlA__$zz$2", "A.$zz$2" },
    { "camlMain", NULL }, { "camlMain__", NULL }, { "caml_main", NULL }, { "caml_startup__code_begin", NULL },
    { "camlA__$00b_1", "A." },
};
/* clang-format on */

/* Demangles with a new budget of time. */
static char *
demangle(UprofSlice raw)
{
    UprofDemangler demangler;

    uprof_demangler_init(&demangler);
    return uprof_demangle(&demangler, raw);
}

static void
test_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        /* a copy without NUL: symbols do not end in one */
        g_autofree char *copy = g_memdup2(cases[i].raw, strlen(cases[i].raw));
        g_autofree char *name = demangle((UprofSlice){ copy, strlen(cases[i].raw) });
        g_assert_cmpstr(name, ==, cases[i].name);
    }
    g_assert_null(demangle((UprofSlice){ "_Z3foo\0v", 8 }));
}

/* Appends the reference to part @i of a C++ name: S_, S0_, ... S9_, SA_, ... */
static void
append_reference(GString *name, unsigned i)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char text[8] = "";

    for (unsigned n = i > 0 ? i - 1 : 0, at = 6; i > 0 && (n > 0 || at == 6); n /= 36)
        text[at--] = digits[n % 36];
    g_string_append_c(name, 'S');
    for (unsigned at = 0; at < 7; at++)
        if (text[at])
            g_string_append_c(name, text[at]);
    g_string_append_c(name, '_');
}

/* Each type is a pair of the previous type, so that the last one has 2^@n parts. */
static void
append_pairs(GString *name, unsigned pair, unsigned n)
{
    g_string_append(name, "1pIiiE");
    for (unsigned i = 0; i < n; i++) {
        append_reference(name, pair);
        g_string_append_c(name, 'I');
        append_reference(name, pair + 1 + i);
        append_reference(name, pair + 1 + i);
        g_string_append_c(name, 'E');
    }
}

/* Returns: the CPU time of this thread */
static gint64
read_cpu_time_us(void)
{
    struct timespec used;

    g_assert_cmpint(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used), ==, 0);
    return used.tv_sec * G_USEC_PER_SEC + used.tv_nsec / 1000;
}

static void
assert_quick(const GString *name, bool may_be_raw)
{
    const gint64 start = read_cpu_time_us();
    g_autofree char *text = demangle((UprofSlice){ name->str, name->len });

    g_assert_cmpint(read_cpu_time_us() - start, <, G_USEC_PER_SEC / 2);
    g_assert_true(text || may_be_raw);
    if (text)
        g_assert_cmpuint(strlen(text), <=, UPROF_DEMANGLE_BYTES_MAX);
}

static void
test_doubling(void)
{
    for (unsigned n = 1; n < 300; n += 7) {
        g_autoptr(GString) printed = g_string_new("_Z1f");
        g_autoptr(GString) walked = g_string_new("_Z1fIJEEvDp1qI");
        append_pairs(printed, 0, n);
        assert_quick(printed, printed->len >= CXX_BYTES_MAX);
        append_pairs(walked, 2, n);
        g_string_append_c(walked, 'E');
        assert_quick(walked, true);
    }
    g_autoptr(GString) printed = g_string_new("_Z1f");
    append_pairs(printed, 0, 2);
    g_autofree char *text = demangle((UprofSlice){ printed->str, printed->len });
    g_assert_cmpstr(text, ==,
                    "f(p<int, int>, p<p<int, int>, p<int, int> >, p<p<p<int, int>, p<int, int> >, "
                    "p<p<int, int>, p<int, int> > >)");
}

/* A conversion to a type that has the next conversion in it. @n: how many. */
static GString *
make_conversions(unsigned n)
{
    GString *name = g_string_new(NULL);

    for (unsigned i = 0; i < n; i++)
        g_string_append(name, "_ZN1AcvT_IL");
    for (unsigned i = 0; i < n; i++)
        g_string_append(name, "EEEv");
    return name;
}

/* Each conversion doubles the time, so the last of these names would take practically for ever. */
static void
test_conversions(void)
{
    for (unsigned n = 1; n < 240; n += 13) {
        g_autoptr(GString) name = make_conversions(n);
        assert_quick(name, true);
    }
}

/* Names that take too long use up the time for C++ names. Other languages have no such limit. */
static void
test_total(void)
{
    static const UprofSlice cxx = { "_Z3foov", 7 }, rust = { "_RNvNtCs1234_7mycrate3foo3bar", 29 };
    g_autoptr(GString) slow = make_conversions(40);
    const gint64 start = read_cpu_time_us();
    UprofDemangler demangler;
    unsigned n = 0;

    uprof_demangler_init(&demangler);
    g_autofree char *before = uprof_demangle(&demangler, cxx);
    g_assert_cmpstr(before, ==, "foo()");
    for (; demangler.left_ns > 0 && n < 100000; n++) {
        g_autofree char *name = uprof_demangle(&demangler, (UprofSlice){ slow->str, slow->len });
        g_assert_null(name);
    }
    g_assert_cmpuint(n, <, 1000);
    g_assert_cmpint(read_cpu_time_us() - start, <, 2 * UPROF_DEMANGLE_TOTAL_MS * 1000);
    g_assert_null(uprof_demangle(&demangler, cxx));
    g_autofree char *other = uprof_demangle(&demangler, rust);
    g_assert_cmpstr(other, ==, "mycrate::foo::bar");
}

/* Names with deep nesting, great length, or references to themselves. */
static void
test_hostile(void)
{
    static const char *const starts[] = { "_Z1f", "_ZN",    "_R",     "_RINvC1a1b",
                                          "_D1a", "_D1aFQ", "camlA__" };
    static const char *const fills[] = { "P",   "PF", "I1aI",  "N1a", "T_",         "B_",
                                         "RNv", "Q",  "1a",    "$",   "A__",        "Qb",
                                         "Dp",  "Sp", "XsrT_", "_",   "9999999999", "\xff\xfe" };

    for (size_t i = 0; i < G_N_ELEMENTS(starts); i++) {
        for (size_t j = 0; j < G_N_ELEMENTS(fills); j++) {
            g_autoptr(GString) name = g_string_new(starts[i]);
            while (name->len < UPROF_DEMANGLE_BYTES_MAX - 10)
                g_string_append(name, fills[j]);
            assert_quick(name, true);
            g_string_append(name, "E");
            assert_quick(name, true);
        }
    }
}

static void
test_limits(void)
{
    g_autoptr(GString) name = g_string_new("_RC4089");

    while (name->len < UPROF_DEMANGLE_BYTES_MAX)
        g_string_append_c(name, 'x');
    g_autofree char *text = demangle((UprofSlice){ name->str, name->len });
    g_assert_nonnull(text);
    g_assert_cmpuint(strlen(text), ==, 4089);
    g_string_append_c(name, 'E');
    g_assert_null(demangle((UprofSlice){ name->str, name->len }));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/demangle/cases", test_cases);
    g_test_add_func("/demangle/doubling", test_doubling);
    g_test_add_func("/demangle/conversions", test_conversions);
    g_test_add_func("/demangle/total", test_total);
    g_test_add_func("/demangle/hostile", test_hostile);
    g_test_add_func("/demangle/limits", test_limits);
    return g_test_run();
}
