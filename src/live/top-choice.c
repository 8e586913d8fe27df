/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/top-choice.h"

#include <string.h>

/* A key of the text of which rows have a part. */
static void
read_pattern(UprofTopChoice *choice, char key)
{
    const size_t len = strlen(choice->pattern);

    if (key == '\r' || key == '\n' || key == '\x1b')
        choice->reads_pattern = false;
    if (key == '\x1b')
        choice->pattern[0] = '\0';
    if ((key == '\b' || key == '\x7f') && len > 0)
        choice->pattern[len - 1] = '\0';
    if (g_ascii_isprint(key) && len < UPROF_TOP_PATTERN_MAX) {
        choice->pattern[len] = g_ascii_tolower(key);
        choice->pattern[len + 1] = '\0';
    }
}

static void
choose_rows(UprofTopChoice *choice, char key)
{
    if (key == 'c' && !choice->has_cgroups)
        return;
    choice->by = key == 'p'   ? UPROF_BY_PROCESS
                 : key == 'c' ? UPROF_BY_CGROUP
                 : key == 'v' ? UPROF_BY_VCPU
                              : UPROF_BY_FUNCTION;
    choice->by_total = key == 't';
}

bool
uprof_top_choice_take_key(UprofTopChoice *choice, char key)
{
    if (choice->reads_pattern) {
        read_pattern(choice, key);
        return false;
    }
    switch (key) {
    case 's':
    case 't':
    case 'p':
    case 'c':
    case 'v':
        choose_rows(choice, key);
        return false;
    case 'a':
        choice->keeps_all = !choice->keeps_all;
        return true;
    case 'r':
        return true;
    case ' ':
        choice->is_paused = !choice->is_paused;
        return false;
    case '/':
        choice->reads_pattern = true;
        return false;
    case '?':
    case 'h':
        choice->shows_help = !choice->shows_help;
        return false;
    default:
        return false;
    }
}
