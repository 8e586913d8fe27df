/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "waits-priv.h"

#include "uprof/scan.h"

#include <fcntl.h>
#include <unistd.h>

enum { TEXT_BYTES = 128 };

void
uprof_waits_init(UprofWaits *waits)
{
    *waits = (UprofWaits){ .fd = -1 };
}

void
uprof_waits_clear(UprofWaits *waits)
{
    if (waits->fd >= 0)
        close(waits->fd);
    uprof_waits_init(waits);
}

uint64_t
uprof_waits_ns(UprofWaits *waits)
{
    char text[TEXT_BYTES];
    UprofSlice word;
    uint64_t ns = 0;

    if (waits->thread != gettid()) {
        uprof_waits_clear(waits);
        waits->thread = gettid();
        waits->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    }
    const ssize_t len = waits->fd >= 0 ? pread(waits->fd, text, sizeof(text), 0) : -1;
    if (len <= 0)
        return 0;
    UprofSlice rest = { text, (size_t)len };
    if (uprof_scan_word(&rest, &word) && uprof_scan_word(&rest, &word))
        uprof_slice_to_uint(word, 10, 0, UINT64_MAX, &ns);
    return ns;
}
