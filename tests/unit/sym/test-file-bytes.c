/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/sym/file-bytes-priv.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uprof/error.h"

static const char elf_start[] = { 0x7f, 'E', 'L', 'F', 0 };

/* A file with @text at @at; before, it has the start of an ELF file, and nothing else */
static char *
make_file(const char *text, off_t at, off_t len)
{
    char *path = NULL;
    const int fd = g_file_open_tmp("uprof-file-bytes-XXXXXX", &path, NULL);

    if (at > 0)
        g_assert_cmpint(pwrite(fd, elf_start, strlen(elf_start), 0), ==, strlen(elf_start));
    g_assert_cmpint(pwrite(fd, text, strlen(text), at), ==, strlen(text));
    g_assert_cmpint(ftruncate(fd, len), ==, 0);
    close(fd);
    return path;
}

/* Returns: MiB of memory that the process has touched */
static uint64_t
read_resident_mib(void)
{
    g_autofree char *text = NULL;
    char *at;

    g_assert_true(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
    g_ascii_strtoull(text, &at, 10);
    return g_ascii_strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) >> 20;
}

static void
test_read(void)
{
    g_autofree char *path = make_file("abc", 0, 3);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofFileBytes) file = uprof_file_bytes_read(path, "name", NULL, UINT64_MAX, &error);

    g_assert_no_error(error);
    g_assert_cmpmem(file->bytes, file->len, "abc", 3);
    g_assert_cmpuint(file->n_used, ==, 3);
    g_assert_cmpstr(file->path, ==, path);
    g_assert_cmpint(unlink(path), ==, 0);
}

/* A file of 64 MiB with only a few bytes on the disk is read, including its zeros. */
static void
test_sparse(void)
{
    enum { MIB = 64 };
    const off_t len = (off_t)MIB << 20, middle = len / 2;
    g_autofree char *path = make_file("abc", middle, len);
    const uint64_t before_mib = read_resident_mib();
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofFileBytes) file = uprof_file_bytes_read(path, "name", NULL, UINT64_MAX, &error);
    uint8_t sum = 0;

    g_assert_no_error(error);
    g_assert_cmpuint(file->len, ==, len);
    g_assert_cmpuint(file->n_used, >=, 3);
    g_assert_cmpuint(file->n_used, <, 1 << 20);
    /* before the next loop: not every kernel shares one page of zeros among all reads */
    g_assert_cmpuint(read_resident_mib() - before_mib, <, MIB / 8);
    for (size_t i = 4096; i < file->len; i += 4096) /* behind the start of an ELF file */
        sum |= file->bytes[i];
    g_assert_cmpuint(sum, ==, 'a');
    g_assert_cmpmem(file->bytes + middle, 4, "abc", 4);
    g_assert_cmpint(unlink(path), ==, 0);
}

/* Every parser would read a gigabyte of zeros. */
static void
test_large_hole(void)
{
    g_autofree char *path = make_file(elf_start, 0, (off_t)1 << 30);
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_file_bytes_read(path, "name", NULL, UINT64_MAX, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(error->message, ==,
                    "'name' has 1023 MiB of holes: symbol files have up to 64 MiB");
    g_assert_cmpint(unlink(path), ==, 0);
}

/* Returns: how many bytes this process has read from files */
static uint64_t
count_read_bytes(void)
{
    g_autofree char *text = NULL;

    g_assert_true(g_file_get_contents("/proc/self/io", &text, NULL, NULL));
    g_assert_true(g_str_has_prefix(text, "rchar: "));
    return g_ascii_strtoull(text + strlen("rchar: "), NULL, 10);
}

/* A file is not read if it needs more than the memory that is left for symbols. */
static void
test_no_room(void)
{
    enum { KIB = 512 };
    g_autofree char *text = g_strnfill(KIB * 1024, 'x');
    g_autofree char *path = make_file(text, 0, KIB * 1024);
    g_autoptr(GError) error = NULL;

    const uint64_t before = count_read_bytes();
    for (unsigned room = 0; room < KIB * 1024; room += 64 * 1024 - 1) {
        g_assert_null(uprof_file_bytes_read(path, "name", NULL, room, &error));
        g_assert_true(
            g_pattern_match_simple("'name' needs more than the * MiB of memory *", error->message));
        g_clear_error(&error);
    }
    g_assert_cmpuint(count_read_bytes() - before, <, KIB * 1024);
    g_autoptr(UprofFileBytes) file = uprof_file_bytes_read(path, "name", NULL, KIB * 1024, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(file->n_used, ==, KIB * 1024);
    g_assert_cmpint(unlink(path), ==, 0);
}

/* A large file that is neither an ELF file nor text is not read. */
static void
test_other_kind(void)
{
    enum { MIB = 4 };
    g_autofree char *path = make_file("MZ", 0, MIB << 20);
    g_autoptr(GError) error = NULL;
    const uint64_t before = count_read_bytes();

    g_assert_null(uprof_file_bytes_read(path, "name", NULL, UINT64_MAX, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_true(g_str_has_prefix(error->message, "'name' is neither an ELF file nor text "));
    g_assert_cmpuint(count_read_bytes() - before, <, 64 * 1024);
    g_assert_cmpint(unlink(path), ==, 0);
}

static void
test_empty(void)
{
    g_autofree char *path = make_file("", 0, 0);
    g_autoptr(GError) error = NULL;

    g_assert_null(uprof_file_bytes_read(path, "name", NULL, UINT64_MAX, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_assert_cmpint(unlink(path), ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/file-bytes/read", test_read);
    g_test_add_func("/file-bytes/sparse", test_sparse);
    g_test_add_func("/file-bytes/large-hole", test_large_hole);
    g_test_add_func("/file-bytes/no-room", test_no_room);
    g_test_add_func("/file-bytes/other-kind", test_other_kind);
    g_test_add_func("/file-bytes/empty", test_empty);
    return g_test_run();
}
