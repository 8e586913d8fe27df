/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gzip.h - unpacks files that gzip compressed (RFC 1952)
 */
#pragma once

#include "uprof/bytes.h"

/** uprof_gzip_is: Checks whether @bytes begin like a file of gzip. */
bool uprof_gzip_is(UprofSlice bytes);

/**
 * uprof_gzip_inflate:
 * @name: of the file, for messages
 * @bytes: one compressed file, or several in a row; zeros may follow as padding
 *
 * Returns: (transfer full) (nullable): the unpacked data; %NULL with %UPROF_ERROR_BAD_DATA if
 *   @bytes are truncated, damaged, followed by other data, or larger than the limits
 */
GByteArray *uprof_gzip_inflate(const char *name, UprofSlice bytes, GError **error);
