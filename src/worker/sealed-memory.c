/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "sealed-memory-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int
uprof_sealed_memory_new(const char *name, size_t bytes)
{
    const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) == 0)
        return fd;
    const int reason = errno;
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}
