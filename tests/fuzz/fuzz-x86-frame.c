/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Two unused bytes, and a function that is read as 32-bit and as 64-bit code. */
#include "fuzz.h"

#include "uprof/x86-frame.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    if (size < 2)
        return;
    const UprofSlice code = { data + 2, size - 2 };

    for (unsigned word_bytes = 4; word_bytes <= 8; word_bytes += 4) {
        g_autoptr(UprofX86Frames) frames = uprof_x86_frames_new(code, word_bytes);
        UprofX86Frame frame;

        g_assert(!uprof_x86_frames_find(frames, MIN(code.len, UPROF_X86_FRAME_BYTES_MAX), &frame));
        for (size_t at = 0; at < code.len; at++) {
            if (!uprof_x86_frames_find(frames, at, &frame) || frame.is_root)
                continue;
            g_assert(at < UPROF_X86_FRAME_BYTES_MAX);
            g_assert(frame.cfa > 0 && frame.saved >= 0);
            g_assert(frame.fp != UPROF_X86_FP_SAVED || frame.saved > 0);
        }
    }
}
