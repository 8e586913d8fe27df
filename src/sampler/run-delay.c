/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "run-delay-priv.h"

#include "uprof/scan.h"
#include "uprof/thread-number.h"

#include <fcntl.h>
#include <unistd.h>

enum { TEXT_BYTES = 128 };

void
uprof_run_delay_init(UprofRunDelay *delay)
{
    *delay = (UprofRunDelay){ .fd = -1 };
}

void
uprof_run_delay_clear(UprofRunDelay *delay)
{
    if (delay->fd >= 0)
        close(delay->fd);
    uprof_run_delay_init(delay);
}

uint64_t
uprof_run_delay_ns(UprofRunDelay *delay)
{
    char text[TEXT_BYTES];
    UprofSlice word;
    uint64_t ns = 0;

    if (delay->thread != uprof_thread_number()) {
        uprof_run_delay_clear(delay);
        delay->thread = uprof_thread_number();
        delay->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    }
    const ssize_t len = delay->fd >= 0 ? pread(delay->fd, text, sizeof(text), 0) : -1;
    if (len <= 0)
        return 0;
    UprofSlice rest = { text, (size_t)len };
    if (uprof_scan_word(&rest, &word) && uprof_scan_word(&rest, &word))
        uprof_slice_to_uint(word, 10, 0, UINT64_MAX, &ns);
    return ns;
}
