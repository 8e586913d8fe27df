/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory = { u64 length of the list, list }
 */
#include "kept-file-priv.h"

#include "uprof/owner-check.h"
#include "uprof/path.h"
#include "uprof/regular-file.h"
#include "uprof/rule-list.h"
#include "uprof/symbol-cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    MEMORY_BYTES = sizeof(uint64_t) + UPROF_RULE_LIST_BYTES_MAX,
    LEFT_BEHIND_S = 60, /* the age from which a new file belongs to a run that died */
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

/* Copies @len bytes, and notes their number in front. Returns: false with errno */
static bool
copy_into_memory(int memory, int file, uint64_t len)
{
    g_autofree uint8_t *bytes = g_malloc(len);

    return pread(file, bytes, len, 0) == (ssize_t)len &&
           pwrite(memory, bytes, len, sizeof(len)) == (ssize_t)len &&
           pwrite(memory, &len, sizeof(len), 0) == sizeof(len);
}

static void
load_file(int memory, const char *folder)
{
    const int file = uprof_regular_file_open_below(folder, file_name, UPROF_FILE_NO_LINKS);
    struct stat info;

    if (file < 0)
        return;
    if (fstat(file, &info) == 0 && info.st_size > 0 && info.st_size <= UPROF_RULE_LIST_BYTES_MAX)
        copy_into_memory(memory, file, (uint64_t)info.st_size);
    close(file);
}

int
uprof_kept_file_open(const char *uuid)
{
    g_autofree char *folder = find_folder(uuid);
    const int memory = folder ? memfd_create(file_name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;

    if (memory < 0)
        return -1;
    /* a worker must not be able to make it larger */
    if (ftruncate(memory, MEMORY_BYTES) != 0 ||
        fcntl(memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0) {
        close(memory);
        return -1;
    }
    load_file(memory, folder);
    return memory;
}

/* Returns: a descriptor of the folder, which only its owner may read; -1 if it cannot be used */
static int
open_folder(const char *folder)
{
    struct stat info;

    if (g_mkdir_with_parents(folder, 0700) != 0)
        return -1;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &info) == 0 &&
        uprof_owner_is_safe(&info, UPROF_OWNER_USER_OR_ROOT, geteuid()))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Another run of the domain may write its file now. Or it has died while it did so. */
static void
remove_left_behind(int folder)
{
    struct stat info;

    if (fstatat(folder, new_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
        time(NULL) - info.st_mtime > LEFT_BEHIND_S)
        unlinkat(folder, new_name, 0);
}

static void
replace_file(int folder, const uint8_t *bytes, size_t len)
{
    const int file = openat(folder, new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (file < 0) {
        remove_left_behind(folder);
        return;
    }
    const bool is_written = write(file, bytes, len) == (ssize_t)len;
    if (close(file) != 0 || !is_written || renameat(folder, new_name, folder, file_name) != 0)
        unlinkat(folder, new_name, 0);
}

void
uprof_kept_file_save(int fd, const char *uuid)
{
    g_autofree char *path = find_folder(uuid);
    g_autoptr(GByteArray) list = path ? uprof_kept_file_read(fd) : NULL;
    const int folder = list ? open_folder(path) : -1;

    if (folder < 0)
        return;
    replace_file(folder, list->data, list->len);
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

/* The length is 0 while the list is written. */
void
uprof_kept_file_write(int fd, const GByteArray *list)
{
    const uint64_t none = 0, len = list->len;

    if (pwrite(fd, &none, sizeof(none), 0) != sizeof(none) ||
        pwrite(fd, list->data, len, sizeof(len)) != (ssize_t)len)
        return;
    /* a memory file has room for the number, so this cannot fail */
    const ssize_t n = pwrite(fd, &len, sizeof(len), 0);
    g_assert(n == sizeof(len));
}
