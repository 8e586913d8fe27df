/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/history-picture.h"

#include "uprof/output.h"
#include "uprof/sorted.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "failures-priv.h"

#include <string.h>

/* A stored profile of the picture */
typedef struct {
    const UprofStoreFolder *folder; /* borrowed */
    const UprofStoreItem *item;     /* borrowed */
    char *uuid;                     /* owned */
    char *name;                     /* owned (nullable): of the domain */
} Source;

typedef struct {
    const UprofHistoryQuery *query; /* borrowed */
    char *uuid;                     /* owned (nullable): of the only domain */
    GPtrArray *sources;             /* of Source, by time */
    GArray *failures;               /* of int64_t: times of rounds without a profile */
    int64_t first_s, last_s;        /* times of all of these */
    UprofErrorCode code;
} Search;

static void
free_source(gpointer data)
{
    Source *source = data;

    g_free(source->uuid);
    g_free(source->name);
    g_free(source);
}

static void
free_run(gpointer run)
{
    uprof_run_free(run);
}

/* ---- Which profiles ---- */

/* Can the item be one of domain @uuid? Most names of files have its digits. */
static bool
may_belong(const UprofStoreItem *item, const char *uuid)
{
    if (!uuid || !item->uuid_digits[0])
        return true;
    for (const char *at = uuid, *digit = item->uuid_digits; *at; at++)
        if (*at != '-' && *at != *digit++)
            return false;
    return true;
}

/* Returns: (transfer full) (nullable): %NULL if the domain is another one, or after a warning */
static UprofRun *
read_facts(Search *search, const UprofStoreFolder *folder, const UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;

    if (!may_belong(item, search->uuid))
        return NULL;
    g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, &error);
    if (error)
        search->code =
            uprof_error_merge(search->code, uprof_notice_error(search->query->notices, error));
    if (!run || (search->uuid && strcmp(run->uuid, search->uuid) != 0))
        return NULL;
    return g_steal_pointer(&run);
}

static void
add_source(Search *search, const UprofStoreFolder *folder, const UprofStoreItem *item,
           const UprofRun *run)
{
    Source *source = g_new0(Source, 1);

    source->folder = folder;
    source->item = item;
    source->uuid = g_strdup(run->uuid);
    source->name = g_strdup(run->domain);
    g_ptr_array_add(search->sources, source);
}

/* The items from @first up to @end are those of a day. */
typedef struct {
    const UprofStoreFolder *folder;
    guint first, end;
    GPtrArray *closed; /* of UprofRun: closed days that are drawn as one sum */
} DayOf;

static unsigned
count_slices(const DayOf *day, const UprofRun *closed)
{
    unsigned n = 0;

    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        n += !item->is_day && uprof_store_item_is_complete(item) &&
             uprof_stored_has_slice(closed, item->start_s);
    }
    return n;
}

/* A closed day counts unless all its rounds are still stored on their own. */
static void
add_closed_day(Search *search, DayOf *day, const UprofStoreItem *item)
{
    g_autoptr(UprofRun) run = read_facts(search, day->folder, item);

    if (!run || (run->slices->len > 0 && count_slices(day, run) >= run->slices->len))
        return;
    add_source(search, day->folder, item, run);
    g_ptr_array_add(day->closed, g_steal_pointer(&run));
}

static bool
is_counted(const DayOf *day, int64_t start_s)
{
    for (guint i = 0; i < day->closed->len; i++)
        if (uprof_stored_has_slice(g_ptr_array_index(day->closed, i), start_s))
            return true;
    return false;
}

static void
add_slice(Search *search, const DayOf *day, const UprofStoreItem *item)
{
    const UprofHistoryQuery *query = search->query;

    if (item->start_s < query->since_s || item->start_s >= query->until_s ||
        is_counted(day, item->start_s))
        return;
    g_autoptr(UprofRun) run = read_facts(search, day->folder, item);
    if (run)
        add_source(search, day->folder, item, run);
}

static void
add_day(Search *search, DayOf *day)
{
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (item->is_day && uprof_store_item_is_complete(item))
            add_closed_day(search, day, item);
    }
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day && uprof_store_item_is_complete(item))
            add_slice(search, day, item);
    }
}

static void
add_folder(Search *search, const UprofStoreFolder *folder)
{
    const int64_t since_s = uprof_time_day_start(search->query->since_s);
    guint i = 0;

    while (i < folder->items->len) {
        const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, i)->start_s);
        g_autoptr(GPtrArray) closed = g_ptr_array_new_with_free_func(free_run);
        DayOf day = { .folder = folder, .first = i, .closed = closed };
        while (i < folder->items->len && uprof_store_item(folder, i)->start_s < day_s + UPROF_DAY_S)
            i++;
        day.end = i;
        if (day_s >= since_s && day_s < search->query->until_s)
            add_day(search, &day);
    }
}

static int
compare_sources(gconstpointer a, gconstpointer b)
{
    const Source *one = *(Source *const *)a, *other = *(Source *const *)b;

    return UPROF_COMPARE(one->item->start_s, other->item->start_s);
}

/* Returns: false if the sources are of several domains */
static bool
check_domains(const Search *search, GError **error)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GString) list = g_string_new(NULL);

    for (guint i = 0; i < search->sources->len; i++) {
        const Source *source = g_ptr_array_index(search->sources, i);
        g_autofree char *name = uprof_text_quote(source->name ? source->name : source->uuid);
        if (g_hash_table_add(names, source->uuid))
            g_string_append_printf(list, "%s%s", list->len > 0 ? ", " : "", name);
    }
    if (g_hash_table_size(names) <= 1)
        return true;
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE,
                "a picture shows one domain; name one of: %s", list->str);
    return false;
}

static bool
find_sources(Search *search, GError **error)
{
    const UprofHistoryQuery *query = search->query;
    const GPtrArray *folders = uprof_catalog_folders(query->catalog);

    if (query->domain) {
        search->uuid = uprof_catalog_find_domain(query->catalog, query->domain, error);
        if (!search->uuid)
            return false;
    }
    for (guint i = 0; i < folders->len; i++)
        add_folder(search, g_ptr_array_index(folders, i));
    g_ptr_array_sort(search->sources, compare_sources);
    if (search->sources->len > 0)
        return check_domains(search, error);
    g_autofree char *stored = uprof_catalog_describe_range(query->catalog);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_EMPTY,
                "nothing was collected in that time; stored: %s", stored);
    return false;
}

/* ---- Which failures ---- */

static void
widen_range(Search *search, int64_t first_s, int64_t last_s)
{
    search->first_s = MIN(search->first_s, first_s);
    search->last_s = MAX(search->last_s, last_s);
}

static void
add_failure(const UprofStoreFolder *folder, const char *uuid, int64_t at_s, const char *reason,
            void *data)
{
    Search *search = data;
    const UprofHistoryQuery *query = search->query;
    const char *wanted = ((const Source *)g_ptr_array_index(search->sources, 0))->uuid;

    if (g_strcmp0(uuid, wanted) != 0 || at_s < query->since_s || at_s >= query->until_s)
        return;
    g_array_append_val(search->failures, at_s);
    widen_range(search, at_s, at_s);
}

static void
find_failures(Search *search)
{
    const GPtrArray *folders = uprof_catalog_folders(search->query->catalog);

    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const UprofStoreItem *item = uprof_store_item(folder, j);
            if (item->has_failures && item->start_s > search->query->since_s - UPROF_DAY_S)
                uprof_failures_read(folder, item, add_failure, search);
        }
    }
}

static void
find_range(Search *search)
{
    for (guint i = 0; i < search->sources->len; i++) {
        const UprofStoreItem *item = ((const Source *)g_ptr_array_index(search->sources, i))->item;
        widen_range(search, item->start_s, item->start_s + (item->is_day ? UPROF_DAY_S - 1 : 0));
    }
    find_failures(search);
}

/* ---- Their stacks ---- */

/* The rounds of one slot, or one closed day */
typedef struct {
    UprofCalendar *calendar;
    UprofNames *names;
    UprofProfile *stacks; /* (nullable) */
    int first, last;      /* slots */
    uint64_t samples, running;
} Part;

static void
add_stack(const UprofSlice *slices, unsigned n, bool is_cut, uint64_t count, void *data)
{
    const Part *part = data;
    const UprofName *frames[UPROF_FOLDED_FRAMES_MAX];

    for (unsigned i = 1; i < n; i++)
        frames[i - 1] = uprof_names_read_back(part->names, slices[i]);
    if (n > 1)
        uprof_profile_add(part->stacks, frames, n - 1, count);
}

static void
finish_part(Part *part)
{
    if (!part->stacks)
        return;
    uprof_calendar_add(part->calendar, (unsigned)part->first, (unsigned)part->last, part->stacks,
                       part->samples, part->running);
    g_clear_pointer(&part->stacks, uprof_profile_free);
    part->samples = part->running = 0;
}

/* Begins a part, unless the part that is being filled has the same slots. */
static void
begin_part(Part *part, int first, int last)
{
    if (part->stacks && part->first == first && part->last == last)
        return;
    finish_part(part);
    part->first = first;
    part->last = last;
    part->stacks =
        uprof_profile_new(part->names, uprof_profile_root(part->calendar->profile), true);
}

/* Returns: the last slot; of a closed day, the slot before that of the next day, because the time
 * zone can begin a day within an hour; -1 if the profile ends before the calendar */
static int
find_last_slot(const UprofCalendar *calendar, const UprofStoreItem *item, int first)
{
    if (!item->is_day)
        return first;
    const int next = uprof_calendar_find(calendar, item->start_s + UPROF_DAY_S);
    return next > 0 ? MAX(next - 1, first)
                    : uprof_calendar_find(calendar, item->start_s + UPROF_DAY_S - 1);
}

static void
add_profile(Search *search, const Source *source, Part *part)
{
    const int first = uprof_calendar_find(part->calendar, source->item->start_s);
    const int last = find_last_slot(part->calendar, source->item, first);
    g_autoptr(GError) error = NULL;

    if (last < 0)
        return;
    g_autoptr(UprofStored) stored = uprof_stored_read(source->folder, source->item, &error);
    if (!stored) {
        search->code =
            uprof_error_merge(search->code, uprof_notice_error(search->query->notices, error));
        return;
    }
    UprofRun *run = part->calendar->run;
    uprof_stored_merge(run, stored->run, !run->domain);
    begin_part(part, MAX(first, 0), last);
    uprof_stored_walk(stored, add_stack, part);
    part->samples += stored->run->samples;
    part->running += stored->run->running;
}

/* Returns: (transfer full) (nullable): %NULL if no profile could be read; warnings were sent */
static UprofCalendar *
fill_calendar(Search *search, UprofNames *names)
{
    const Source *last = g_ptr_array_index(search->sources, search->sources->len - 1);
    g_autoptr(UprofCalendar) calendar = uprof_calendar_new(
        names, last->name ? last->name : last->folder->name, search->first_s, search->last_s);
    Part part = { .calendar = calendar, .names = names };

    for (guint i = 0; i < search->sources->len; i++)
        add_profile(search, g_ptr_array_index(search->sources, i), &part);
    finish_part(&part);
    for (guint i = 0; i < search->failures->len; i++)
        uprof_calendar_fail(calendar, g_array_index(search->failures, int64_t, i));
    return calendar->run->domain ? g_steal_pointer(&calendar) : NULL;
}

GString *
uprof_history_draw(const UprofHistoryQuery *query, UprofErrorCode *code, GError **error)
{
    g_autoptr(GPtrArray) sources = g_ptr_array_new_with_free_func(free_source);
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(GArray) failures = g_array_new(FALSE, FALSE, sizeof(int64_t));
    Search search = {
        .query = query,
        .sources = sources,
        .failures = failures,
        .first_s = INT64_MAX,
        .last_s = INT64_MIN,
    };
    GString *text = NULL;

    uprof_names_limit(names, UPROF_PROFILE_NAMES_MAX);
    if (find_sources(&search, error)) {
        find_range(&search);
        g_autoptr(UprofCalendar) calendar = fill_calendar(&search, names);
        if (calendar)
            text = uprof_svg_history(calendar);
        else
            g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_FAILED,
                                "no profile of that time can be read");
    }
    *code = uprof_error_merge(*code, search.code);
    g_free(search.uuid);
    return text;
}
