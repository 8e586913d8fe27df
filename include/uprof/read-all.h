/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * read-all.h - reads a descriptor up to its end or a limit
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

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
