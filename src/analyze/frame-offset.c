/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "frame-offset-priv.h"

#include "uprof/scan.h"

#include <string.h>

bool
uprof_frame_read_hex(const char *text, size_t len, uint64_t *value)
{
    return len > 2 && memcmp(text, "0x", 2) == 0 &&
           uprof_slice_to_uint((UprofSlice){ text + 2, len - 2 }, 16, 0, UINT64_MAX, value);
}

const char *
uprof_frame_offset_parse(const char *text, size_t *len, uint64_t *offset)
{
    const char *plus = text[0] == '[' ? strrchr(text, '+') : NULL;
    const size_t all = strlen(text);

    if (!plus || text[all - 1] != ']' ||
        !uprof_frame_read_hex(plus + 1, (size_t)(text + all - 1 - (plus + 1)), offset))
        return NULL;
    *len = (size_t)(plus - (text + 1));
    return text + 1;
}
