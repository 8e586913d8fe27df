/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fetch-report-priv.h"

void
uprof_fetch_report(UprofFetcher *fetcher, const char *shown, const UprofNotices *notices)
{
    const char *colon = shown ? ": " : "";
    UprofFetchCounts counts;

    uprof_fetcher_counts(fetcher, &counts);
    if (counts.n_asked > 0)
        uprof_notice(notices, UPROF_NOTICE_HINT,
                     "%s%sdebuginfod: %u symbol file%s fetched, %u not there", shown ? shown : "",
                     colon, counts.n_found, counts.n_found == 1 ? "" : "s", counts.n_missing);
    if (counts.n_failed > 0)
        uprof_notice(notices, UPROF_NOTICE_WARNING,
                     "%s%sdebuginfod: %u symbol file%s could not be fetched: %s",
                     shown ? shown : "", colon, counts.n_failed, counts.n_failed == 1 ? "" : "s",
                     counts.why_failed ? counts.why_failed : "there was no time left");
    g_free(counts.why_failed);
}
