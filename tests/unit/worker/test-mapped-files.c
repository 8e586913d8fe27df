/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/worker/mapped-files-priv.h"

#include <string.h>

#define ID "00112233445566778899aabbccddeeff00112233"

/* clang-format off */
static const struct {
    const char *name;
    const char *reply;
    size_t len;
    int n; /* files; -1: the reply is refused */
} cases[] = {
#define REPLY(text) text, sizeof(text) - 1
    { "none",          REPLY(""),                                     0 },
    { "one",           REPLY(ID "\0/usr/bin/x\0"),                    1 },
    { "two",           REPLY(ID "\0/usr/bin/x\0" ID "\0/a b;\n\0"),  2 },
    { "short-id",      REPLY("0011223344556677\0/x\0"),               1 },
    { "no-path",       REPLY(ID "\0"),                                -1 },
    { "no-end",        REPLY(ID "\0/usr/bin/x"),                      -1 },
    { "id-alone",      REPLY(ID),                                     -1 },
    { "no-id",         REPLY("\0/usr/bin/x\0"),                       -1 },
    { "id-as-path",    REPLY("../../etc/passwd\0/x\0"),               -1 },
    { "id-upper",      REPLY("0011223344556677AA\0/x\0"),             -1 },
    { "id-odd",        REPLY("00112233445566778\0/x\0"),              -1 },
    { "id-too-short",  REPLY("00112233445566\0/x\0"),                 -1 },
    { "relative",      REPLY(ID "\0usr/bin/x\0"),                     -1 },
    { "empty-path",    REPLY(ID "\0\0"),                              -1 },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GPtrArray) files =
        uprof_mapped_files_read((UprofSlice){ cases[i].reply, cases[i].len });

    g_assert_cmpint(files ? (int)files->len : -1, ==, cases[i].n);
    if (!files || files->len == 0)
        return;
    const UprofMappedFile *first = g_ptr_array_index(files, 0);
    g_assert_cmpstr(first->build_id, ==, cases[i].reply);
    g_assert_cmpstr(first->path, ==, cases[i].reply + strlen(cases[i].reply) + 1);
}

/* More files and longer names than a worker may send. */
static void
test_limits(void)
{
    g_autoptr(GString) many = g_string_new(NULL), longer = g_string_new(NULL);

    for (unsigned i = 0; i <= UPROF_MAPPED_FILES_MAX; i++) {
        g_string_append_len(many, ID "\0/x", sizeof(ID "\0/x"));
        g_autoptr(GPtrArray) files =
            i + 1 == UPROF_MAPPED_FILES_MAX
                ? uprof_mapped_files_read((UprofSlice){ many->str, many->len })
                : NULL;
        g_assert_true(i + 1 != UPROF_MAPPED_FILES_MAX || files);
    }
    g_assert_null(uprof_mapped_files_read((UprofSlice){ many->str, many->len }));
    g_string_append_len(longer, ID "\0/", sizeof(ID "\0/") - 1);
    for (unsigned i = 0; i < 4096; i++)
        g_string_append_c(longer, 'x');
    g_assert_null(uprof_mapped_files_read((UprofSlice){ longer->str, longer->len + 1 }));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/mapped-files/", cases[i].name, NULL);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/mapped-files/limits", test_limits);
    return g_test_run();
}
