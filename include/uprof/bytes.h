/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bytes.h - a bounded cursor over untrusted binary data
 *
 * Each read checks the remaining length, converts the byte order and moves the cursor.
 * Errors name the cursor's position. Only error messages are allocated.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/** UprofSlice: bytes that somebody else owns */
typedef struct {
    const void *data; /* (nullable): borrowed; %NULL only if @len is 0 */
    size_t len;       /* bytes */
} UprofSlice;

/** UprofBytes: the cursor */
typedef struct {
    const char *name; /* borrowed: of the data, for messages */
    UprofSlice all;   /* the data */
    size_t at;        /* offset of the next byte; at most the length of @all */
    bool big_endian;  /* byte order of numbers */
} UprofBytes;

/** uprof_bytes_left: Returns: bytes after the cursor */
size_t uprof_bytes_left(const UprofBytes *bytes);

/*
 * uprof_bytes_u8 .. uprof_bytes_u64:
 * @bytes: the cursor moves behind the number
 * @value: (out): the number
 *
 * Returns: false, with nothing changed, if too few bytes are left
 */
bool uprof_bytes_u8(UprofBytes *bytes, uint8_t *value);
bool uprof_bytes_u16(UprofBytes *bytes, uint16_t *value);
bool uprof_bytes_u32(UprofBytes *bytes, uint32_t *value);
bool uprof_bytes_u64(UprofBytes *bytes, uint64_t *value);

/*
 * uprof_bytes_uleb, uprof_bytes_sleb:
 * @value: (out): the number, unsigned or signed
 *
 * Read a LEB128 number (DWARF 5, section 7.6): seven bits in each byte, lowest first.
 * Padding is accepted, because assemblers write it.
 *
 * Returns: false, with nothing changed, if the number does not end, or needs more than 64 bits
 */
bool uprof_bytes_uleb(UprofBytes *bytes, uint64_t *value);
bool uprof_bytes_sleb(UprofBytes *bytes, int64_t *value);

/**
 * uprof_bytes_take:
 * @len: bytes wanted
 * @slice: (out): these bytes, borrowed from the data
 *
 * Returns: false, with nothing changed, if fewer than @len bytes are left
 */
bool uprof_bytes_take(UprofBytes *bytes, size_t len, UprofSlice *slice);

/**
 * uprof_bytes_seek:
 * @at: offset from the start
 *
 * Returns: false, with nothing changed, if @at is behind the end
 */
bool uprof_bytes_seek(UprofBytes *bytes, size_t at);

/**
 * uprof_bytes_fail:
 * @error: set to %UPROF_ERROR_BAD_DATA, "NAME byte AT: " and the message
 *
 * Returns: false, always, so that a parser can end with it
 */
bool uprof_bytes_fail(const UprofBytes *bytes, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* uprof_read_le16 .. uprof_read_le64: Returns: the little-endian number at @at, of any alignment */
static inline uint16_t
uprof_read_le16(const void *at)
{
    uint16_t number;

    memcpy(&number, at, sizeof(number));
    return GUINT16_FROM_LE(number);
}

static inline uint32_t
uprof_read_le32(const void *at)
{
    uint32_t number;

    memcpy(&number, at, sizeof(number));
    return GUINT32_FROM_LE(number);
}

static inline uint64_t
uprof_read_le64(const void *at)
{
    uint64_t number;

    memcpy(&number, at, sizeof(number));
    return GUINT64_FROM_LE(number);
}

/**
 * uprof_slice_sub:
 * @slice: bytes
 * @offset: first byte wanted
 * @len: bytes wanted
 * @sub: (out): that part of @slice
 *
 * Returns: false, @sub untouched, unless @slice has all of these bytes
 */
bool uprof_slice_sub(UprofSlice slice, uint64_t offset, uint64_t len, UprofSlice *sub);
