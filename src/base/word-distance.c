/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/word-distance.h"

#include <glib.h>
#include <string.h>

/* Returns: the Levenshtein distance, limited to @max + 1; of words of more than 64 bytes: @max + 1
 */
static unsigned
find_distance(const char *a, const char *b, unsigned max)
{
    enum { LEN_MAX = 64 };
    unsigned rows[2][LEN_MAX + 1];
    const size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > LEN_MAX || b_len > LEN_MAX)
        return max + 1;
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        const unsigned *above = rows[(i - 1) % 2];
        unsigned *row = rows[i % 2];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            const unsigned change = above[j - 1] + (a[i - 1] != b[j - 1]);
            row[j] = MIN(change, MIN(above[j], row[j - 1]) + 1);
        }
    }
    return MIN(rows[a_len % 2][b_len], max + 1);
}

bool
uprof_word_is_closer(const char *word, const char *candidate, unsigned *nearest)
{
    const unsigned distance = find_distance(word, candidate, *nearest);

    /* most letters must agree: no word of two letters is a mistake for another one */
    if (distance >= *nearest || distance * 2 > strlen(word))
        return false;
    *nearest = distance;
    return true;
}
