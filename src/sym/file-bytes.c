/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "file-bytes-priv.h"

#include "symbol-table-priv.h"

#include "uprof/error.h"
#include "uprof/path.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 512,          /* of st_blocks: stat(3type) */
    ROUNDING_BYTES = 64 * 1024, /* a file system may count more than the file has */
    HOLES_MAX_MIB = 64,         /* linkers leave holes up to the next page, of at most 2 MiB */
    START_BYTES = 1024,
};

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

void
uprof_file_bytes_fail_room(const char *name, uint64_t room, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                "'%s' needs more than the %u MiB of memory that are left for symbols; allow more "
                "with --memory",
                name, (unsigned)(room >> 20));
}

void
uprof_file_bytes_fail_kind(const char *name, GError **error)
{
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                "'%s' is neither an ELF file nor text as nm, System.map or kallsyms write it",
                name);
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
 * Reads the parts of the file that are on disk. Holes stay pages of zeros that were never written,
 * so that a sparse file takes no more memory than disk.
 */
static bool
read_data(UprofFileBytes *file, int fd, const char *name, uint64_t room, GError **error)
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
        if ((uint64_t)(end - start) > room - file->n_used) {
            uprof_file_bytes_fail_room(name, room, error);
            return false;
        }
        if (start < end && !read_range(file, fd, (size_t)start, (size_t)end, name, error))
            return false;
    }
    return true;
}

/* A boot image is neither, and is large: it need not be read. */
static bool
is_elf_or_text(int fd)
{
    uint8_t start[START_BYTES];
    const ssize_t n = uprof_read_at(fd, 0, start, sizeof(start));

    return n < 0 || uprof_elf_is((UprofSlice){ start, (size_t)n }) ||
           !memchr(start, '\0', (size_t)n);
}

static bool
read_all(UprofFileBytes *file, int fd, const char *name, uint64_t room, GError **error)
{
    struct stat info;

    if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode)) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' is not a regular file", name);
        return false;
    }
    if (info.st_size <= 0) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "'%s' is empty", name);
        return false;
    }
    if (info.st_size / 1048576 >= UPROF_SYM_FILE_BYTES_MAX_MIB) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' is too large: symbol files have up to %d MiB", name,
                    UPROF_SYM_FILE_BYTES_MAX_MIB);
        return false;
    }
    if (!is_elf_or_text(fd)) {
        uprof_file_bytes_fail_kind(name, error);
        return false;
    }
    /* a file system that compresses reports too few blocks, so read_data() counts, too */
    if ((uint64_t)info.st_blocks * BLOCK_BYTES > room + ROUNDING_BYTES) {
        uprof_file_bytes_fail_room(name, room, error);
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
    if (!read_data(file, fd, name, room, error))
        return false;
    /* parsers, checksums and searches read holes, too, and that takes time */
    if ((len - file->n_used) >> 20 > HOLES_MAX_MIB) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "'%s' has %zu MiB of holes: symbol files have up to %d MiB", name,
                    (len - file->n_used) >> 20, HOLES_MAX_MIB);
        return false;
    }
    return true;
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
                      uint64_t room, GError **error)
{
    g_autoptr(UprofFileBytes) file = g_new0(UprofFileBytes, 1);
    const int fd =
        opener ? opener->open(path, opener->data, error) : open_by_path(path, name, error);

    if (fd < 0)
        return NULL;
    /* A replay of a capture may run in another folder and needs the absolute path. */
    file->path = uprof_path_absolute(path);
    const bool ok = read_all(file, fd, name, room, error);
    close(fd);
    return ok ? g_steal_pointer(&file) : NULL;
}

UprofSlice
uprof_file_bytes_slice(const UprofFileBytes *file)
{
    return (UprofSlice){ file->bytes, file->len };
}

bool
uprof_file_bytes_parse_elf(const UprofFileBytes *file, const char *name, uint64_t room,
                           UprofElfImage *elf, GError **error)
{
    const uint64_t most = (room - MIN(room, file->n_used)) / UPROF_SYMBOL_TABLE_BYTES;
    const uint64_t symbols_max = MIN(most, (uint64_t)UPROF_SYMBOLS_MAX);
    bool has_more;

    if (uprof_elf_parse_some(uprof_file_bytes_slice(file), name, symbols_max, elf, &has_more,
                             error))
        return true;
    if (has_more && symbols_max < UPROF_SYMBOLS_MAX) {
        g_clear_error(error);
        uprof_file_bytes_fail_room(name, room, error);
    }
    return false;
}
