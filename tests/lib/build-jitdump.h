/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-jitdump.h - builds jitdump files, for tests
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/** build_jitdump_new: Returns: (transfer full): a file with a header and no record */
GByteArray *build_jitdump_new(void);

/** build_jitdump_load: appends a function, with @size bytes of code */
void build_jitdump_load(GByteArray *file, uint64_t address, uint64_t size, const char *name);

/** build_jitdump_move: appends a move of a function */
void build_jitdump_move(GByteArray *file, uint64_t from, uint64_t to, uint64_t size);

/** build_jitdump_other: appends a record of another type, with @len bytes of content */
void build_jitdump_other(GByteArray *file, uint32_t type, uint32_t len);
