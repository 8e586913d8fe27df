/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The guest chooses which files are opened, and whoever filled the folder chose their content.
 * Neither is trusted.
 */
#include "sysroot-priv.h"

#include "uprof/build-id.h"
#include "uprof/elf-head.h"
#include "uprof/error.h"
#include "uprof/text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Less than for files that the user names: a sparse file costs its maker nothing. */
enum {
    FILE_BYTES_MAX = 512 * 1024 * 1024,
    PAGE_BYTES = 4096,
};

/* Returns: (nullable): the part of @path behind "@folder/" */
static const char *
strip_folder(const char *folder, const char *path)
{
    size_t len = strlen(folder);

    while (len > 0 && folder[len - 1] == '/')
        len--;
    return strncmp(path, folder, len) == 0 && path[len] == '/' ? path + len + 1 : NULL;
}

/* Returns: a descriptor for fstat() only (O_PATH), or -1 with errno */
static int
find_inside(const char *folder, const char *rest)
{
    const struct open_how how = {
        .flags = O_PATH | O_CLOEXEC,
        .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
    };
    const int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root < 0)
        return -1;
    const int fd = (int)syscall(SYS_openat2, root, rest, &how, sizeof(how));
    const int reason = errno;
    close(root);
    errno = reason;
    return fd;
}

/* Other kinds of files are not even opened: opening a device can have effects. */
static int
open_regular(int found)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", found);
    struct stat facts;

    if (fstat(found, &facts) != 0)
        return -1;
    if (!S_ISREG(facts.st_mode)) {
        errno = EINVAL;
        return -1;
    }
    if (facts.st_size > FILE_BYTES_MAX) {
        errno = EFBIG;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

int
uprof_sysroot_open(const char *path, void *folder, GError **error)
{
    const char *rest = strip_folder(folder, path);
    g_autofree char *shown = uprof_text_quote(path);

    errno = ENOENT;
    const int found = rest ? find_inside(folder, rest) : -1;
    const int fd = found >= 0 ? open_regular(found) : -1;
    const int reason = errno;
    if (found >= 0)
        close(found);
    if (fd < 0)
        g_set_error(error, UPROF_ERROR,
                    reason == ENOENT || reason == ENOTDIR ? UPROF_ERROR_NO_FILE
                                                          : UPROF_ERROR_FAILED,
                    "cannot open '%s': %s", shown, g_strerror(reason));
    return fd;
}

bool
uprof_sysroot_has_build(const char *folder, const char *path, const char *build_id)
{
    const int fd = uprof_sysroot_open(path, (void *)folder, NULL);
    uint8_t page[PAGE_BYTES] = { 0 };
    UprofElfHead head;

    if (fd < 0)
        return false;
    const ssize_t n = pread(fd, page, sizeof(page), 0);
    close(fd);
    if (n <= 0 || !uprof_elf_head_parse((UprofSlice){ page, sizeof(page) }, &head))
        return false;
    g_autofree char *id = uprof_build_id_hex((UprofSlice){ head.build_id, head.build_id_len });
    return strcmp(id, build_id) == 0;
}
