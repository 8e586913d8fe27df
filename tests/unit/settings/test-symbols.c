/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "uprof/error.h"
#include "uprof/settings.h"

/* The allowed folders are "in" and "in2" of a test tree; %s is the path of the tree. */
/* clang-format off */
static const struct {
    const char *name;
    const char *path;  /* below the tree */
    const char *error; /* NULL if the file may be used */
} cases[] = {
    { "file",          "/in/app.dbg",        NULL },
    { "deeper",        "/in/sub/app.dbg",    NULL },
    { "slashes",       "/in//sub//app.dbg",  NULL },
    { "up-and-down",   "/in/sub/../app.dbg", NULL },
    { "other-folder",  "/in2/app.dbg",       NULL },
    { "missing",       "/in/none",           "symbols '*/in/none': there is no such file" },
    { "folder",        "/in/sub",            "symbols '*/in/sub': it is not a regular file" },
    { "fifo",          "/in/fifo",           "symbols '*/in/fifo': it is not a regular file" },
    { "up",            "/in/../secret",      "symbols '*/in/../secret': it leads out of its folder" },
    { "link",          "/in/link",           "symbols '*/in/link': there is a link in its path" },
    { "link-inside",   "/in/inner",          "symbols '*/in/inner': there is a link in its path" },
    { "linked-folder", "/in/out/secret",     "symbols '*/in/out/secret': there is a link in its path" },
    { "outside",       "/secret",            "symbols '*/secret' are outside the folders that <symbols> allows *" },
    { "like-folder",   "/in-not/app.dbg",    "symbols '*' are outside the folders that <symbols> allows *" },
    { "itself",        "/in/",               "symbols '*' are outside the folders that <symbols> allows *" },
    { "hostile",       "/in/\x1b[31m%n",     "symbols '*/in/?[31m%n': there is no such file" },
};
/* clang-format on */

static char *tree;

static char *
in_tree(const char *path)
{
    return g_strconcat(tree, path, NULL);
}

static void
make_tree(void)
{
    static const char *const folders[] = { "/in", "/in/sub", "/in2", "/in-not" };
    static const char *const files[] = { "/in/app.dbg", "/in/sub/app.dbg", "/in2/app.dbg",
                                         "/in-not/app.dbg", "/secret" };
    static const char *const links[][2] = { { "../secret", "/in/link" },
                                            { "app.dbg", "/in/inner" },
                                            { "..", "/in/out" } };

    tree = g_dir_make_tmp("uprof-symbols-XXXXXX", NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(folders); i++) {
        g_autofree char *path = in_tree(folders[i]);
        g_assert_cmpint(g_mkdir(path, 0700), ==, 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = in_tree(files[i]);
        g_assert_true(g_file_set_contents(path, "x", 1, NULL));
    }
    for (size_t i = 0; i < G_N_ELEMENTS(links); i++) {
        g_autofree char *path = in_tree(links[i][1]);
        g_assert_cmpint(symlink(links[i][0], path), ==, 0);
    }
    g_autofree char *fifo = in_tree("/in/fifo");
    g_assert_cmpint(mkfifo(fifo, 0600), ==, 0);
}

static void
remove_tree(void)
{
    static const char *const paths[] = { "/in/app.dbg",  "/in/sub/app.dbg",
                                         "/in2/app.dbg", "/in-not/app.dbg",
                                         "/secret",      "/in/link",
                                         "/in/inner",    "/in/out",
                                         "/in/fifo",     "/in/sub",
                                         "/in",          "/in2",
                                         "/in-not",      "" };

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *path = in_tree(paths[i]);
        g_assert_cmpint(g_remove(path), ==, 0);
    }
    g_free(tree);
}

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(UprofConfig) config = uprof_config_new();
    g_autofree char *path = in_tree(cases[i].path);
    g_autoptr(GError) error = NULL;

    g_ptr_array_add(config->symbol_folders, in_tree("/in"));
    g_ptr_array_add(config->symbol_folders, in_tree("/in2/"));
    const bool ok = uprof_settings_check_symbols(config, path, &error);
    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_true(ok);
        return;
    }
    const bool is_missing = g_str_has_suffix(cases[i].error, ": there is no such file");
    const int code = is_missing ? UPROF_ERROR_NO_FILE : UPROF_ERROR_BAD_DATA;
    g_assert_false(ok);
    g_assert_error(error, UPROF_ERROR, code);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
}

/* The checked file is the opened file, even if the path changes later. */
static void
test_swapped(void)
{
    g_autoptr(UprofConfig) config = uprof_config_new();
    g_autofree char *path = in_tree("/in/sub/app.dbg");
    g_autofree char *secret = in_tree("/secret");
    g_autoptr(GError) error = NULL;
    char bytes[8] = "";

    g_assert_true(g_file_set_contents(secret, "secret", -1, NULL));
    g_ptr_array_add(config->symbol_folders, in_tree("/in"));
    const int fd = uprof_settings_open_symbols(config->symbol_folders, path, &error);
    g_assert_no_error(error);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(symlink(secret, path), ==, 0);
    g_assert_cmpint(read(fd, bytes, sizeof(bytes)), ==, 1);
    g_assert_cmpstr(bytes, ==, "x");
    close(fd);
    g_assert_cmpint(uprof_settings_open_symbols(config->symbol_folders, path, &error), ==, -1);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    make_tree();
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/symbols/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/symbols/swapped", test_swapped);
    const int result = g_test_run();
    remove_tree();
    return result;
}
