/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/parse/sidecar-priv.h"
#include "fuzz.h"
#include "uprof/sidecar.h"

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) run = uprof_sidecar_parse("fuzz", (UprofSlice){ data, size }, &error);

    check_answer(run != NULL, error);
    if (!run)
        return;
    g_assert(!run->domain || g_utf8_validate(run->domain, -1, NULL));
    g_assert(run->samples <= UPROF_SIDECAR_COUNT_MAX);
    g_assert(run->images->len <= UPROF_SIDECAR_IMAGES_MAX);
    g_assert(uprof_histogram_percentile(&run->hold, 50) <=
             uprof_histogram_percentile(&run->hold, 99));
    for (guint i = 0; i < run->slices->len; i++)
        g_assert(g_array_index(run->slices, uint32_t, i) < 24 * 60 * 60);

    g_autoptr(UprofRun) sum = uprof_run_new();
    uprof_run_merge(sum, run, true);
    uprof_run_merge(sum, run, false);
    g_assert(sum->samples == 2 * run->samples);
}
