/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "file-bytes-priv.h"

#include "uprof/error.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void
uprof_file_bytes_free(UprofFileBytes *file)
{
    if (!file)
        return;
    if (file->bytes)
        munmap(file->bytes, file->len);
    g_free(file->path);
    g_free(file);
}

static bool
read_all(UprofFileBytes *file, int fd, const char *name, GError **error)
{
    struct stat info;
    size_t done = 0;

    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' is not a regular file", name);
        return false;
    }
    if (info.st_size <= 0 || info.st_size / 1048576 >= UPROF_SYM_FILE_BYTES_MAX_MIB) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is %s: symbol files have up to %d MiB", name,
                    info.st_size <= 0 ? "empty" : "too large", UPROF_SYM_FILE_BYTES_MAX_MIB);
        return false;
    }
    const size_t len = (size_t)info.st_size;
    void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "no memory for '%s'", name);
        return false;
    }
    file->bytes = bytes;
    file->len = len;
    while (done < len) {
        const ssize_t n = read(fd, file->bytes + done, len - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot read '%s': %s", name,
                        n < 0 ? g_strerror(errno) : "it was cut meanwhile");
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static int
open_by_path(const char *path, const char *name, GError **error)
{
    /* O_NONBLOCK: the open does not wait if the path is a pipe. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

    if (fd < 0)
        g_set_error(error, UPROF_ERROR, errno == EACCES ? UPROF_ERROR_DENIED : UPROF_ERROR_FAILED,
                    "cannot open symbol file '%s': %s", name, g_strerror(errno));
    return fd;
}

UprofFileBytes *
uprof_file_bytes_read(const char *path, const char *name, const UprofSymOpener *opener,
                      GError **error)
{
    g_autoptr(UprofFileBytes) file = g_new0(UprofFileBytes, 1);
    const int fd =
        opener ? opener->open(path, opener->data, error) : open_by_path(path, name, error);

    if (fd < 0)
        return NULL;
    /* A replay of a capture may run in another folder and needs the absolute path. */
    file->path = g_canonicalize_filename(path, NULL);
    const bool ok = read_all(file, fd, name, error);
    close(fd);
    return ok ? g_steal_pointer(&file) : NULL;
}

UprofSlice
uprof_file_bytes_slice(const UprofFileBytes *file)
{
    return (UprofSlice){ file->bytes, file->len };
}
