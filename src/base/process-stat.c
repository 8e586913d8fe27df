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

/* Returns: (transfer full) (nullable): the content of a file in the folder of @pid */
static char *
read_file(pid_t pid, const char *name, UprofSlice *read)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/%s", (int)pid, name);
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
    g_autofree char *text = read_file(pid, "stat", &stat);
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
    g_autofree char *text = read_file(pid, "stat", &stat);

    return text && uprof_process_stat_find(stat, UPROF_PROCESS_STAT_STATE, &word) &&
           (uprof_slice_is(word, "T") || uprof_slice_is(word, "t"));
}

uint64_t
uprof_process_stat_run_delay(pid_t pid)
{
    UprofSlice rest, word;
    g_autofree char *text = read_file(pid, "schedstat", &rest);
    uint64_t ns = 0;

    /* the second word; see Documentation/scheduler/sched-stats.rst of Linux */
    if (text && uprof_scan_word(&rest, &word) && uprof_scan_word(&rest, &word))
        uprof_slice_to_uint(word, 10, 0, UINT64_MAX, &ns);
    return ns;
}
