/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "uprof/output.h"

enum { STACKS_MAX = 6, FRAMES_MAX = 8 };

typedef struct {
    UprofNames *names;
    UprofProfile *profile;
    UprofRun *run;
} Fixture;

static void
init_fixture(Fixture *fixture, const char *root)
{
    fixture->names = uprof_names_new();
    fixture->run = uprof_run_new();
    fixture->profile = uprof_profile_new(
        fixture->names, uprof_names_intern(fixture->names, (UprofSlice){ root, strlen(root) }),
        false);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_profile_free(fixture->profile);
    uprof_names_free(fixture->names);
    uprof_run_free(fixture->run);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Fixture, clear_fixture)

/* clang-format off */
static const struct {
    const char *name;
    const char *root;
    struct {
        const char *frames[FRAMES_MAX];
        uint64_t weight;
    } stacks[STACKS_MAX];
    const char *folded;
    const char *table;
} cases[] = {
    { "empty", "web-1", { { { 0 } } }, "", "" },
    { "plain", "web-1", { { { "main", "function_1", "work" }, 281 } },
      "web-1;main;function_1;work 281\n",
      "  self   total  function\n 100.0   100.0  work\n   0.0   100.0  function_1\n   0.0   100.0  main\n" },
    /* Like LC_ALL=C sort: complete lines are compared, so that a blank sorts before ';'. */
    { "sorted-lines", "vm", { { { "a", "b" }, 2 }, { { "a" }, 1 }, { { "a-b" }, 3 }, { { "B" }, 4 } },
      "vm;B 4\nvm;a 1\nvm;a-b 3\nvm;a;b 2\n",
      "  self   total  function\n  40.0    40.0  B\n  30.0    30.0  a-b\n  20.0    20.0  b\n  10.0    30.0  a\n" },
    { "hostile-names", "a;b\n", { { { "x;y", "l1\nl2" }, 1 }, { { "# comment", "cpu 12" }, 2 }, { { "", "\x1b[31m" }, 3 }, { { "\xff", "[idle]" }, 4 } },
      "a:b?;[unknown];?[31m 3\na:b?;_ comment;cpu_12 2\na:b?;x:y;l1?l2 1\na:b?;\xef\xbf\xbd;{idle] 4\n",
      "  self   total  function\n  40.0    40.0  {idle]\n  30.0    30.0  ?[31m\n  20.0    20.0  cpu_12\n  10.0    10.0  l1?l2\n"
      "   0.0    40.0  \xef\xbf\xbd\n   0.0    30.0  [unknown]\n   0.0    20.0  _ comment\n   0.0    10.0  x:y\n" },
    { "thirds", "vm", { { { "a" }, 1 }, { { "b" }, 1 }, { { "c" }, 1 } },
      "vm;a 1\nvm;b 1\nvm;c 1\n",
      "  self   total  function\n  33.3    33.3  a\n  33.3    33.3  b\n  33.3    33.3  c\n" },
    { "huge-weight", "vm", { { { "a" }, UINT64_C(18446744073709551) } },
      "vm;a 18446744073709551\n",
      "  self   total  function\n 100.0   100.0  a\n" },
};

/* Names that confuse some reader, or a terminal */
static const char *const hostile[] = {
    "a;b", ";", "a\nb", "a\r", "\n", "12", "a 12", "a 12 13", " 12", "# x", "#", "", " ", "\t",
    "\x1b[31m", "\x7f", "a\xc2\x9b" "31m", "\xff\xfe", "\xe2\x80\xae" "evil", "[unknown]", "[idle]", "a_[k]",
    "{x}", "$(id)", "`id`", "<script>", "&amp;", "%s%n", "..", "a\xe2\x80\xa8" "b", "f(int, char*)",
    "operator<< <char>", "a\xc2\xa0" "5",
};
/* clang-format on */

static void
add_stack(const Fixture *fixture, const char *const *texts, uint64_t weight)
{
    const UprofName *frames[FRAMES_MAX];
    unsigned n = 0;

    for (; n < FRAMES_MAX && texts[n]; n++)
        frames[n] = uprof_names_intern(fixture->names, (UprofSlice){ texts[n], strlen(texts[n]) });
    uprof_profile_add(fixture->profile, frames, n, weight);
}

/* Each line must have the form that flamegraph.pl, speedscope, Perfetto and inferno accept. */
static void
check_lines(const char *folded)
{
    g_auto(GStrv) lines = g_strsplit(folded, "\n", -1);
    const guint n = g_strv_length(lines);

    if (n == 0)
        return;
    g_assert_true(g_utf8_validate(folded, -1, NULL));
    g_assert_cmpstr(lines[n - 1], ==, ""); /* the last line has a line end */
    for (guint i = 0; i + 1 < n; i++) {
        g_assert_true(g_regex_match_simple("^[^;#][^;]*(;[^;]+)+ [0-9]+$", lines[i], 0, 0));
        g_assert_false(g_regex_match_simple(" [0-9]+ [0-9]+$", lines[i], 0, 0));
        for (const char *at = lines[i]; *at; at++)
            g_assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
        if (i > 0)
            g_assert_cmpint(strcmp(lines[i - 1], lines[i]), <, 0);
    }
}

static void
test_golden(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_auto(Fixture) fixture;

    init_fixture(&fixture, cases[i].root);
    for (unsigned j = 0; j < STACKS_MAX && cases[i].stacks[j].weight; j++)
        add_stack(&fixture, cases[i].stacks[j].frames, cases[i].stacks[j].weight);
    GString *folded = uprof_output_render(&uprof_format_folded, fixture.profile, fixture.run);
    GString *again = uprof_output_render(&uprof_format_folded, fixture.profile, fixture.run);
    GString *table = uprof_table_render(fixture.profile, &(UprofTableStyle){ .rows = 15 });
    g_assert_cmpstr(folded->str, ==, again->str);
    check_lines(folded->str);
    g_assert_cmpstr(folded->str, ==, cases[i].folded);
    g_assert_cmpstr(table->str, ==, cases[i].table);
    g_string_free(folded, TRUE);
    g_string_free(again, TRUE);
    g_string_free(table, TRUE);
}

/* Each hostile name is a root, a caller and a leaf once. */
static void
test_hostile(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(hostile); i++) {
        g_auto(Fixture) fixture;
        init_fixture(&fixture, hostile[i]);
        for (size_t j = 0; j < G_N_ELEMENTS(hostile); j++) {
            const char *const frames[] = { hostile[j], "middle", hostile[(i + j) % 7], NULL };
            const char *const leaf[] = { "caller", hostile[j], NULL };
            add_stack(&fixture, frames, 1);
            add_stack(&fixture, leaf, 2);
        }
        GString *folded = uprof_output_render(&uprof_format_folded, fixture.profile, fixture.run);
        check_lines(folded->str);
        g_string_free(folded, TRUE);
    }
}

static void
test_long_name(void)
{
    g_auto(Fixture) fixture;
    g_autofree char *name = g_strnfill(5000, 'x');
    const char *const frames[] = { name, NULL };

    init_fixture(&fixture, name);
    add_stack(&fixture, frames, 1);
    GString *folded = uprof_output_render(&uprof_format_folded, fixture.profile, fixture.run);
    check_lines(folded->str);
    g_assert_cmpuint(folded->len, ==, 2 * 1024 + strlen("; 1\n"));
    g_string_free(folded, TRUE);
}

static void
test_table_rows(void)
{
    g_auto(Fixture) fixture;

    init_fixture(&fixture, "vm");
    add_stack(&fixture, (const char *const[]){ "a", NULL }, 3);
    add_stack(&fixture, (const char *const[]){ "b", NULL }, 2);
    add_stack(&fixture, (const char *const[]){ "c", NULL }, 1);
    GString *table = uprof_table_render(fixture.profile, &(UprofTableStyle){ .rows = 2 });
    g_assert_cmpstr(table->str, ==,
                    "  self   total  function\n  50.0    50.0  a\n  33.3    33.3  b\n"
                    "1 more functions; -n 3 shows them all\n");
    g_string_free(table, TRUE);
}

static void
test_formats(void)
{
    /* clang-format off */
    static const struct {
        const char *path;
        const char *name; /* NULL if no format matches */
    } paths[] = {
        { "x.folded", "folded" }, { "a.b/x.folded", "folded" }, { ".folded", "folded" },
        { "x.meta.json", "meta" }, { "x.capture", "capture" },
        { "x.json", "speedscope" }, { "x.folded.gz", "folded.gz" }, { "x.pb.gz", "pprof" },
        { "x.svg", "svg" }, { "x.perf", "perf" }, { "x.gz", NULL }, { "folded", NULL }, { "x.folded ", NULL }, { "x", NULL }, { "", NULL },
        { "x.FOLDED", NULL }, { "x.folded/", NULL },
    };
    /* clang-format on */

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        const UprofFormat *format = uprof_format_by_path(paths[i].path);
        g_assert_cmpstr(format ? format->name : NULL, ==, paths[i].name);
    }
    g_autofree char *names = uprof_format_names();
    g_auto(GStrv) words = g_strsplit(names, " ", -1);
    for (char **word = words; *word; word++) {
        const UprofFormat *format = uprof_format_by_name(*word);
        g_assert_nonnull(format);
        g_assert_cmpint(format->write == NULL, ==, format->is_capture);
        for (const char *const *suffix = format->suffixes; *suffix; suffix++) {
            g_autofree char *path = g_strconcat("name", *suffix, NULL);
            g_assert_true(uprof_format_by_path(path) == format);
        }
    }
    g_assert_null(uprof_format_by_name("nothing"));
    g_assert_null(uprof_format_by_name(""));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/folded/golden/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_golden);
    }
    g_test_add_func("/folded/hostile", test_hostile);
    g_test_add_func("/folded/long-name", test_long_name);
    g_test_add_func("/folded/table-rows", test_table_rows);
    g_test_add_func("/folded/formats", test_formats);
    return g_test_run();
}
