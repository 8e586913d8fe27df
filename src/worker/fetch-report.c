/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fetch-report-priv.h"

void
uprof_fetch_report(UprofFetcher *fetcher, const UprofNotices *notices)
{
    UprofFetchCounts counts;

    uprof_fetcher_counts(fetcher, &counts);
    const unsigned n_known = counts.n_found + counts.n_missing + counts.n_failed;
    const unsigned n_late = counts.n_asked - MIN(n_known, counts.n_asked);
    g_autofree char *late = n_late > 0 ? g_strdup_printf(", %u not in time", n_late) : NULL;
    if (counts.n_found + counts.n_missing + n_late > 0)
        uprof_notice(notices, UPROF_NOTICE_HINT,
                     "debuginfod: %u symbol file%s fetched, %u not there%s", counts.n_found,
                     counts.n_found == 1 ? "" : "s", counts.n_missing, late ? late : "");
    if (counts.n_failed > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "debuginfod: %u symbol file%s could not be fetched: %s", counts.n_failed,
                     counts.n_failed == 1 ? "" : "s",
                     counts.why_failed ? counts.why_failed : "no time is left");
    g_free(counts.why_failed);
}
