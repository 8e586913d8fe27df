/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame-offset-priv.h - frames that have no name, such as "[libc.so.6+0x1a2b]"
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** uprof_frame_read_hex: @text: "0x1a2b". Returns: false if it is no such number */
bool uprof_frame_read_hex(const char *text, size_t len, uint64_t *value);

/**
 * uprof_frame_offset_parse:
 * @len: (out): bytes of the label
 * @offset: (out): in the image
 *
 * Returns: (nullable): the label, such as "libc.so.6", in @text; %NULL for any other text
 */
const char *uprof_frame_offset_parse(const char *text, size_t *len, uint64_t *offset);
