/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "failures-priv.h"

#include "uprof/scan.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include <string.h>

enum { FAILURES_BYTES_MAX = 2 * 1024 * 1024 };

/* Visits a line such as "2026-11-20T09:15:00Z UUID reason". */
static void
read_line(const UprofStoreFolder *folder, int64_t day_s, UprofSlice line, UprofFailureVisit visit,
          void *data)
{
    UprofSlice when, who;

    /* if the disk was full, a line is not complete */
    if (!uprof_scan_word(&line, &when) || when.len != strlen("2026-11-20T09:15:00Z") ||
        !uprof_scan_word(&line, &who))
        return;
    g_autofree char *time = g_strndup(when.data, when.len);
    int64_t at_s = day_s;
    uprof_time_parse(time, day_s, &at_s);
    g_autofree char *uuid = g_ascii_strdown(who.data, (gssize)who.len);
    g_autofree char *reason = uprof_text_quote_slice(uprof_slice_trim(line));
    visit(folder, g_uuid_string_is_valid(uuid) ? uuid : NULL, at_s, reason, data);
}

void
uprof_failures_read(const UprofStoreFolder *folder, const UprofStoreItem *item,
                    UprofFailureVisit visit, void *data)
{
    g_autoptr(GByteArray) bytes =
        uprof_store_read(folder, item->stem, UPROF_STORE_FAILURES, FAILURES_BYTES_MAX, NULL);
    UprofScan scan = { .name = item->stem };
    UprofSlice line;

    if (!bytes)
        return;
    scan.rest = (UprofSlice){ bytes->data, bytes->len };
    while (uprof_scan_line(&scan, &line))
        read_line(folder, item->start_s, line, visit, data);
}
