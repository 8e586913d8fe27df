/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/read-all.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEN = 200 * 1000 };

static int
open_file(void)
{
    g_autofree char *bytes = g_malloc(LEN);
    FILE *file = tmpfile();

    g_assert_nonnull(file);
    for (size_t i = 0; i < LEN; i++)
        bytes[i] = (char)(i * 7 / 3);
    g_assert_cmpuint(fwrite(bytes, 1, LEN, file), ==, LEN);
    g_assert_cmpint(fflush(file), ==, 0);
    const int fd = dup(fileno(file));
    fclose(file);
    g_assert_cmpint(lseek(fd, 0, SEEK_SET), ==, 0);
    return fd;
}

static void
test_limits(void)
{
    static const size_t limits[] = { 0, 1, 4096, LEN - 1, LEN, LEN + 1, SIZE_MAX };

    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        g_autoptr(GByteArray) bytes = g_byte_array_new();
        const int fd = open_file();

        g_assert_true(uprof_read_all(fd, limits[i], bytes));
        g_assert_cmpuint(bytes->len, ==, MIN(limits[i], LEN));
        for (guint j = 0; j < bytes->len; j++)
            g_assert_cmpint((char)bytes->data[j], ==, (char)(j * (size_t)7 / 3));
        close(fd);
    }
}

static void
test_continues(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    int ends[2];

    g_assert_cmpint(pipe(ends), ==, 0);
    g_assert_cmpint(write(ends[1], "abcdef", 6), ==, 6);
    close(ends[1]);
    g_assert_true(uprof_read_all(ends[0], 2, bytes));
    g_assert_cmpmem(bytes->data, bytes->len, "ab", 2);
    g_assert_true(uprof_read_all(ends[0], 100, bytes));
    g_assert_cmpmem(bytes->data, bytes->len, "abcdef", 6);
    close(ends[0]);
}

static void
test_fails(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();

    g_assert_false(uprof_read_all(-1, 1, bytes));
    g_assert_cmpint(errno, ==, EBADF);
    g_assert_cmpuint(bytes->len, ==, 0);
}

/* A part of a file, its end, and a descriptor that cannot be read. */
static void
test_at(void)
{
    g_autofree char *path = NULL;
    const int fd = g_file_open_tmp("uprof-read-at-XXXXXX", &path, NULL);
    char bytes[8] = "";

    g_assert_cmpint(write(fd, "abcdef", 6), ==, 6);
    g_assert_cmpint(uprof_read_at(fd, 2, bytes, 3), ==, 3);
    g_assert_cmpstr(bytes, ==, "cde");
    g_assert_cmpint(uprof_read_at(fd, 4, bytes, 8), ==, 2);
    g_assert_cmpint(uprof_read_at(fd, 100, bytes, 8), ==, 0);
    g_assert_cmpint(uprof_read_at(-1, 0, bytes, 8), ==, -1);
    close(fd);
    g_assert_cmpint(unlink(path), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/read-all/limits", test_limits);
    g_test_add_func("/read-all/continues", test_continues);
    g_test_add_func("/read-all/fails", test_fails);
    g_test_add_func("/read-all/at", test_at);
    return g_test_run();
}
