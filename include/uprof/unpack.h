/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unpack.h - unpacks compressed parts of symbol files, within limits
 *
 * A small file can unpack to any size. The functions use no more memory than the caller or the
 * limits below allow, even if the file declares more.
 *
 * Formats: .xz (tukaani.org/xz/xz-file-format.txt) with liblzma; zlib streams (RFC 1950) with
 * zlib.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_UNPACK_BYTES_MAX = 256 * 1024 * 1024,
};

/**
 * uprof_unpack_xz:
 * @packed: a complete .xz file of one or several streams
 * @name: of the file, for messages
 * @max: unpacked bytes, up to %UPROF_UNPACK_BYTES_MAX
 *
 * Returns: (transfer full) (nullable): the unpacked data; %NULL with %UPROF_ERROR_BAD_DATA if
 *   @packed is damaged, truncated, or has more than @max bytes
 */
GByteArray *uprof_unpack_xz(UprofSlice packed, const char *name, size_t max, GError **error);
