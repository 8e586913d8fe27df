/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "memory-file.h"

#include <glib.h>
#include <sys/mman.h>
#include <unistd.h>

int
memory_file_open(UprofSlice bytes)
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);

    g_assert(fd >= 0);
    g_assert(pwrite(fd, bytes.data, bytes.len, 0) == (ssize_t)bytes.len);
    return fd;
}
