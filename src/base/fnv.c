/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/fnv.h"

uint32_t
uprof_fnv32_add(uint32_t digest, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT32_C(0x01000193);
    return digest;
}

uint64_t
uprof_fnv64_add(uint64_t digest, const void *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        digest = (digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return digest;
}
