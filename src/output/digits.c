/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "digits-priv.h"

enum { DIGIT_BITS = 5 };

void
uprof_digits_append(GString *out, uint64_t value)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (; value >> DIGIT_BITS > 0; value >>= DIGIT_BITS)
        g_string_append_c(out, digits[1 << DIGIT_BITS | (value & ((1 << DIGIT_BITS) - 1))]);
    g_string_append_c(out, digits[value]);
}
