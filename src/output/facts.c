/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "facts-priv.h"

#include "uprof/clock.h"
#include "uprof/text.h"

#include <string.h>

static void
clear_fact(gpointer data)
{
    g_free(((UprofFact *)data)->value);
}

/* @value: (transfer full) (nullable): NULL if unknown */
static void
add_fact(GArray *facts, const char *label, char *value)
{
    const UprofFact fact = { label, value };

    if (value)
        g_array_append_val(facts, fact);
}

static char *
format_tenths(uint64_t tenths, const char *unit)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT ".%u%s", tenths / 10, (unsigned)(tenths % 10),
                           unit);
}

char *
uprof_facts_percent(uint64_t part, uint64_t whole)
{
    return format_tenths(uprof_permille(part, whole), " %");
}

static char *
format_count(uint64_t count)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, count);
}

static char *
format_start(const UprofRun *run)
{
    g_autofree char *utc = uprof_clock_format_utc(run->started_utc_ns, FALSE);
    const size_t len = strlen(utc);

    g_strdelimit(utc, "T", ' ');
    return g_strdup_printf("%.*s UTC", (int)(len > 0 ? len - 1 : 0), utc);
}

static char *
format_rate(const UprofRun *run)
{
    const uint64_t got_mhz = uprof_run_got_mhz(run);
    g_autofree char *got = format_tenths((got_mhz + 50) / 100, "");
    g_autofree char *asked = run->rate_mhz % 1000 == 0 ? format_count(run->rate_mhz / 1000)
                                                       : format_tenths(run->rate_mhz / 100, "");

    if (got_mhz == 0)
        return g_strdup_printf("%s Hz", asked);
    return g_strdup_printf("%s of %s Hz", got, asked);
}

/* The share of time in holds, and the median length of a hold. */
static char *
format_held(const UprofRun *run)
{
    const uint64_t ppm =
        (uint64_t)((unsigned __int128)uprof_run_held_ns(run) * 1000000 / MAX(run->duration_ns, 1));
    const uint64_t p50_us =
        (uprof_histogram_percentile(&run->hold, 50) + UPROF_NS_PER_US / 2) / UPROF_NS_PER_US;
    g_autofree char *p50 = p50_us < 1000 ? g_strdup_printf("%" G_GUINT64_FORMAT " us", p50_us)
                                         : format_tenths(p50_us / 100, " ms");

    return g_strdup_printf("%u.%02u %%, median %s", (unsigned)(ppm / 10000),
                           (unsigned)(ppm % 10000 / 100), p50);
}

static char *
format_seconds(uint64_t ns)
{
    return format_tenths(ns / (100 * UPROF_NS_PER_MS), " s");
}

static void
add_waits(GArray *facts, const UprofRunWaits *waits)
{
    add_fact(facts, "waited, all tasks", format_seconds(waits->total_us * UPROF_NS_PER_US));
    add_fact(facts, "walks", format_count(waits->walks));
    add_fact(facts, "in", format_seconds(waits->time_ns));
    add_fact(facts, "tasks in a walk", format_count(waits->tasks / MAX(waits->walks, 1)));
    add_fact(facts, "unknown", uprof_facts_percent(waits->unknown_us, waits->total_us));
}

static void
add_samples(GArray *facts, const UprofRun *run)
{
    const bool is_rated = run->running > 0 && run->frames > 0;

    add_fact(facts, "rate", run->rate_mhz > 0 ? format_rate(run) : NULL);
    add_fact(facts, "samples", format_count(run->samples));
    add_fact(facts, "vCPUs", run->vcpus > 0 ? format_count(run->vcpus) : NULL);
    add_fact(facts, "running", uprof_facts_percent(run->running, run->samples));
    add_fact(facts, "idle", uprof_facts_percent(run->idles, run->samples));
    add_fact(facts, "complete", is_rated ? uprof_facts_percent(run->complete, run->running) : NULL);
    add_fact(facts, "truncated",
             is_rated || run->truncated > 0 ? uprof_facts_percent(run->truncated, run->running)
                                            : NULL);
    add_fact(facts, "frames named",
             run->frames > 0 ? uprof_facts_percent(run->named, run->frames) : NULL);
    add_fact(facts, "vCPU held",
             run->duration_ns > 0 && run->hold.count > 0 ? format_held(run) : NULL);
}

GArray *
uprof_facts_new(const UprofRun *run)
{
    GArray *facts = g_array_new(FALSE, FALSE, sizeof(UprofFact));

    g_array_set_clear_func(facts, clear_fact);
    add_fact(facts, "started", run->started_utc_ns > 0 ? format_start(run) : NULL);
    add_fact(facts, "duration", run->duration_ns > 0 ? format_seconds(run->duration_ns) : NULL);
    if (run->is_waits)
        add_waits(facts, &run->waits);
    else
        add_samples(facts, run);
    add_fact(facts, "access", run->access ? uprof_text_quote(run->access) : NULL);
    return facts;
}

char *
uprof_facts_of_side(const UprofRun *run)
{
    g_autofree char *running = uprof_facts_percent(run->running, run->samples);
    g_autofree char *start = run->started_utc_ns > 0 ? format_start(run) : NULL;
    g_autofree char *name = uprof_text_quote(run->domain);

    return g_strdup_printf("%s%s%s%s%" G_GUINT64_FORMAT " samples, %s running", name,
                           name[0] ? ", " : "", start ? start : "", start ? ", " : "", run->samples,
                           running);
}
