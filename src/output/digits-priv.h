/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * digits-priv.h - numbers as few letters, for the tables of a picture
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/**
 * uprof_digits_append: appends @value in digits of base 64 ("A-Za-z0-9-_")
 *
 * A digit has 5 bits, the lowest first. 32 is added to each digit but the last, so that numbers
 * need nothing between them.
 */
void uprof_digits_append(GString *out, uint64_t value);
