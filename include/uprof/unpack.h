/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unpack.h - compressed parts of symbol files, within bounds
 *
 * What is small when packed may be anything when it is not. Nothing here takes
 * more memory than it has been told or than the limits below, whatever a file
 * says of itself.
 *
 * Formats: .xz (tukaani.org/xz/xz-file-format.txt) through liblzma; zlib streams
 * (RFC 1950) through zlib.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_UNPACK_BYTES_MAX = 256 * 1024 * 1024,
    UPROF_UNPACK_XZ_MEMORY_MAX = 80 * 1024 * 1024, /* of the decoder: enough for xz -9 */
};

/**
 * uprof_unpack_xz:
 * @packed: a whole .xz file, of one stream or several
 * @name: of what is unpacked, for messages
 * @max: bytes, up to %UPROF_UNPACK_BYTES_MAX
 *
 * Returns: (transfer full) (nullable): what was packed; %NULL with
 *   %UPROF_ERROR_BAD_DATA if it is damaged, cut, or more than @max
 */
GByteArray *uprof_unpack_xz(UprofSlice packed, const char *name, size_t max, GError **error);

/**
 * uprof_unpack_zlib:
 * @packed: one zlib stream
 * @name: of what is unpacked, for messages
 * @len: bytes that shall come out, as the file says
 *
 * A length that no stream so short can give (a bit stands for 129 bytes at most)
 * is refused before memory is taken for it.
 *
 * Returns: (transfer full) (nullable): @len bytes; %NULL with
 *   %UPROF_ERROR_BAD_DATA if it is damaged, gives more or less, or is beyond
 *   %UPROF_UNPACK_BYTES_MAX
 */
GByteArray *uprof_unpack_zlib(UprofSlice packed, const char *name, uint64_t len, GError **error);
