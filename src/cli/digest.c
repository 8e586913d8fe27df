/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "digest-priv.h"

#include "exit-priv.h"
#include "summary-priv.h"
#include "uprof/change.h"
#include "uprof/clock.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <string.h>

enum {
    TOP = 15,
    GONE_MAX = 5,
    REASONS_MAX = 5,
    PPM_PER_TENTH = 1000,
    FAILURES_BYTES_MAX = 2 * 1024 * 1024,
};

/** Side: a day that is shown or compared with */
typedef enum { THIS_DAY, DAY_BEFORE, WEEK_BEFORE, N_SIDES } Side;

static const unsigned days_ago[N_SIDES] = { 0, 1, 7 };

/**
 * View: one domain on one day
 * @rows: of UprofProfileRow, most self first; @by_name: the same, by UprofName
 * @all: weight of all stacks but halts
 */
typedef struct {
    UprofLoad *load;
    GArray *rows;
    GHashTable *by_name;
    uint64_t all;
} View;

/**
 * Subject: a domain of the digest
 * @uuid: (nullable): not known of failures that do not say it
 * @reasons: of char: why there was no profile, one for each round
 */
typedef struct {
    char *uuid;
    char *name;
    GPtrArray *reasons;
} Subject;

/* ---- Which domains ---- */

static void
free_subject(gpointer data)
{
    Subject *subject = data;

    g_free(subject->uuid);
    g_free(subject->name);
    g_ptr_array_unref(subject->reasons);
    g_free(subject);
}

static Subject *
find_subject(GPtrArray *subjects, const char *uuid, const char *name)
{
    for (guint i = 0; i < subjects->len; i++) {
        Subject *subject = g_ptr_array_index(subjects, i);
        if (uuid ? g_strcmp0(subject->uuid, uuid) == 0
                 : !subject->uuid && strcmp(subject->name, name) == 0)
            return subject;
    }
    Subject *subject = g_new0(Subject, 1);
    subject->uuid = g_strdup(uuid);
    subject->name = g_strdup(name);
    subject->reasons = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(subjects, subject);
    return subject;
}

static int
compare_subjects(const void *a, const void *b)
{
    const Subject *one = *(Subject *const *)a, *other = *(Subject *const *)b;
    const int names = strcmp(one->name, other->name);

    return names != 0 ? names : g_strcmp0(one->uuid, other->uuid);
}

/* "2026-11-20T09:15:00Z UUID why it was" */
static void
take_failure(GPtrArray *subjects, const char *folder, UprofSlice line)
{
    UprofSlice when, who;

    /* a disk that was full has lines without an end */
    if (!uprof_scan_word(&line, &when) || when.len != strlen("2026-11-20T09:15:00Z") ||
        !uprof_scan_word(&line, &who))
        return;
    g_autofree char *uuid = g_ascii_strdown(who.data, (gssize)who.len);
    const bool is_known = g_uuid_string_is_valid(uuid);
    Subject *subject = find_subject(subjects, is_known ? uuid : NULL, folder);
    g_ptr_array_add(subject->reasons, uprof_text_quote_slice(uprof_slice_trim(line)));
}

static void
read_failures(GPtrArray *subjects, const UprofStoreFolder *folder, const UprofStoreItem *item)
{
    g_autoptr(GByteArray) bytes =
        uprof_store_read(folder, item->stem, UPROF_STORE_FAILURES, FAILURES_BYTES_MAX, NULL);
    UprofScan scan = { .name = item->stem };
    UprofSlice line;

    if (!bytes)
        return;
    scan.rest = (UprofSlice){ bytes->data, bytes->len };
    while (uprof_scan_line(&scan, &line))
        take_failure(subjects, folder->name, line);
}

static GPtrArray *
find_subjects(const UprofStock *stock, const GPtrArray *picks, int64_t day_s)
{
    const GPtrArray *folders = uprof_stock_folders(stock);
    GPtrArray *subjects = g_ptr_array_new_with_free_func(free_subject);

    for (guint i = 0; i < picks->len; i++) {
        const UprofPick *pick = g_ptr_array_index(picks, i);
        find_subject(subjects, pick->run->uuid, uprof_stock_name(picks, pick->run->uuid));
    }
    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const UprofStoreItem *item = uprof_store_item(folder, j);
            if (item->has_failures && item->start_s == day_s)
                read_failures(subjects, folder, item);
        }
    }
    g_ptr_array_sort(subjects, compare_subjects);
    return subjects;
}

/* ---- One domain, one day ---- */

static void
view_clear(View *view)
{
    g_clear_pointer(&view->load, uprof_load_free);
    g_clear_pointer(&view->rows, g_array_unref);
    g_clear_pointer(&view->by_name, g_hash_table_unref);
}

static void
view_init(View *view, UprofNames *names, const GPtrArray *picks, const char *uuid, int *code)
{
    uint64_t halted = 0;

    view->load = uprof_load_new(names, false);
    *code = uprof_exit_worse(*code, uprof_stock_load(view->load, picks, uuid, NULL));
    uprof_profile_settle(view->load->profile, NULL);
    view->rows = uprof_profile_rows(view->load->profile, &halted);
    view->all = uprof_profile_total(view->load->profile) - halted;
    view->by_name = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < view->rows->len; i++) {
        UprofProfileRow *row = &g_array_index(view->rows, UprofProfileRow, i);
        g_hash_table_insert(view->by_name, (gpointer)row->name, row);
    }
}

static uint64_t
self_of(const View *view, const UprofName *name)
{
    const UprofProfileRow *row = g_hash_table_lookup(view->by_name, name);

    return row ? row->self : 0;
}

static bool
is_in_top(const View *view, const UprofName *name)
{
    for (guint i = 0; i < view->rows->len && i < TOP; i++)
        if (g_array_index(view->rows, UprofProfileRow, i).name == name)
            return true;
    return false;
}

/* ---- Text ---- */

static void
append_tenths(GString *out, uint64_t tenths)
{
    g_string_append_printf(out, "%" G_GUINT64_FORMAT ".%u", tenths / 10, (unsigned)(tenths % 10));
}

/* "+1.3", "new", "." if chance may explain it, "-" if there is nothing to compare with */
static char *
format_change(const View *view, const View *before, const UprofName *name)
{
    const UprofChange change =
        uprof_change_of(self_of(before, name), before->all, self_of(view, name), view->all);
    const uint64_t tenths = ((uint64_t)ABS(change.ppm) + PPM_PER_TENTH / 2) / PPM_PER_TENTH;

    if (before->all == 0)
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
has_changed(const View *view, const View *before, const UprofName *name)
{
    return uprof_change_of(self_of(before, name), before->all, self_of(view, name), view->all)
        .is_significant;
}

static void
append_top(GString *out, const View views[N_SIDES])
{
    const View *view = &views[THIS_DAY], *before = &views[DAY_BEFORE];

    if (view->all == 0)
        return;
    g_string_append(out, "    self   total  day before  week before  function\n");
    for (guint i = 0; i < view->rows->len && i < TOP; i++) {
        const UprofProfileRow *row = &g_array_index(view->rows, UprofProfileRow, i);
        if (row->self == 0)
            return;
        g_autofree char *self = uprof_format_percent(row->self, view->all);
        g_autofree char *total = uprof_format_percent(row->total, view->all);
        g_autofree char *day = format_change(view, before, row->name);
        g_autofree char *week = format_change(view, &views[WEEK_BEFORE], row->name);
        const bool is_new_here = before->all > 0 && !is_in_top(before, row->name) &&
                                 has_changed(view, before, row->name);
        g_string_append_printf(out, "  %6s  %6s  %10s  %11s  %s%s\n", self, total, day, week,
                               uprof_name_text(row->name),
                               is_new_here ? "   <- new among the top" : "");
    }
}

/* What was among the top of the day before, and is not any more. */
static void
append_gone(GString *out, const View views[N_SIDES])
{
    const View *view = &views[THIS_DAY], *before = &views[DAY_BEFORE];
    unsigned n = 0;

    for (guint i = 0; view->all > 0 && i < before->rows->len && i < TOP && n < GONE_MAX; i++) {
        const UprofProfileRow *row = &g_array_index(before->rows, UprofProfileRow, i);
        if (is_in_top(view, row->name) || !has_changed(view, before, row->name))
            continue;
        g_autofree char *was = uprof_format_percent(row->self, before->all);
        g_autofree char *is = uprof_format_percent(self_of(view, row->name), view->all);
        g_string_append_printf(out, "%s%s (%s to %s %%)",
                               n++ == 0 ? "  no longer among the top: " : ", ",
                               uprof_name_text(row->name), was, is);
    }
    if (n > 0)
        g_string_append_c(out, '\n');
}

static void
append_quality(GString *out, const View *view)
{
    const UprofRun *run = view->load->run;
    g_autofree char *running = uprof_format_percent(run->running, run->samples);
    g_autofree char *complete = uprof_format_percent(run->complete, run->running);
    g_autofree char *time = uprof_format_ns(run->duration_ns);
    const unsigned n = view->load->n_profiles;

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
                               " late, %" G_GUINT64_FORMAT " busy, %" G_GUINT64_FORMAT
                               " without room, %" G_GUINT64_FORMAT " not stopped in time\n",
                               run->late, run->busy, run->skipped, run->stuck);
}

static int
compare_counts(const void *a, const void *b, void *data)
{
    GHashTable *counts = data;
    const char *one = *(char *const *)a, *other = *(char *const *)b;
    const unsigned n_one = GPOINTER_TO_UINT(g_hash_table_lookup(counts, one));
    const unsigned n_other = GPOINTER_TO_UINT(g_hash_table_lookup(counts, other));

    return n_one != n_other ? (n_one > n_other ? -1 : 1) : strcmp(one, other);
}

static void
append_failures(GString *out, const Subject *subject)
{
    g_autoptr(GHashTable) counts = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) kinds = g_ptr_array_new();

    for (guint i = 0; i < subject->reasons->len; i++) {
        char *reason = g_ptr_array_index(subject->reasons, i);
        const unsigned n = GPOINTER_TO_UINT(g_hash_table_lookup(counts, reason));
        if (n == 0)
            g_ptr_array_add(kinds, reason);
        g_hash_table_insert(counts, reason, GUINT_TO_POINTER(n + 1));
    }
    if (kinds->len == 0)
        return;
    g_ptr_array_sort_with_data(kinds, compare_counts, counts);
    g_string_append_printf(out, "  without a profile: %u round%s: ", subject->reasons->len,
                           subject->reasons->len == 1 ? "" : "s");
    for (guint i = 0; i < kinds->len && i < REASONS_MAX; i++) {
        const char *reason = g_ptr_array_index(kinds, i);
        g_string_append_printf(out, "%s%s (%u)", i > 0 ? "; " : "", reason,
                               GPOINTER_TO_UINT(g_hash_table_lookup(counts, reason)));
    }
    g_string_append(out, kinds->len > REASONS_MAX ? "; and others\n" : "\n");
}

static void
append_subject(GString *out, const Subject *subject, GPtrArray *const picks[N_SIDES], int *code)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    View views[N_SIDES] = { 0 };

    g_string_append_printf(out, "\n%s (%s)\n", subject->name,
                           subject->uuid ? subject->uuid : "UUID not known");
    append_failures(out, subject);
    if (!subject->uuid)
        return;
    for (unsigned i = 0; i < N_SIDES; i++)
        view_init(&views[i], names, picks[i], subject->uuid, code);
    if (views[THIS_DAY].load->n_files > 0) {
        append_quality(out, &views[THIS_DAY]);
        append_cost(out, views[THIS_DAY].load->run);
        append_top(out, views);
        append_gone(out, views);
    }
    for (unsigned i = 0; i < N_SIDES; i++)
        view_clear(&views[i]);
}

GString *
uprof_digest_render(const UprofStock *stock, int64_t day_s, bool is_over, int *code)
{
    g_autofree char *day = uprof_store_format_day(day_s);
    GPtrArray *picks[N_SIDES];
    UprofStockGaps gaps = { 0 };
    GString *out = NULL;

    for (unsigned i = 0; i < N_SIDES; i++) {
        const int64_t start_s = day_s - days_ago[i] * (int64_t)UPROF_STORE_DAY_S;
        picks[i] = uprof_stock_pick(stock, start_s, start_s + UPROF_STORE_DAY_S, NULL, &gaps);
    }
    g_autoptr(GPtrArray) subjects = find_subjects(stock, picks[THIS_DAY], day_s);
    if (gaps.n_damaged > 0)
        *code = uprof_exit_worse(*code, UPROF_EXIT_FAILED);
    if (subjects->len > 0) {
        out = g_string_new(NULL);
        g_string_append_printf(out,
                               "%s UTC%s: %u domain%s. Percent of running samples; changes in "
                               "points, those beyond chance.\n",
                               day, is_over ? "" : ", so far", subjects->len,
                               subjects->len == 1 ? "" : "s");
    }
    for (guint i = 0; i < subjects->len; i++)
        append_subject(out, g_ptr_array_index(subjects, i), picks, code);
    for (unsigned i = 0; i < N_SIDES; i++)
        g_ptr_array_unref(picks[i]);
    return out;
}
