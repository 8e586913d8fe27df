/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/day-summary.h"

#include "uprof/change.h"
#include "uprof/clock.h"
#include "uprof/number-text.h"
#include "uprof/sorted.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "failures-priv.h"

#include <string.h>

enum {
    TOP_ROWS = 15,
    DROPPED_MAX = 5, /* functions that left the top rows */
    REASONS_MAX = 5,
    PPM_PER_TENTH = 1000,
};

/* The day of the summary, and the days to compare it with. */
typedef enum { THIS_DAY, DAY_BEFORE, WEEK_BEFORE, N_DAYS } Day;

static const unsigned days_ago[N_DAYS] = { 0, 1, 7 };

/* One domain on one day. */
typedef struct {
    UprofLoad *load;     /* owned */
    GArray *rows;        /* owned; of UprofProfileRow, highest self count first */
    GHashTable *by_name; /* owned; UprofName -> UprofProfileRow of @rows */
    uint64_t running;    /* weight of all stacks, except stacks of halted vCPUs */
    unsigned n_slices;   /* rounds of `collect` that were loaded */
} DomainDay;

/* A domain in the summary. */
typedef struct {
    char *uuid;         /* (nullable): owned; %NULL if only failures without UUID are known */
    char *name;         /* owned */
    GPtrArray *reasons; /* owned; of char: why rounds had no profile, one for each round */
} Domain;

/* A summary that is being made. All pointers are borrowed. */
typedef struct {
    const UprofCatalog *catalog;
    const UprofLoadSettings *settings;
    GPtrArray *selections[N_DAYS]; /* of UprofSelected */
    UprofErrorCode code;
} Summary;

/* ---- Which domains ---- */

static void
free_domain(gpointer data)
{
    Domain *domain = data;

    g_free(domain->uuid);
    g_free(domain->name);
    g_ptr_array_unref(domain->reasons);
    g_free(domain);
}

static Domain *
find_or_add_domain(GPtrArray *domains, const char *uuid, const char *name)
{
    for (guint i = 0; i < domains->len; i++) {
        Domain *domain = g_ptr_array_index(domains, i);
        if (uuid ? g_strcmp0(domain->uuid, uuid) == 0
                 : !domain->uuid && strcmp(domain->name, name) == 0)
            return domain;
    }
    Domain *domain = g_new0(Domain, 1);
    domain->uuid = g_strdup(uuid);
    domain->name = g_strdup(name);
    domain->reasons = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(domains, domain);
    return domain;
}

static int
compare_domains(const void *a, const void *b)
{
    const Domain *one = *(Domain *const *)a, *other = *(Domain *const *)b;
    const int names = strcmp(one->name, other->name);

    return names != 0 ? names : g_strcmp0(one->uuid, other->uuid);
}

static void
add_failure(const UprofStoreFolder *folder, const char *uuid, int64_t at_s, const char *reason,
            void *data)
{
    g_ptr_array_add(find_or_add_domain(data, uuid, folder->name)->reasons, g_strdup(reason));
}

/* Returns: (transfer full): of Domain: all domains with a profile or a failure on the day */
static GPtrArray *
find_domains(const Summary *summary, int64_t day_s)
{
    const GPtrArray *selection = summary->selections[THIS_DAY];
    const GPtrArray *folders = uprof_catalog_folders(summary->catalog);
    GPtrArray *domains = g_ptr_array_new_with_free_func(free_domain);

    for (guint i = 0; i < selection->len; i++) {
        const char *uuid = ((const UprofSelected *)g_ptr_array_index(selection, i))->run->uuid;
        find_or_add_domain(domains, uuid, uprof_selection_name(selection, uuid));
    }
    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const UprofStoreItem *item = uprof_store_item(folder, j);
            if (item->has_failures && item->start_s == day_s)
                uprof_failures_read(folder, item, add_failure, domains);
        }
    }
    g_ptr_array_sort(domains, compare_domains);
    return domains;
}

/* ---- One domain, one day ---- */

static void
clear_domain_day(DomainDay *day)
{
    g_clear_pointer(&day->load, uprof_load_free);
    g_clear_pointer(&day->rows, g_array_unref);
    g_clear_pointer(&day->by_name, g_hash_table_unref);
}

static void
init_domain_day(DomainDay *day, Summary *summary, Day which, UprofNames *names, const char *uuid)
{
    uint64_t halted = 0;

    day->load = uprof_load_new(names, summary->settings);
    summary->code =
        uprof_error_merge(summary->code, uprof_selection_load(summary->selections[which], uuid,
                                                              day->load, &day->n_slices));
    uprof_profile_settle(day->load->profile, NULL);
    day->rows = uprof_profile_rows(day->load->profile, &halted);
    day->running = uprof_profile_total(day->load->profile) - halted;
    day->by_name = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < day->rows->len; i++) {
        UprofProfileRow *row = &g_array_index(day->rows, UprofProfileRow, i);
        g_hash_table_insert(day->by_name, (gpointer)row->name, row);
    }
}

static uint64_t
find_self(const DomainDay *day, const UprofName *name)
{
    const UprofProfileRow *row = g_hash_table_lookup(day->by_name, name);

    return row ? row->self : 0;
}

static bool
is_in_top(const DomainDay *day, const UprofName *name)
{
    for (guint i = 0; i < day->rows->len && i < TOP_ROWS; i++)
        if (g_array_index(day->rows, UprofProfileRow, i).name == name)
            return true;
    return false;
}

/* ---- Text ---- */

static void
append_tenths(GString *out, uint64_t tenths)
{
    g_string_append_printf(out, "%" G_GUINT64_FORMAT ".%u", tenths / 10, (unsigned)(tenths % 10));
}

/*
 * Returns: (transfer full): the change in percentage points, such as "+1.3"; or "new"; or "." if
 *   the change can be due to chance; or "-" if there is no profile to compare with
 */
static char *
format_change(const DomainDay *day, const DomainDay *before, const UprofName *name)
{
    const UprofChange change = uprof_change_of(find_self(before, name), before->running,
                                               find_self(day, name), day->running);
    const uint64_t tenths = ((uint64_t)ABS(change.ppm) + PPM_PER_TENTH / 2) / PPM_PER_TENTH;

    if (before->running == 0)
        return g_strdup("-");
    if (!change.is_significant || tenths == 0)
        return g_strdup(".");
    if (change.is_new)
        return g_strdup("new");
    GString *text = g_string_new(change.ppm < 0 ? "-" : "+");
    append_tenths(text, tenths);
    return g_string_free(text, FALSE);
}

static bool
has_changed(const DomainDay *day, const DomainDay *before, const UprofName *name)
{
    return uprof_change_of(find_self(before, name), before->running, find_self(day, name),
                           day->running)
        .is_significant;
}

static void
append_top(GString *out, const DomainDay days[N_DAYS])
{
    const DomainDay *day = &days[THIS_DAY], *before = &days[DAY_BEFORE];

    if (day->running == 0)
        return;
    g_string_append(out, "    self   total  day before  week before  function\n");
    for (guint i = 0; i < day->rows->len && i < TOP_ROWS; i++) {
        const UprofProfileRow *row = &g_array_index(day->rows, UprofProfileRow, i);
        if (row->self == 0)
            return;
        g_autofree char *self = uprof_format_percent(row->self, day->running);
        g_autofree char *total = uprof_format_percent(row->total, day->running);
        g_autofree char *daily = format_change(day, before, row->name);
        g_autofree char *weekly = format_change(day, &days[WEEK_BEFORE], row->name);
        const bool is_new_here = before->running > 0 && !is_in_top(before, row->name) &&
                                 has_changed(day, before, row->name);
        g_string_append_printf(out, "  %6s  %6s  %10s  %11s  %s%s\n", self, total, daily, weekly,
                               uprof_name_text(row->name),
                               is_new_here ? "   <- new among the top" : "");
    }
}

/* Appends functions that are in the top rows of the day before, but not of this day. */
static void
append_dropped(GString *out, const DomainDay days[N_DAYS])
{
    const DomainDay *day = &days[THIS_DAY], *before = &days[DAY_BEFORE];
    unsigned n = 0;

    for (guint i = 0; day->running > 0 && i < before->rows->len && i < TOP_ROWS && n < DROPPED_MAX;
         i++) {
        const UprofProfileRow *row = &g_array_index(before->rows, UprofProfileRow, i);
        if (is_in_top(day, row->name) || !has_changed(day, before, row->name))
            continue;
        g_autofree char *was = uprof_format_percent(row->self, before->running);
        g_autofree char *is = uprof_format_percent(find_self(day, row->name), day->running);
        g_string_append_printf(out, "%s%s (%s to %s %%)",
                               n++ == 0 ? "  no longer among the top: " : ", ",
                               uprof_name_text(row->name), was, is);
    }
    if (n > 0)
        g_string_append_c(out, '\n');
}

static void
append_quality(GString *out, const DomainDay *day)
{
    const UprofRun *run = day->load->run;
    g_autofree char *running = uprof_format_percent(run->running, run->samples);
    g_autofree char *complete = uprof_format_percent(run->complete, run->running);
    g_autofree char *time = uprof_format_ns(run->duration_ns);
    const unsigned n = day->n_slices;

    g_string_append_printf(out,
                           "  %u profile%s of %s in all: %" G_GUINT64_FORMAT
                           " samples, %s %% running; %s %% of stacks complete; access %s, unwind "
                           "%s\n",
                           n, n == 1 ? "" : "s", time, run->samples, running, complete,
                           run->access ? run->access : "unknown",
                           run->unwind ? run->unwind : "unknown");
}

static void
append_cost(GString *out, const UprofRun *run)
{
    g_autofree char *cpu = uprof_format_ns(run->cpu_ns);

    if (run->hold.count > 0) {
        g_autofree char *share = uprof_format_percent(uprof_run_held_ns(run), run->duration_ns);
        g_autofree char *p50 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 50));
        g_autofree char *p99 = uprof_format_ns(uprof_histogram_percentile(&run->hold, 99));
        g_autofree char *max = uprof_format_ns(run->hold.max_ns);
        g_string_append_printf(out,
                               "  cost: a vCPU was held %s %% of that time or less: median %s, "
                               "p99 %s, longest %s; profiler: %s of CPU\n",
                               share, p50, p99, max, cpu);
    } else {
        g_string_append_printf(out, "  cost: no vCPU was held; profiler: %s of CPU\n", cpu);
    }
    if (run->late + run->busy + run->skipped + run->stuck > 0)
        g_string_append_printf(out,
                               "  ticks without a sample: %" G_GUINT64_FORMAT
                               " late, %" G_GUINT64_FORMAT
                               " while somebody else held the guest, %" G_GUINT64_FORMAT
                               " because their analysis was late or failed, %" G_GUINT64_FORMAT
                               " because a vCPU did not stop in time\n",
                               run->late, run->busy, run->skipped, run->stuck);
}

static int
compare_counts(const void *a, const void *b, void *data)
{
    GHashTable *counts = data;
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    const unsigned n_one = GPOINTER_TO_UINT(g_hash_table_lookup(counts, one));
    const unsigned n_other = GPOINTER_TO_UINT(g_hash_table_lookup(counts, other));

    return n_one != n_other ? UPROF_COMPARE(n_other, n_one) : strcmp(one, other);
}

static void
append_failures(GString *out, const Domain *domain)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) kinds = g_ptr_array_new();

    for (guint i = 0; i < domain->reasons->len; i++) {
        char *reason = g_ptr_array_index(domain->reasons, i);
        const unsigned n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, reason));
        if (n == 0)
            g_ptr_array_add(kinds, reason);
        g_hash_table_insert(counts, reason, GUINT_TO_POINTER(n + 1));
    }
    if (kinds->len == 0)
        return;
    g_ptr_array_sort_with_data(kinds, compare_counts, counts);
    g_string_append_printf(out, "  without a profile: %u round%s: ", domain->reasons->len,
                           domain->reasons->len == 1 ? "" : "s");
    for (guint i = 0; i < kinds->len && i < REASONS_MAX; i++) {
        const char *reason = g_ptr_array_index(kinds, i);
        g_string_append_printf(out, "%s%s (%u)", i > 0 ? "; " : "", reason,
                               GPOINTER_TO_UINT(g_hash_table_lookup(counts, reason)));
    }
    g_string_append(out, kinds->len > REASONS_MAX ? "; and others\n" : "\n");
}

static void
append_domain(GString *out, const Domain *domain, Summary *summary)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    DomainDay days[N_DAYS] = { 0 };

    g_string_append_printf(out, "\n%s (%s)\n", domain->name,
                           domain->uuid ? domain->uuid : "UUID not known");
    append_failures(out, domain);
    if (!domain->uuid)
        return;
    for (unsigned i = 0; i < N_DAYS; i++)
        init_domain_day(&days[i], summary, i, names, domain->uuid);
    if (days[THIS_DAY].load->n_files > 0) {
        append_quality(out, &days[THIS_DAY]);
        append_cost(out, days[THIS_DAY].load->run);
        append_top(out, days);
        append_dropped(out, days);
    }
    for (unsigned i = 0; i < N_DAYS; i++)
        clear_domain_day(&days[i]);
}

static GString *
render_domains(Summary *summary, int64_t day_s, bool is_over)
{
    g_autofree char *day = uprof_time_format_date(day_s);
    g_autoptr(GPtrArray) domains = find_domains(summary, day_s);

    if (domains->len == 0)
        return NULL;
    GString *out = g_string_new(NULL);
    g_string_append_printf(out,
                           "%s UTC%s: %u domain%s. Percent of running samples; changes in "
                           "points, those beyond chance.\n",
                           day, is_over ? "" : ", so far", domains->len,
                           domains->len == 1 ? "" : "s");
    for (guint i = 0; i < domains->len; i++)
        append_domain(out, g_ptr_array_index(domains, i), summary);
    return out;
}

GString *
uprof_day_summary_render(const UprofCatalog *catalog, int64_t day_s, bool is_over,
                         const UprofNotices *notices, UprofErrorCode *code)
{
    const UprofLoadSettings settings = { .notices = notices };
    Summary summary = { .catalog = catalog, .settings = &settings, .code = *code };
    UprofOmissions omissions = { 0 };

    for (unsigned i = 0; i < N_DAYS; i++) {
        const int64_t start_s = day_s - days_ago[i] * (int64_t)UPROF_DAY_S;
        summary.selections[i] =
            uprof_catalog_select(catalog, start_s, start_s + UPROF_DAY_S, NULL, &omissions);
    }
    if (omissions.n_damaged > 0)
        summary.code = uprof_error_merge(summary.code, UPROF_ERROR_FAILED);
    GString *text = render_domains(&summary, day_s, is_over);
    for (unsigned i = 0; i < N_DAYS; i++)
        g_ptr_array_unref(summary.selections[i]);
    *code = summary.code;
    return text;
}
