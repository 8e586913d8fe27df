/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch-word-priv.h"

#include "uprof/scan.h"

#include <limits.h>
#include <string.h>

static bool
is_id(const char *word, int id)
{
    uint64_t number;

    return id >= 0 &&
           uprof_slice_to_uint((UprofSlice){ word, strlen(word) }, 10, 0, INT_MAX, &number) &&
           (int)number == id;
}

int
uprof_watch_word_find(const char *word, const UprofWatchKnown *known, unsigned n)
{
    int by_id = UPROF_WATCH_WORD_UNKNOWN, by_name = UPROF_WATCH_WORD_UNKNOWN;

    for (unsigned i = 0; i < n; i++) {
        if (is_id(word, known[i].id))
            by_id = (int)i;
        else if ((strcmp(known[i].name, word) == 0 ||
                  g_ascii_strcasecmp(known[i].uuid, word) == 0) &&
                 (by_name < 0 || known[i].id >= 0))
            by_name = (int)i;
    }
    if (by_id >= 0 && by_name >= 0)
        return UPROF_WATCH_WORD_AMBIGUOUS;
    return by_id >= 0 ? by_id : by_name;
}
