/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "file-bytes-priv.h"

#include "uprof/error.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"

#include <errno.h>
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

/* Returns: false with the error */
static bool
read_range(UprofFileBytes *file, int fd, size_t start, size_t end, const char *name, GError **error)
{
    const ssize_t n = uprof_read_at(fd, start, file->bytes + start, end - start);

    if (n != (ssize_t)(end - start)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED, "cannot read '%s': %s", name,
                    n < 0 ? g_strerror(errno) : "it was cut meanwhile");
        return false;
    }
    file->n_used += end - start;
    return true;
}

/*
 * Reads what the file has on its disk. Holes stay pages of zeros that were never written, so that a
 * sparse file takes no more memory than disk.
 */
static bool
read_data(UprofFileBytes *file, int fd, const char *name, GError **error)
{
    const off_t len = (off_t)file->len;
    off_t start = 0, end = 0;

    while (end < len) {
        start = lseek(fd, end, SEEK_DATA);
        if (start < 0 && errno == ENXIO)
            return true; /* only a hole is left */
        if (start < 0)
            start = end;
        end = lseek(fd, start, SEEK_HOLE);
        if (end <= start || end > len)
            end = len;
        if (start < end && !read_range(file, fd, (size_t)start, (size_t)end, name, error))
            return false;
    }
    return true;
}

static bool
read_all(UprofFileBytes *file, int fd, const char *name, GError **error)
{
    struct stat info;

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
    return read_data(file, fd, name, error);
}

static int
open_by_path(const char *path, const char *name, GError **error)
{
    const int fd = uprof_regular_file_open(path);

    if (fd < 0 && errno == EINVAL)
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' is not a regular file", name);
    else if (fd < 0)
        uprof_error_fail_errno(error, "cannot open symbol file '%s'", name);
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
