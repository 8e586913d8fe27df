/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "catalog-priv.h"

#include "uprof/error.h"
#include "uprof/text.h"
#include "uprof/time-text.h"
#include "uprof/word-distance.h"

#include "failures-priv.h"
#include "store-priv.h"
#include "stored-profile-priv.h"

#include <string.h>

struct _UprofCatalog {
    GPtrArray *folders;          /* owned; of UprofStoreFolder */
    const UprofNotices *notices; /* (nullable): borrowed */
};

static void
free_folder(gpointer folder)
{
    uprof_store_folder_close(folder);
}

static void
free_selected(gpointer data)
{
    UprofSelected *selected = data;

    uprof_run_free(selected->run);
    g_free(selected);
}

static void
free_run(gpointer run)
{
    uprof_run_free(run);
}

UprofCatalog *
uprof_catalog_new(UprofStore *store, const UprofNotices *notices, UprofErrorCode *code)
{
    UprofCatalog *catalog = g_new0(UprofCatalog, 1);
    g_autoptr(GPtrArray) names = uprof_store_folders(store);

    catalog->notices = notices;
    catalog->folders = g_ptr_array_new_with_free_func(free_folder);
    for (guint i = 0; i < names->len; i++) {
        g_autoptr(GError) error = NULL;
        UprofStoreFolder *folder =
            uprof_store_folder_open(store, g_ptr_array_index(names, i), &error);
        if (folder)
            g_ptr_array_add(catalog->folders, folder);
        else
            *code = uprof_error_merge(*code, uprof_notice_error(notices, error));
    }
    return catalog;
}

GPtrArray *
uprof_catalog_paths(const UprofCatalog *catalog)
{
    GPtrArray *paths = g_ptr_array_new();

    for (guint i = 0; i < catalog->folders->len; i++)
        g_ptr_array_add(paths,
                        ((const UprofStoreFolder *)g_ptr_array_index(catalog->folders, i))->path);
    return paths;
}

void
uprof_catalog_free(UprofCatalog *catalog)
{
    if (!catalog)
        return;
    g_ptr_array_unref(catalog->folders);
    g_free(catalog);
}

const GPtrArray *
uprof_catalog_folders(const UprofCatalog *catalog)
{
    return catalog->folders;
}

void
uprof_catalog_set_notices(UprofCatalog *catalog, const UprofNotices *notices)
{
    catalog->notices = notices;
}

/* ---- Which domain ---- */

/* Can @folder be the folder of a domain @word? The folder's name may be a part of a long name. */
static bool
may_be_folder(const char *folder, const char *word)
{
    g_autofree char *safe = uprof_store_safe_name(word, "");
    const char *cut = strchr(safe, '~');

    return cut ? strncmp(folder, safe, (size_t)(cut - safe) + 1) == 0 : strcmp(folder, safe) == 0;
}

/* Returns: (nullable): facts of the last profile whose domain has the name @shown */
static UprofRun *
find_last_profile(const UprofStoreFolder *folder, const char *shown, int64_t *start_s)
{
    for (guint i = folder->items->len; i > 0; i--) {
        const UprofStoreItem *item = uprof_store_item(folder, i - 1);
        if (!uprof_store_item_is_complete(item))
            continue;
        g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, NULL);
        if (!run || strcmp(run->domain, shown) != 0)
            continue;
        *start_s = item->start_s;
        return g_steal_pointer(&run);
    }
    return NULL;
}

static void
take_uuid(const UprofStoreFolder *folder, const char *uuid, int64_t at_s, const char *reason,
          void *data)
{
    char **last = data;

    g_free(*last);
    *last = g_strdup(uuid);
}

/* Returns: (transfer full) (nullable): the UUID of a domain whose rounds have all failed */
static char *
find_failed_domain(const UprofCatalog *catalog, const char *word)
{
    char *uuid = NULL;

    for (guint i = 0; !uuid && i < catalog->folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(catalog->folders, i);
        for (guint j = folder->items->len; !uuid && j > 0; j--) {
            const UprofStoreItem *item = uprof_store_item(folder, j - 1);
            if (item->has_failures && may_be_folder(folder->name, word))
                uprof_failures_read(folder, item, take_uuid, &uuid);
        }
    }
    return uuid;
}

/*
 * Folders of long names, and of names with unusual characters, have other names than the domains.
 *
 * Returns: (nullable): the name of a domain with a name like @word
 */
static const char *
find_similar(const UprofCatalog *catalog, const char *word)
{
    unsigned nearest = UPROF_WORD_FAR;
    const char *similar = NULL;

    for (guint i = 0; i < catalog->folders->len; i++) {
        const char *name = ((const UprofStoreFolder *)g_ptr_array_index(catalog->folders, i))->name;
        if (!strpbrk(name, "%~") && !may_be_folder(name, word) &&
            uprof_word_is_closer(word, name, &nearest))
            similar = name;
    }
    return similar;
}

static void
fail_unknown_domain(const UprofCatalog *catalog, const char *word, GError **error)
{
    const char *similar = find_similar(catalog, word);
    g_autofree char *shown = uprof_text_quote(word);
    g_autofree char *hint = similar ? g_strdup_printf(" (did you mean '%s'?)", similar) : NULL;

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                "no profile of '%s' is stored%s; 'virt-uprof collect' stores profiles of enabled "
                "domains",
                shown, hint ? hint : "");
}

char *
uprof_catalog_find_domain(const UprofCatalog *catalog, const char *word, GError **error)
{
    g_autofree char *shown = uprof_text_quote(word);
    g_autofree char *uuid = NULL;
    int64_t start_s, last_s = -1;

    if (g_uuid_string_is_valid(word))
        return g_ascii_strdown(word, -1);
    for (guint i = 0; i < catalog->folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(catalog->folders, i);
        if (!may_be_folder(folder->name, word))
            continue;
        g_autoptr(UprofRun) run = find_last_profile(folder, shown, &start_s);
        if (!run || start_s < last_s)
            continue;
        last_s = start_s;
        g_free(uuid);
        uuid = g_steal_pointer(&run->uuid);
    }
    if (!uuid)
        uuid = find_failed_domain(catalog, word);
    if (!uuid)
        fail_unknown_domain(catalog, word, error);
    return g_steal_pointer(&uuid);
}

/* ---- Selecting ---- */

typedef struct {
    const UprofNotices *notices; /* (nullable): borrowed */
    int64_t since_s, until_s;    /* seconds since 1970 */
    const char *uuid;            /* (nullable): borrowed; of the only domain to select */
    GPtrArray *selection;        /* of UprofSelected */
    UprofOmissions *omissions;   /* borrowed */
} Selecting;

/* The items of one folder and one day. */
typedef struct {
    const UprofStoreFolder *folder;
    int64_t day_s;     /* 00:00 UTC, since 1970 */
    guint first, end;  /* in the items of @folder */
    bool is_complete;  /* the whole day is selected */
    GPtrArray *closed; /* of UprofRun, borrowed: the closed days that are selected */
} DayOf;

static void
warn_of_damage(Selecting *selecting, const GError *error)
{
    selecting->omissions->n_damaged++;
    uprof_notice(selecting->notices, UPROF_NOTICE_WARNING, "%s; left out", error->message);
}

static bool
is_wanted(const Selecting *selecting, const UprofRun *run)
{
    return !selecting->uuid || strcmp(run->uuid, selecting->uuid) == 0;
}

static void
add_profile(Selecting *selecting, const DayOf *day, const UprofStoreItem *item, UprofRun *run)
{
    UprofSelected *selected = g_new0(UprofSelected, 1);

    *selected = (UprofSelected){ day->folder, item, run };
    g_ptr_array_add(selecting->selection, selected);
}

/* Has one of the closed days counted the slice of @start_s? @days: of UprofRun */
static bool
is_counted(const GPtrArray *days, int64_t start_s)
{
    for (guint i = 0; i < days->len; i++)
        if (uprof_stored_has_slice(g_ptr_array_index(days, i), start_s))
            return true;
    return false;
}

static bool
has_slice(const DayOf *day, int64_t start_s)
{
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day && item->start_s == start_s && uprof_store_item_is_complete(item))
            return true;
    }
    return false;
}

/* Counts the selected slices that were deleted after the day was closed. */
static void
count_deleted(Selecting *selecting, const DayOf *day, const UprofRun *closed)
{
    for (guint i = 0; i < closed->slices->len; i++) {
        const int64_t start_s = day->day_s + g_array_index(closed->slices, uint32_t, i);
        selecting->omissions->n_deleted += start_s >= selecting->since_s &&
                                           start_s < selecting->until_s && !has_slice(day, start_s);
    }
}

/* Selects a closed day if the whole day and its domain are selected. */
static void
select_closed_day(Selecting *selecting, DayOf *day, const UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) facts = uprof_stored_facts(day->folder, item, &error);

    if (facts && day->is_complete && is_wanted(selecting, facts)) {
        /* reads the stacks: if these are damaged, the slices of the day are selected instead */
        UprofRun *run = uprof_stored_facts_of_stacks(day->folder, item, &error);
        if (run) {
            g_ptr_array_add(day->closed, run);
            add_profile(selecting, day, item, run);
        }
    } else if (facts && is_wanted(selecting, facts)) {
        count_deleted(selecting, day, facts);
    }
    if (error)
        warn_of_damage(selecting, error);
}

static void
select_slice(Selecting *selecting, const DayOf *day, const UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;

    if (item->start_s < selecting->since_s || item->start_s >= selecting->until_s ||
        (day->is_complete && is_counted(day->closed, item->start_s)))
        return;
    g_autoptr(UprofRun) run = uprof_stored_facts(day->folder, item, &error);
    if (!run)
        warn_of_damage(selecting, error);
    else if (is_wanted(selecting, run))
        add_profile(selecting, day, item, g_steal_pointer(&run));
}

static void
select_day(Selecting *selecting, DayOf *day)
{
    /* closed days come first: a slice is only selected if no closed day has counted it */
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (uprof_store_item_is_complete(item) && item->is_day)
            select_closed_day(selecting, day, item);
    }
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (uprof_store_item_is_complete(item) && !item->is_day)
            select_slice(selecting, day, item);
    }
}

static void
select_folder(Selecting *selecting, const UprofStoreFolder *folder)
{
    guint i = 0;

    while (i < folder->items->len) {
        const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, i)->start_s);
        const int64_t end_s = day_s + UPROF_DAY_S;
        DayOf day = {
            .folder = folder,
            .day_s = day_s,
            .first = i,
            .is_complete = selecting->since_s <= day_s && end_s <= selecting->until_s,
        };
        while (i < folder->items->len && uprof_store_item(folder, i)->start_s < end_s)
            i++;
        day.end = i;
        if (end_s <= selecting->since_s || day_s >= selecting->until_s)
            continue;
        day.closed = g_ptr_array_new();
        select_day(selecting, &day);
        g_ptr_array_unref(day.closed);
    }
}

GPtrArray *
uprof_catalog_select(const UprofCatalog *catalog, int64_t since_s, int64_t until_s,
                     const char *uuid, UprofOmissions *omissions)
{
    Selecting selecting = {
        .notices = catalog->notices,
        .since_s = since_s,
        .until_s = until_s,
        .uuid = uuid,
        .selection = g_ptr_array_new_with_free_func(free_selected),
        .omissions = omissions,
    };

    for (guint i = 0; i < catalog->folders->len; i++)
        select_folder(&selecting, g_ptr_array_index(catalog->folders, i));
    return selecting.selection;
}

char *
uprof_catalog_describe_range(const UprofCatalog *catalog)
{
    int64_t first_s = INT64_MAX, last_s = INT64_MIN;

    for (guint i = 0; i < catalog->folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(catalog->folders, i);
        for (guint j = 0; j < folder->items->len; j++) {
            const UprofStoreItem *item = uprof_store_item(folder, j);
            if (!uprof_store_item_is_complete(item))
                continue;
            first_s = MIN(first_s, item->start_s);
            last_s = MAX(last_s, item->start_s);
        }
    }
    if (last_s < first_s)
        return g_strdup("no day");
    g_autofree char *first = uprof_time_format_date(first_s);
    g_autofree char *last = uprof_time_format_date(last_s);
    return strcmp(first, last) == 0 ? g_strdup(first) : g_strdup_printf("%s to %s", first, last);
}

/* ---- Loading ---- */

const char *
uprof_selection_name(const GPtrArray *selection, const char *uuid)
{
    const UprofSelected *last = NULL;

    for (guint i = 0; i < selection->len; i++) {
        const UprofSelected *selected = g_ptr_array_index(selection, i);
        if (strcmp(selected->run->uuid, uuid) == 0 &&
            (!last || selected->item->start_s >= last->item->start_s))
            last = selected;
    }
    return last ? last->run->domain : NULL;
}

/*
 * The closed profiles of one folder and one day that were loaded. If `prune` ran after the
 * selection was made, a profile can have counted more slices than the selection knows.
 */
typedef struct {
    const UprofStoreFolder *folder;
    int64_t day_s;
    GPtrArray *runs; /* of UprofRun */
    unsigned n_slices;
} Loading;

static void
begin_day(Loading *loading, const UprofSelected *selected)
{
    const int64_t day_s = uprof_time_day_start(selected->item->start_s);

    if (loading->folder != selected->folder || loading->day_s != day_s)
        g_ptr_array_set_size(loading->runs, 0);
    loading->folder = selected->folder;
    loading->day_s = day_s;
}

static UprofErrorCode
load_profile(UprofLoad *load, const UprofSelected *selected, Loading *loading, const char *name)
{
    g_autoptr(GError) error = NULL;

    begin_day(loading, selected);
    if (!selected->item->is_day && is_counted(loading->runs, selected->item->start_s))
        return UPROF_ERROR_NONE;
    g_autoptr(UprofStored) stored = uprof_stored_read(selected->folder, selected->item, &error);
    if (!stored) {
        uprof_notice(load->settings->notices, UPROF_NOTICE_WARNING, "%s; left out", error->message);
        load->is_partial = true;
        return UPROF_ERROR_FAILED;
    }
    const UprofSlice text = { stored->text->data, stored->text->len };
    const UprofErrorCode code =
        uprof_load_add_text(load, text, name, stored->run, uprof_stored_merge);
    loading->n_slices += MAX(stored->run->slices->len, 1);
    if (selected->item->is_day)
        g_ptr_array_add(loading->runs, g_steal_pointer(&stored->run));
    return code;
}

UprofErrorCode
uprof_selection_load(const GPtrArray *selection, const char *uuid, UprofLoad *load,
                     unsigned *n_slices)
{
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(free_run);
    const char *name = uprof_selection_name(selection, uuid);
    Loading loading = { .runs = runs };
    UprofErrorCode code = UPROF_ERROR_NONE;

    for (guint i = 0; i < selection->len; i++) {
        const UprofSelected *selected = g_ptr_array_index(selection, i);
        if (strcmp(selected->run->uuid, uuid) == 0)
            code = uprof_error_merge(code, load_profile(load, selected, &loading, name));
    }
    if (n_slices)
        *n_slices = loading.n_slices;
    return code;
}
