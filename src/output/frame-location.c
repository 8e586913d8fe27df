/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "frame-location-priv.h"

#include "uprof/scan.h"

#include <string.h>

/* @text: "0x1a2b" or "[image+0x1a2b]". Returns: the number; 0 for any other text */
static uint64_t
find_address(const char *text)
{
    const char *digits = text[0] == '[' ? strrchr(text, '+') : text;
    uint64_t address = 0;

    if (!digits)
        return 0;
    digits += digits[0] == '+' ? 1 : 0;
    if (strncmp(digits, "0x", 2) != 0)
        return 0;
    uprof_slice_to_uint((UprofSlice){ digits + 2, strcspn(digits + 2, "]") }, 16, 0, UINT64_MAX,
                        &address);
    return address;
}

UprofLocation
uprof_location_of(const UprofName *name)
{
    const char *text = uprof_name_text(name);
    const UprofName *module = uprof_name_module(name);

    switch (uprof_kind_of(name)) {
    case UPROF_KIND_IDLE:
        return (UprofLocation){ "[idle]", 0, false };
    case UPROF_KIND_MARKER:
        return (UprofLocation){ strcmp(text, "[truncated]") == 0 ? "[truncated]" : "[unknown]", 0,
                                false };
    case UPROF_KIND_KERNEL:
    case UPROF_KIND_INTERRUPT:
        return (UprofLocation){ UPROF_LOCATION_KERNEL, 0, true };
    default:
        if (strncmp(text, "0x", 2) == 0)
            return (UprofLocation){ "[unknown]", find_address(text), false };
        return (UprofLocation){ module ? uprof_name_text(module) : UPROF_LOCATION_APP,
                                find_address(text), true };
    }
}
