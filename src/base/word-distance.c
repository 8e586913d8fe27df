/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/word-distance.h"

#include <glib.h>
#include <string.h>

enum { LEN_MAX = 64 };

typedef unsigned Row[LEN_MAX + 1];

/* The distance of the first @i bytes of @a from the first @j bytes of @b; both are at least 1. */
static unsigned
find_step(const Row *rows, const char *a, size_t i, const char *b, size_t j)
{
    const unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3], *second = rows[(i + 1) % 3];
    const unsigned change = above[j - 1] + (a[i - 1] != b[j - 1]);
    const unsigned step = MIN(change, MIN(above[j], row[j - 1]) + 1);
    const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];

    return is_swapped ? MIN(step, second[j - 2] + 1) : step;
}

/*
 * Returns: the number of letters to add, drop, change, or swap with the next one ("optimal string
 * alignment"), limited to @max + 1; of words of more than 64 bytes: @max + 1
 */
static unsigned
find_distance(const char *a, const char *b, unsigned max)
{
    Row rows[3];
    const size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > LEN_MAX || b_len > LEN_MAX)
        return max + 1;
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        rows[i % 3][0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++)
            rows[i % 3][j] = find_step(rows, a, i, b, j);
    }
    return MIN(rows[a_len % 3][b_len], max + 1);
}

bool
uprof_word_is_closer(const char *word, const char *candidate, unsigned *nearest)
{
    const unsigned distance = find_distance(word, candidate, *nearest);

    /* Two thirds of the letters must agree. Short names such as 'db-1' and 'web-1' differ. */
    if (distance >= *nearest || distance * 3 > strlen(word))
        return false;
    *nearest = distance;
    return true;
}
