/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture-file-priv.h"

#include "uprof/error.h"
#include "uprof/read-all.h"
#include "uprof/regular-file.h"

#include <errno.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 1024 * 1024, /* no record that virt-uprof writes is longer */
    HEAD_BYTES = 2 * sizeof(uint32_t),
};

struct _UprofCaptureFile {
    const char *name; /* borrowed */
    int fd;
    uint64_t at;        /* of the next record */
    uint64_t window_at; /* where the window begins */
    size_t window_len;
    uint8_t window[WINDOW_BYTES];
};

void
uprof_capture_file_close(UprofCaptureFile *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    g_free(file);
}

/* Fills the window from the next record on. */
static bool
fill_window(UprofCaptureFile *file, GError **error)
{
    const ssize_t n =
        file->at > G_MAXINT64 ? 0 : uprof_read_at(file->fd, file->at, file->window, WINDOW_BYTES);

    if (n < 0)
        return uprof_error_fail_errno(error, "cannot read '%s'", file->name);
    file->window_at = file->at;
    file->window_len = (size_t)n;
    return true;
}

/* Returns: the bytes of the window from the next record on */
static UprofBytes
open_window(const UprofCaptureFile *file)
{
    const bool is_inside =
        file->at >= file->window_at && file->at - file->window_at <= file->window_len;
    const size_t skip = is_inside ? (size_t)(file->at - file->window_at) : file->window_len;

    return (UprofBytes){ .name = file->name,
                         .all = { file->window + skip, file->window_len - skip } };
}

/* Is the next record complete in the file, but longer than the window? */
static bool
is_too_long(const UprofCaptureFile *file)
{
    UprofBytes bytes = open_window(file);
    const off_t end = lseek(file->fd, 0, SEEK_END);
    uint32_t type, len;

    return uprof_bytes_u32(&bytes, &type) && uprof_bytes_u32(&bytes, &len) &&
           len > WINDOW_BYTES - HEAD_BYTES && end > 0 &&
           (uint64_t)end - file->at >= (uint64_t)len + HEAD_BYTES;
}

bool
uprof_capture_file_next(UprofCaptureFile *file, UprofCaptureRecord *record, GError **error)
{
    for (;;) {
        UprofBytes bytes = open_window(file);
        const bool found = uprof_capture_next(&bytes, record);
        const bool is_whole_window = file->at == file->window_at;
        /* skips records of unknown types, even if no record follows */
        file->at += bytes.at;
        if (found)
            return true;
        if (is_whole_window && bytes.at == 0)
            break;
        if (!fill_window(file, error))
            return false;
    }
    if (is_too_long(file))
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "%s byte %" G_GUINT64_FORMAT ": a record of more than %d bytes", file->name,
                    file->at, WINDOW_BYTES);
    return false;
}

UprofCaptureFile *
uprof_capture_file_open(const char *path, const char *name, GError **error)
{
    g_autoptr(UprofCaptureFile) file = g_new0(UprofCaptureFile, 1);

    file->name = name;
    file->fd = uprof_regular_file_open(path);
    if (file->fd < 0) {
        g_set_error(error, UPROF_ERROR, errno == EACCES ? UPROF_ERROR_DENIED : UPROF_ERROR_FAILED,
                    "cannot open '%s': %s", name,
                    errno == EINVAL ? uprof_regular_file_reason(errno) : g_strerror(errno));
        return NULL;
    }
    if (!fill_window(file, error))
        return NULL;
    UprofBytes bytes = open_window(file);
    if (!uprof_capture_begin(&bytes, error))
        return NULL;
    file->at = bytes.at;
    return g_steal_pointer(&file);
}

uint64_t
uprof_capture_file_tell(const UprofCaptureFile *file)
{
    return file->at;
}

void
uprof_capture_file_seek(UprofCaptureFile *file, uint64_t at)
{
    file->at = at;
}

uint64_t
uprof_capture_file_locate(const UprofCaptureFile *file, UprofSlice part)
{
    const uint8_t *start = part.data;

    g_assert(start >= file->window && part.len <= file->window_len &&
             start + part.len <= file->window + file->window_len);
    return file->window_at + (uint64_t)(start - file->window);
}

bool
uprof_capture_file_read(const UprofCaptureFile *file, uint64_t at, void *into, size_t len)
{
    return at <= G_MAXINT64 && uprof_read_at(file->fd, at, into, len) == (ssize_t)len;
}
