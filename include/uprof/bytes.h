/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * bytes.h - a bounded cursor over binary data that nobody vouches for
 *
 * Every read checks what is left, honors the byte order and moves on; the
 * cursor knows its position, so that errors can name it. It owns nothing and
 * allocates nothing but error messages.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * UprofSlice:
 * @data: (nullable): borrowed bytes; %NULL only if @len is 0
 * @len: bytes
 */
typedef struct {
    const void *data; /* borrowed */
    size_t len;
} UprofSlice;

/**
 * UprofBytes:
 * @name: what is read, for messages; borrowed
 * @all: all of it
 * @at: bytes from the start of @all; never beyond its end
 * @big_endian: byte order of the numbers
 */
typedef struct {
    const char *name; /* borrowed */
    UprofSlice all;
    size_t at;
    bool big_endian;
} UprofBytes;

/**
 * uprof_bytes_left:
 *
 * Returns: bytes not read yet
 */
size_t uprof_bytes_left(const UprofBytes *bytes);

/*
 * uprof_bytes_u8 .. uprof_bytes_u64:
 * @bytes: a cursor; moves behind the number
 * @value: (out): the number
 *
 * Returns: false, with nothing changed, if too little is left
 */
bool uprof_bytes_u8(UprofBytes *bytes, uint8_t *value);
bool uprof_bytes_u16(UprofBytes *bytes, uint16_t *value);
bool uprof_bytes_u32(UprofBytes *bytes, uint32_t *value);
bool uprof_bytes_u64(UprofBytes *bytes, uint64_t *value);

/*
 * uprof_bytes_uleb, uprof_bytes_sleb:
 * @value: (out): the number, unsigned or signed
 *
 * Read one number of seven bits a byte, lowest first (LEB128: DWARF 5, section
 * 7.6). Padding is taken, as assemblers write it.
 *
 * Returns: false, with nothing changed, if it does not end, or needs more than
 *   64 bits
 */
bool uprof_bytes_uleb(UprofBytes *bytes, uint64_t *value);
bool uprof_bytes_sleb(UprofBytes *bytes, int64_t *value);

/**
 * uprof_bytes_take:
 * @len: bytes wanted
 * @slice: (out): those bytes, borrowed from what the cursor reads
 *
 * Returns: false, with nothing changed, if less than @len is left
 */
bool uprof_bytes_take(UprofBytes *bytes, size_t len, UprofSlice *slice);

/**
 * uprof_bytes_seek:
 * @at: bytes from the start
 *
 * Returns: false, with nothing changed, if that is beyond the end
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

/**
 * uprof_slice_sub:
 * @slice: bytes
 * @offset: first byte wanted
 * @len: bytes wanted
 * @sub: (out): that part of @slice
 *
 * Returns: false, @sub untouched, unless all of it lies in @slice
 */
bool uprof_slice_sub(UprofSlice slice, uint64_t offset, uint64_t len, UprofSlice *sub);
