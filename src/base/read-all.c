/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/read-all.h"

#include <errno.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

bool
uprof_read_all(int fd, size_t len_max, GByteArray *bytes)
{
    g_autofree guint8 *chunk = g_malloc(CHUNK_BYTES);

    while (bytes->len < len_max) {
        const ssize_t n = read(fd, chunk, MIN(CHUNK_BYTES, len_max - bytes->len));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        g_byte_array_append(bytes, chunk, (guint)n);
    }
    return true;
}

ssize_t
uprof_read_at(int fd, uint64_t at, void *into, size_t len)
{
    size_t done = 0;

    while (done < len) {
        const ssize_t n = pread(fd, (uint8_t *)into + done, len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}
