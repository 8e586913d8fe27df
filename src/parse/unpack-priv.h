/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unpack-priv.h - zlib streams, for ELF sections
 */
#pragma once

#include "uprof/unpack.h"

enum {
    UPROF_UNPACK_XZ_MEMORY_MAX = 80 * 1024 * 1024, /* for the decoder: enough for xz -9 */
};

/**
 * uprof_unpack_zlib:
 * @packed: one zlib stream
 * @name: of the file, for messages
 * @len: unpacked bytes that the file declares
 *
 * One packed bit gives at most 129 bytes. A @len beyond that is refused before memory is
 * allocated.
 *
 * Returns: (transfer full) (nullable): @len bytes; %NULL with
 *   %UPROF_ERROR_BAD_DATA if @packed is damaged, unpacks to another length, or @len exceeds
 *   %UPROF_UNPACK_BYTES_MAX
 */
GByteArray *uprof_unpack_zlib(UprofSlice packed, const char *name, uint64_t len, GError **error);
