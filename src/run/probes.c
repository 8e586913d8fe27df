/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/probes.h"

#include "uprof/clock.h"
#include "uprof/number-text.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    PROBES = 16,
    PAUSE_US = 15 * 1000,      /* the shortest pause after a probe */
    PAUSE_MAX_US = 500 * 1000, /* the longest one, whatever the budget is */
};

/* Counts the holds of a probe: one hold can give several snapshots. */
static void
count_holds(UprofHistogram *hold, UprofSnapshot *const *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (slots[i]->hold_ns > 0 && (i == 0 || slots[i]->hold != slots[i - 1]->hold))
            uprof_histogram_add(hold, slots[i]->hold_ns);
}

/* The pause keeps the probes within the budget of a run. */
static void
rest_after_probe(const UprofProbesSettings *settings)
{
    const uint64_t rest_us =
        settings->hold->max_ns / UPROF_NS_PER_US * 1000000 / settings->budget_ppm;

    g_usleep(MIN(MAX(rest_us, (uint64_t)PAUSE_US), (uint64_t)PAUSE_MAX_US) +
             (gulong)g_random_int_range(0, PAUSE_US));
}

/* Returns: (transfer full): such as "load 11.4 on 2 CPUs" */
static char *
describe_load(void)
{
    double load = 0;
    const int known = getloadavg(&load, 1);
    const uint64_t tenths = known == 1 && load > 0 ? (uint64_t)(load * 10) : 0;

    return g_strdup_printf("load %" G_GUINT64_FORMAT ".%u on %ld CPUs", tenths / 10,
                           (unsigned)(tenths % 10), sysconf(_SC_NPROCESSORS_ONLN));
}

static void
warn_of_stuck(UprofDiagnosis *diagnosis, const UprofProbesSettings *settings, unsigned n_stuck)
{
    g_autofree char *pause = uprof_format_ns(settings->max_pause_ns);
    g_autofree char *load = describe_load();

    if (n_stuck > 0)
        uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "access",
                            "in %u of %u tries no vCPU stopped within %s: this host is busy (%s), "
                            "and runs will lose samples; try a longer --max-pause",
                            n_stuck, (unsigned)PROBES, pause, load);
}

int
uprof_probes_take(const UprofProbesSettings *settings, UprofDiagnosis *diagnosis)
{
    g_autofree UprofSnapshot **slots = g_new0(UprofSnapshot *, settings->n_vcpus);
    g_autofree UprofSnapshot *pool = g_new0(UprofSnapshot, settings->n_vcpus);
    g_autoptr(GError) error = NULL;
    UprofAnswer answer = UPROF_OK;
    unsigned n_stuck = 0, n_ok = 0;

    for (unsigned i = 0; i < settings->n_vcpus; i++)
        slots[i] = &pool[i];
    for (unsigned i = 0; i < PROBES && (answer == UPROF_OK || answer == UPROF_STUCK); i++) {
        unsigned n = 0;
        answer = uprof_sampler_sample_once(settings->sampler, slots, &n, &error);
        n_ok += answer == UPROF_OK;
        n_stuck += answer == UPROF_STUCK;
        for (unsigned j = 0; answer == UPROF_OK && j < n; j++)
            settings->take(slots[j], settings->data);
        if (answer == UPROF_OK)
            count_holds(settings->hold, slots, n);
        rest_after_probe(settings);
    }
    warn_of_stuck(diagnosis, settings, n_stuck);
    if (answer == UPROF_OK || answer == UPROF_STUCK)
        return (int)n_ok;
    if (answer == UPROF_FAILED) {
        uprof_diagnosis_add_error(diagnosis, "access", error);
        return -1;
    }
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_FAIL, "access", "%s",
                        answer == UPROF_GONE
                            ? "the domain has just ended"
                            : "somebody else stops, migrates or saves the domain; try again later");
    diagnosis->code = uprof_error_merge(diagnosis->code, UPROF_ERROR_NOT_FOUND);
    return -1;
}
