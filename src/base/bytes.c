/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/bytes.h"

#include <stdarg.h>
#include <string.h>

#include "uprof/error.h"

size_t
uprof_bytes_left(const UprofBytes *bytes)
{
    return bytes->all.len - bytes->at;
}

static bool
read_raw(UprofBytes *bytes, void *into, size_t len)
{
    if (uprof_bytes_left(bytes) < len)
        return false;

    memcpy(into, (const uint8_t *)bytes->all.data + bytes->at, len);
    bytes->at += len;
    return true;
}

bool
uprof_bytes_u8(UprofBytes *bytes, uint8_t *value)
{
    return read_raw(bytes, value, sizeof(*value));
}

bool
uprof_bytes_u16(UprofBytes *bytes, uint16_t *value)
{
    uint16_t raw;

    if (!read_raw(bytes, &raw, sizeof(raw)))
        return false;
    *value = bytes->big_endian ? GUINT16_FROM_BE(raw) : GUINT16_FROM_LE(raw);
    return true;
}

bool
uprof_bytes_u32(UprofBytes *bytes, uint32_t *value)
{
    uint32_t raw;

    if (!read_raw(bytes, &raw, sizeof(raw)))
        return false;
    *value = bytes->big_endian ? GUINT32_FROM_BE(raw) : GUINT32_FROM_LE(raw);
    return true;
}

bool
uprof_bytes_u64(UprofBytes *bytes, uint64_t *value)
{
    uint64_t raw;

    if (!read_raw(bytes, &raw, sizeof(raw)))
        return false;
    *value = bytes->big_endian ? GUINT64_FROM_BE(raw) : GUINT64_FROM_LE(raw);
    return true;
}

/* Bits beyond 64 must be padding: zeros, or copies of the sign bit in the signed form. */
static bool
read_leb(UprofBytes *bytes, bool is_signed, uint64_t *value)
{
    const uint8_t *data = bytes->all.data;
    uint64_t found = 0;
    unsigned shift = 0;
    size_t at = bytes->at;
    uint8_t byte;

    do {
        if (at == bytes->all.len)
            return false;
        byte = data[at++];
        const uint8_t bits = byte & 0x7f;
        if (shift < 63) {
            found |= (uint64_t)bits << shift;
            shift += 7;
            continue;
        }
        /* The tenth byte has bit 63; in the signed form its other bits are copies of it. */
        const uint8_t lowest = shift == 63 ? bits & 1 : 0;
        found |= (uint64_t)lowest << 63;
        if (bits != (is_signed ? (found >> 63 ? 0x7f : 0) : lowest))
            return false;
        shift = 64;
    } while (byte & 0x80);

    if (is_signed && shift < 64 && (byte & 0x40))
        found |= UINT64_MAX << shift;
    *value = found;
    bytes->at = at;
    return true;
}

bool
uprof_bytes_uleb(UprofBytes *bytes, uint64_t *value)
{
    return read_leb(bytes, false, value);
}

bool
uprof_bytes_sleb(UprofBytes *bytes, int64_t *value)
{
    uint64_t found;

    if (!read_leb(bytes, true, &found))
        return false;
    *value = (int64_t)found;
    return true;
}

bool
uprof_bytes_take(UprofBytes *bytes, size_t len, UprofSlice *slice)
{
    if (!uprof_slice_sub(bytes->all, bytes->at, len, slice))
        return false;
    bytes->at += len;
    return true;
}

bool
uprof_bytes_seek(UprofBytes *bytes, size_t at)
{
    if (at > bytes->all.len)
        return false;
    bytes->at = at;
    return true;
}

bool
uprof_bytes_fail(const UprofBytes *bytes, GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s byte %zu: %s", bytes->name, bytes->at,
                message);
    return false;
}

bool
uprof_slice_sub(UprofSlice slice, uint64_t offset, uint64_t len, UprofSlice *sub)
{
    if (offset > slice.len || len > slice.len - offset)
        return false;

    /* Arithmetic on a NULL pointer is undefined, even with 0. */
    sub->data = slice.data ? (const uint8_t *)slice.data + offset : NULL;
    sub->len = len;
    return true;
}
