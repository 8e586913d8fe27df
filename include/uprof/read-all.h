/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * read-all.h - reads a descriptor up to its end or a limit, and a part of a file
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * uprof_read_all: reads until the end of @fd or until @bytes holds @len_max bytes
 * @bytes: (inout): the bytes read are appended
 * @len_max: a caller that must refuse longer files asks for one byte more than it accepts
 *
 * Repeats calls that a signal interrupts.
 *
 * Returns: false with errno set if a read fails; @bytes then has the bytes read before
 */
bool uprof_read_all(int fd, size_t len_max, GByteArray *bytes);

/**
 * uprof_read_at: reads @len bytes from the position @at, and repeats interrupted calls
 *
 * Returns: how many bytes were read, fewer than @len at the end of the file; -1 with errno set
 */
ssize_t uprof_read_at(int fd, uint64_t at, void *into, size_t len);
