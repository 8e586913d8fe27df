/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory = { u64 length of the list, list }
 */
#include "kept-file-priv.h"

#include "uprof/owner-check.h"
#include "uprof/path.h"
#include "uprof/rule-list.h"
#include "uprof/symbol-cache.h"

#include "sealed-memory-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMORY_BYTES = sizeof(uint64_t) + UPROF_RULE_LIST_BYTES_MAX,
    OLD_S = 30 * 24 * 3600, /* the age of files that are deleted */
    DOMAINS_MAX = 100000,
};

static const char file_name[] = "rules";
static const char new_name[] = ".rules-new";

/* ---- The program ---- */

/* Returns: (transfer full) (nullable): the folder of the domain */
static char *
find_folder(const char *uuid)
{
    const char *cache = uprof_symbol_cache_used();

    return cache ? uprof_path_of_domain_files(cache, uuid) : NULL;
}

/* Copies @len bytes, and notes their number in front. After a failure the number is 0. */
static void
copy_into_memory(int memory, int file, uint64_t len)
{
    g_autofree uint8_t *bytes = g_malloc(len);

    if (pread(file, bytes, len, 0) != (ssize_t)len ||
        pwrite(memory, bytes, len, sizeof(len)) != (ssize_t)len ||
        pwrite(memory, &len, sizeof(len), 0) != sizeof(len))
        uprof_kept_file_clear(memory);
}

/* Returns: a descriptor of a folder that others cannot write to; -1 if there is none */
static int
open_folder(const char *folder)
{
    struct stat info;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && fstat(fd, &info) == 0 &&
        uprof_owner_is_safe(&info, UPROF_OWNER_USER_OR_ROOT, geteuid()))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void
load_file(int memory, const char *path)
{
    const int folder = open_folder(path);
    const int file = folder >= 0
                         ? openat(folder, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
                         : -1;
    struct stat info;

    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        info.st_size <= UPROF_RULE_LIST_BYTES_MAX)
        copy_into_memory(memory, file, (uint64_t)info.st_size);
    if (file >= 0)
        close(file);
    if (folder >= 0)
        close(folder);
}

int
uprof_kept_file_open(const char *uuid)
{
    g_autofree char *folder = find_folder(uuid);
    const int memory = folder ? uprof_sealed_memory_new(file_name, MEMORY_BYTES) : -1;

    if (memory >= 0)
        load_file(memory, folder);
    return memory;
}

/* A run that has died may have left its file. Another run of the domain does not write now, because
 * the domain is locked. */
static bool
replace_file(int folder, const uint8_t *bytes, size_t len)
{
    unlinkat(folder, new_name, 0);
    const int file = openat(folder, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    const bool is_written = write(file, bytes, len) == (ssize_t)len;
    if (close(file) == 0 && is_written && renameat(folder, new_name, folder, file_name) == 0)
        return true;
    unlinkat(folder, new_name, 0);
    return false;
}

/* Domains come and go. @domains: the folder of all domains */
static void
remove_old(const char *domains)
{
    g_autoptr(GDir) dir = g_dir_open(domains, 0, NULL);
    const char *name;

    for (unsigned i = 0; dir && i < DOMAINS_MAX && (name = g_dir_read_name(dir)); i++) {
        g_autofree char *folder = g_build_filename(domains, name, NULL);
        g_autofree char *path = g_build_filename(folder, file_name, NULL);
        struct stat info;
        if (lstat(path, &info) == 0 && time(NULL) - info.st_mtime > OLD_S && unlink(path) == 0)
            rmdir(folder); /* it may have files out of the domain's disks */
    }
}

void
uprof_kept_file_save(int fd, const char *uuid)
{
    g_autofree char *path = find_folder(uuid);
    g_autoptr(GByteArray) list = path ? uprof_kept_file_read(fd) : NULL;
    g_autofree char *domains = path ? g_path_get_dirname(path) : NULL;

    if (!list || !uprof_symbol_cache_make(uprof_symbol_cache_used(), NULL) ||
        (g_mkdir(domains, 0700) != 0 && errno != EEXIST))
        return;
    const bool is_new = g_mkdir(path, 0700) == 0;
    const int folder = open_folder(path);
    if (folder < 0)
        return;
    if (replace_file(folder, list->data, list->len) && is_new)
        remove_old(domains);
    close(folder);
}

void
uprof_kept_file_forget(const char *uuid)
{
    g_autofree char *path = find_folder(uuid);
    const int folder = path ? open_folder(path) : -1;

    if (folder < 0)
        return;
    unlinkat(folder, file_name, 0);
    close(folder);
}

/* ---- Both ---- */

GByteArray *
uprof_kept_file_read(int fd)
{
    uint64_t len;

    if (pread(fd, &len, sizeof(len), 0) != sizeof(len) || len == 0 ||
        len > UPROF_RULE_LIST_BYTES_MAX)
        return NULL;
    GByteArray *list = g_byte_array_sized_new((guint)len);
    g_byte_array_set_size(list, (guint)len);
    if (pread(fd, list->data, len, sizeof(len)) == (ssize_t)len)
        return list;
    g_byte_array_unref(list);
    return NULL;
}

/* ---- The worker ---- */

void
uprof_kept_file_clear(int fd)
{
    const uint64_t none = 0;
    const ssize_t n = pwrite(fd, &none, sizeof(none), 0);

    (void)n; /* the old list is then saved again */
}

void
uprof_kept_file_write(int fd, const GByteArray *list)
{
    const uint64_t len = list->len;

    uprof_kept_file_clear(fd);
    if (pwrite(fd, list->data, len, sizeof(len)) == (ssize_t)len &&
        pwrite(fd, &len, sizeof(len), 0) != sizeof(len))
        uprof_kept_file_clear(fd);
}
