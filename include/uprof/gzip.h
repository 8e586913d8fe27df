/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gzip.h - files that gzip has made smaller (RFC 1952)
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_GZIP_BYTES_MAX_MIB = 256, /* of what comes out */
    UPROF_GZIP_RATIO_MAX = 1000,    /* of the two sizes, from a megabyte on */
};

/** uprof_gzip_is: Returns: whether @bytes begin as gzip's files do */
bool uprof_gzip_is(UprofSlice bytes);

/**
 * uprof_gzip_inflate:
 * @name: of what is read, for messages
 * @bytes: a file, perhaps several in a row; zeros behind them are padding
 *
 * Returns: (transfer full) (nullable): what was packed; %NULL with
 *   %UPROF_ERROR_BAD_DATA if it is cut off, damaged, followed by something else, or larger
 *   than the limits
 */
GByteArray *uprof_gzip_inflate(const char *name, UprofSlice bytes, GError **error);
