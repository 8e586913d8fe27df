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
