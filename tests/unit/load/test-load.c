/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/load.h"

#include <string.h>
#include <unistd.h>

/* A folder for files, and the warnings that a load sends. */
typedef struct {
    char *folder;
    GString *warnings;
    UprofNotices notices;
    UprofLoadSettings settings;
    UprofNames *names;
    UprofLoad *load;
} Fixture;

static void
note_warning(UprofNoticeKind kind, const char *text, void *data)
{
    g_assert_cmpint(kind, ==, UPROF_NOTICE_WARNING);
    g_string_append_printf(data, "%s\n", text);
}

static void
init_fixture(Fixture *fixture)
{
    fixture->folder = g_dir_make_tmp("uprof-load-XXXXXX", NULL);
    fixture->warnings = g_string_new(NULL);
    fixture->notices = (UprofNotices){ note_warning, fixture->warnings };
    fixture->settings = (UprofLoadSettings){ .notices = &fixture->notices };
    fixture->names = uprof_names_new();
    fixture->load = uprof_load_new(fixture->names, &fixture->settings);
}

static void
clear_fixture(Fixture *fixture)
{
    uprof_load_free(fixture->load);
    uprof_names_free(fixture->names);
    g_string_free(fixture->warnings, TRUE);
    g_assert_cmpint(rmdir(fixture->folder), ==, 0);
    g_free(fixture->folder);
}

static UprofErrorCode
add_text(Fixture *fixture, const char *text)
{
    g_autofree char *path = g_build_filename(fixture->folder, "a.folded", NULL);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    const UprofErrorCode code = uprof_load_add_file(fixture->load, path);
    unlink(path);
    return code;
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *warning;
} bad_files[] = {
    { "empty",   "",                       "'*/a.folded' is empty, as if nothing ran\n" },
    { "svg",     "<svg xmlns='x'>\n",      "'*/a.folded' is a picture; profiles are read from *\n" },
    { "json",    "{\n",                    "'*/a.folded' is JSON *\n" },
    { "capture", "UPROFCAP",               "*" },
    { "no-count", "web-1;main\n",          "*a.folded*line 1*\n" },
};
/* clang-format on */

static void
test_bad_file(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    const UprofSymbolSettings symbols = { .files = g_ptr_array_new() };
    Fixture fixture;

    init_fixture(&fixture);
    fixture.settings.replay.symbols = &symbols;
    fixture.settings.replay.notices = &fixture.notices;
    g_assert_cmpint(add_text(&fixture, bad_files[i].text), ==, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_pattern_match_simple(bad_files[i].warning, fixture.warnings->str));
    g_assert_true(fixture.load->is_partial);
    g_assert_cmpuint(fixture.load->n_files, ==, 0);
    clear_fixture(&fixture);
    g_ptr_array_unref((GPtrArray *)symbols.files);
}

static void
test_sum(void)
{
    Fixture fixture;

    init_fixture(&fixture);
    g_assert_cmpint(add_text(&fixture, "web-1;main;a 1\nweb-1;[idle] 2\n"), ==, UPROF_ERROR_NONE);
    g_assert_cmpint(add_text(&fixture, "web-1;main;a 4\n"), ==, UPROF_ERROR_NONE);
    g_assert_true(uprof_load_finish(fixture.load));
    g_assert_cmpuint(fixture.load->n_files, ==, 2);
    g_assert_cmpuint(fixture.load->run->samples, ==, 7);
    g_assert_cmpuint(fixture.load->run->idles, ==, 2);
    g_assert_cmpstr(fixture.load->run->domain, ==, "web-1");
    g_assert_cmpuint(uprof_profile_n_stacks(fixture.load->profile), ==, 2);
    g_assert_cmpstr(fixture.warnings->str, ==, "");
    clear_fixture(&fixture);
}

/* The stacks before a bad line count, but nothing is written from them. */
static void
test_partial(void)
{
    g_autoptr(GError) error = NULL;
    UprofLoadTarget target;
    Fixture fixture;

    init_fixture(&fixture);
    g_assert_cmpint(add_text(&fixture, "web-1;main 5\nbad\n"), ==, UPROF_ERROR_BAD_DATA);
    g_assert_cmpuint(fixture.load->run->samples, ==, 5);
    uprof_load_target_init(&target, "-");
    g_assert_true(uprof_load_check_output(fixture.load, &target, &error));
    g_assert_no_error(error);
    uprof_load_target_init(&target, "/tmp/none.svg");
    g_assert_false(uprof_load_check_output(fixture.load, &target, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_FAILED);
    g_assert_cmpstr(error->message, ==,
                    "'/tmp/none.svg' is not written: not all of the input could be read");
    clear_fixture(&fixture);
}

static void
test_drop_idle(void)
{
    Fixture fixture;

    init_fixture(&fixture);
    fixture.settings.drop_idle = true;
    g_assert_cmpint(add_text(&fixture, "web-1;main 5\nweb-1;[idle] 3\n"), ==, UPROF_ERROR_NONE);
    g_assert_true(uprof_load_finish(fixture.load));
    g_assert_cmpuint(uprof_profile_total(fixture.load->profile), ==, 5);
    g_assert_cmpuint(fixture.load->run->samples, ==, 8);
    clear_fixture(&fixture);
}

static void
test_include(void)
{
    g_autoptr(GRegex) include = g_regex_new("^b$", 0, 0, NULL);
    Fixture fixture;

    init_fixture(&fixture);
    fixture.settings.include = include;
    g_assert_cmpint(add_text(&fixture, "web-1;a 5\nweb-1;b 3\n"), ==, UPROF_ERROR_NONE);
    g_assert_true(uprof_load_finish(fixture.load));
    g_assert_cmpuint(fixture.load->run->samples, ==, 3);
    g_assert_cmpuint(fixture.load->run->unfiltered, ==, 8);
    clear_fixture(&fixture);
}

static void
test_stored_text(void)
{
    static const char text[] = "old;main 2\n";
    g_autoptr(UprofRun) facts = uprof_run_new();
    Fixture fixture;

    init_fixture(&fixture);
    facts->samples = 9; /* with idle vCPUs, which are no stacks */
    g_assert_cmpint(uprof_load_add_text(fixture.load, (UprofSlice){ text, strlen(text) }, "new",
                                        facts, uprof_run_merge),
                    ==, UPROF_ERROR_NONE);
    g_assert_true(uprof_load_finish(fixture.load));
    g_assert_cmpuint(fixture.load->run->samples, ==, 9);
    g_assert_cmpstr(uprof_name_text(uprof_profile_root(fixture.load->profile)), ==, "new");
    clear_fixture(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(bad_files); i++) {
        g_autofree char *path = g_strdup_printf("/load/bad-file/%s", bad_files[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_bad_file);
    }
    g_test_add_func("/load/sum", test_sum);
    g_test_add_func("/load/partial", test_partial);
    g_test_add_func("/load/drop-idle", test_drop_idle);
    g_test_add_func("/load/include", test_include);
    g_test_add_func("/load/stored-text", test_stored_text);
    return g_test_run();
}
