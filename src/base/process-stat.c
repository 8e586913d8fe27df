/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/process-stat.h"

#include "uprof/scan.h"

#include <glib.h>
#include <string.h>

enum { FIRST_FIELD = 3 }; /* behind the name */

bool
uprof_process_stat_find(UprofSlice text, UprofProcessStatField field, UprofSlice *word)
{
    const char *name_end = text.len > 0 ? memrchr(text.data, ')', text.len) : NULL;
    UprofSlice rest;

    if (!name_end)
        return false;
    const size_t offset = (size_t)(name_end + 1 - (const char *)text.data);
    if (!uprof_slice_sub(text, offset, text.len - offset, &rest))
        return false;
    rest = uprof_slice_trim(rest);
    for (unsigned i = FIRST_FIELD; i <= field; i++)
        if (!uprof_scan_word(&rest, word))
            return false;
    return true;
}

/* Returns: (transfer full) (nullable): the content of the stat file of @pid */
static char *
read_stat(pid_t pid, UprofSlice *read)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid);
    char *text = NULL;
    gsize len = 0;

    if (pid <= 0 || !g_file_get_contents(path, &text, &len, NULL))
        return NULL;
    *read = (UprofSlice){ text, len };
    return text;
}

uint64_t
uprof_process_stat_start(pid_t pid)
{
    UprofSlice stat, word;
    g_autofree char *text = read_stat(pid, &stat);
    uint64_t start = 0;

    return text && uprof_process_stat_find(stat, UPROF_PROCESS_STAT_START, &word) &&
                   uprof_slice_to_uint(word, 10, 1, UINT64_MAX, &start)
               ? start
               : 0;
}

bool
uprof_process_stat_is_stopped(pid_t pid)
{
    UprofSlice stat, word;
    g_autofree char *text = read_stat(pid, &stat);

    return text && uprof_process_stat_find(stat, UPROF_PROCESS_STAT_STATE, &word) &&
           (uprof_slice_is(word, "T") || uprof_slice_is(word, "t"));
}
