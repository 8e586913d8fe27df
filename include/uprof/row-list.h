/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * row-list.h - rows of a profile on their way from a worker to the program
 *
 *   u64 n      rows; then for each row
 *     u64      self, total
 *     u32 len  bytes of its name
 *     len      the name
 *
 * Numbers are little-endian.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/profile.h"

/** uprof_row_list_pack: appends rows; @rows: of UprofProfileRow */
void uprof_row_list_pack(const GArray *rows, GByteArray *out);

/**
 * uprof_row_list_unpack:
 * @bytes: (inout): any content; moves behind the list
 * @names: get the names, cleaned
 *
 * Returns: (transfer full): of UprofProfileRow; the rows before the first malformed one
 */
GArray *uprof_row_list_unpack(UprofBytes *bytes, UprofNames *names);
