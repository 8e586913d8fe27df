/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/scan.h"

#include <stdarg.h>
#include <string.h>

#include "uprof/error.h"

static char
byte_at(UprofSlice slice, size_t i)
{
    return ((const char *)slice.data)[i];
}

static UprofSlice
skip_bytes(UprofSlice slice, size_t len)
{
    uprof_slice_sub(slice, len, slice.len - len, &slice);
    return slice;
}

bool
uprof_scan_line(UprofScan *scan, UprofSlice *line)
{
    UprofSlice rest = scan->rest;

    if (rest.len == 0)
        return false;

    const char *end = memchr(rest.data, '\n', rest.len);
    const size_t len = end ? (size_t)(end - (const char *)rest.data) : rest.len;

    scan->rest = skip_bytes(rest, end ? len + 1 : len);
    scan->line++;
    line->data = rest.data;
    line->len = len > 0 && byte_at(rest, len - 1) == '\r' ? len - 1 : len;
    return true;
}

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool
uprof_scan_word(UprofSlice *line, UprofSlice *word)
{
    size_t start = 0, end;

    while (start < line->len && is_blank(byte_at(*line, start)))
        start++;
    if (start == line->len)
        return false;
    for (end = start; end < line->len && !is_blank(byte_at(*line, end));)
        end++;

    uprof_slice_sub(*line, start, end - start, word);
    *line = skip_bytes(*line, end);
    return true;
}

bool
uprof_scan_fail(const UprofScan *scan, GError **error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA, "%s line %u: %s", scan->name, scan->line,
                message);
    return false;
}

bool
uprof_slice_is(UprofSlice slice, const char *text)
{
    return slice.len == strlen(text) && uprof_slice_starts(slice, text);
}

bool
uprof_slice_starts(UprofSlice slice, const char *text)
{
    const size_t len = strlen(text);

    return len == 0 || (slice.len >= len && memcmp(slice.data, text, len) == 0);
}

bool
uprof_slice_find(UprofSlice slice, const char *text, size_t *at)
{
    g_assert(*text);

    const char *found = slice.len ? memmem(slice.data, slice.len, text, strlen(text)) : NULL;
    if (!found)
        return false;
    if (at)
        *at = found - (const char *)slice.data;
    return true;
}

bool
uprof_slice_split(UprofSlice slice, char separator, UprofSlice *before, UprofSlice *behind)
{
    const char *found = slice.len ? memchr(slice.data, separator, slice.len) : NULL;

    if (!found)
        return false;

    const size_t at = found - (const char *)slice.data;
    *before = (UprofSlice){ slice.data, at };
    *behind = skip_bytes(slice, at + 1);
    return true;
}

static bool
is_space(char c)
{
    return is_blank(c) || c == '\r' || c == '\n';
}

UprofSlice
uprof_slice_trim(UprofSlice slice)
{
    while (slice.len > 0 && is_space(byte_at(slice, slice.len - 1)))
        slice.len--;
    while (slice.len > 0 && is_space(byte_at(slice, 0)))
        slice = skip_bytes(slice, 1);
    return slice;
}

bool
uprof_slice_to_uint(UprofSlice slice, unsigned base, uint64_t min, uint64_t max, uint64_t *value)
{
    uint64_t sum = 0;

    g_assert(base == 10 || base == 16);

    if (slice.len == 0)
        return false;
    for (size_t i = 0; i < slice.len; i++) {
        const char c = byte_at(slice, i);
        const int digit = base == 16 ? g_ascii_xdigit_value(c) : g_ascii_digit_value(c);

        if (digit < 0 || __builtin_mul_overflow(sum, base, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)digit, &sum))
            return false;
    }
    if (sum < min || sum > max)
        return false;
    *value = sum;
    return true;
}
