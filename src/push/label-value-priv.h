/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * label-value-priv.h - makes the value of a label from a name that may have any bytes
 */
#pragma once

/**
 * uprof_label_value:
 * @name: any bytes
 *
 * Writes control characters, bytes that are not UTF-8, and '%' as '%' and two hexadecimal digits.
 * Every other character stays, so that decoding the result as a URL gives @name.
 *
 * Returns: (transfer full): valid UTF-8
 */
char *uprof_label_value(const char *name);
