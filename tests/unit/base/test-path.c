/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/base/path-priv.h"

#include <unistd.h>

static void
test_absolute(void)
{
    g_autofree char *folder = g_dir_make_tmp("uprof-path-XXXXXX", NULL);
    g_autofree char *below = g_build_filename(folder, "app", NULL);

    g_assert_cmpint(chdir(folder), ==, 0);
    g_autofree char *before = uprof_path_absolute("./x/../app");
    g_assert_cmpstr(before, ==, below);
    uprof_path_remember_folder();
    g_assert_cmpint(chdir("/"), ==, 0);
    g_autofree char *relative = uprof_path_absolute("app");
    g_assert_cmpstr(relative, ==, below);
    g_autofree char *absolute = uprof_path_absolute("/srv/../app");
    g_assert_cmpstr(absolute, ==, "/app");
    g_assert_cmpint(rmdir(folder), ==, 0);
}

static void
test_of_system(void)
{
    static const char *const right[] = { "/usr/lib/x86_64-linux-gnu/libc.so.6", "/bin/sh", "/lib/x",
                                         "/usr/..x" };
    static const char *const wrong[] = {
        "",         "usr/bin/x", "/usr",       "/etc/shadow", "/usr/../etc/shadow",
        "/usr/./x", "/usr//x",   "/opt/usr/x", "/usr/x/",     "//usr/x",
        "/libx/y"
    };

    for (size_t i = 0; i < G_N_ELEMENTS(right); i++)
        g_assert_true(uprof_path_is_of_system(right[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(wrong); i++)
        g_assert_false(uprof_path_is_of_system(wrong[i]));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/path/absolute", test_absolute);
    g_test_add_func("/path/of-system", test_of_system);
    return g_test_run();
}
