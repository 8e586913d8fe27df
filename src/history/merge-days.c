/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "merge-days-priv.h"

#include "uprof/error.h"
#include "uprof/output.h"
#include "uprof/sorted.h"
#include "uprof/time-text.h"

#include "shrink-priv.h"
#include "store-priv.h"
#include "stored-profile-priv.h"

#include <string.h>

enum { NAMES_MAX = 4 * UPROF_PROFILE_NAMES_MAX };

/* One day of a folder. */
typedef struct {
    const UprofMergeSettings *settings; /* borrowed */
    UprofStoreFolder *folder;           /* borrowed */
    int64_t day_s;                      /* 00:00 UTC, since 1970 */
    GArray *closed;                     /* of ClosedDay: one for each domain in the folder */
    bool is_unsure;                     /* a closed day cannot be read, so its slices are unknown */
    UprofErrorCode code;
} Closing;

/* A closed profile of the day, from an earlier merge. */
typedef struct {
    const UprofStoreItem *item; /* borrowed */
    UprofRun *run;              /* owned; its facts */
} ClosedDay;

/* The sum of several files. The first frame of each stack is the domain. */
typedef struct {
    UprofNames *names;     /* borrowed */
    UprofProfile *profile; /* (nullable): owned; made when the first file is added */
} Adding;

static void
clear_closed_day(gpointer data)
{
    uprof_run_free(((ClosedDay *)data)->run);
}

static void
free_group(gpointer data)
{
    g_ptr_array_unref(data);
}

/* ---- Writing ---- */

static void
add_stack(const UprofSlice *frames, unsigned n, bool is_cut, uint64_t count, void *data)
{
    Adding *adding = data;
    const UprofName *into[UPROF_FOLDED_FRAMES_MAX + 1];
    unsigned n_into = 0;

    if (is_cut)
        into[n_into++] = uprof_names_marker(adding->names, "[truncated]");
    for (unsigned i = n > 1 ? 1 : 0; i < n; i++)
        into[n_into++] = uprof_names_read_back(adding->names, frames[i]);
    uprof_profile_add(adding->profile, into, n_into, count);
}

static UprofSlice
slice_of(const GString *text)
{
    return (UprofSlice){ text->str, text->len };
}

/* Packs the profile, and first shrinks it if uprof_stored_read() could not read it. */
static GString *
pack_profile(const Closing *closing, const char *stem, const UprofProfile *profile,
             const UprofRun *run)
{
    uint64_t n_lost = 0;

    for (uint64_t max = UPROF_STORED_TEXT_MAX;; max /= 2) {
        g_autoptr(UprofProfile) shrunk = uprof_shrink_profile(profile, max, &n_lost);
        GString *packed =
            uprof_output_render(&uprof_format_folded_gz, shrunk ? shrunk : profile, run);
        if (packed->len > UPROF_STORED_PACKED_MAX) {
            g_string_free(packed, TRUE);
            continue;
        }
        if (n_lost > 0)
            uprof_notice(closing->settings->notices, UPROF_NOTICE_WARNING,
                         "data/%s/%s is too large; its rarest stacks, of %" G_GUINT64_FORMAT
                         " samples, are [unknown] now",
                         closing->folder->name, stem, n_lost);
        return packed;
    }
}

static bool
write_day(const Closing *closing, const char *stem, const UprofProfile *profile, UprofRun *run,
          GError **error)
{
    const UprofStoreFolder *folder = closing->folder;
    GString *packed = pack_profile(closing, stem, profile, run);

    g_free(run->profile_sha256);
    run->profile_sha256 = uprof_stored_digest(packed->str, packed->len);
    g_ptr_array_set_size(run->files, 0);
    g_ptr_array_add(run->files, g_strconcat(stem, UPROF_STORE_PROFILE, NULL));
    GString *facts = uprof_output_render(&uprof_format_meta, profile, run);
    const bool is_replaced =
        uprof_store_write(folder, stem, UPROF_STORE_PENDING, slice_of(facts), error) &&
        uprof_store_write(folder, stem, UPROF_STORE_PROFILE, slice_of(packed), error);
    /* if the stacks are new and only the rename fails, the next run renames the pending sidecar */
    if (!is_replaced)
        uprof_store_remove_one(folder, stem, UPROF_STORE_PENDING, NULL);
    g_string_free(packed, TRUE);
    g_string_free(facts, TRUE);
    return is_replaced &&
           uprof_store_rename(folder, stem, UPROF_STORE_PENDING, UPROF_STORE_SIDECAR, error);
}

/* ---- One domain's slices of a day ---- */

static const ClosedDay *
find_closed_day(const Closing *closing, const char *uuid)
{
    for (guint i = 0; i < closing->closed->len; i++) {
        const ClosedDay *day = &g_array_index(closing->closed, ClosedDay, i);
        if (strcmp(day->run->uuid, uuid) == 0)
            return day;
    }
    return NULL;
}

/* Names a new closed day. The name has the UUID if another domain has the name without UUID. */
static char *
choose_stem(const Closing *closing, const char *uuid)
{
    const UprofStoreFolder *folder = closing->folder;
    char mark[UPROF_STORE_UUID_BYTES];
    g_autofree char *plain = uprof_store_stem(folder->name, closing->day_s, true, NULL);

    if (uprof_store_has(folder, plain, UPROF_STORE_SIDECAR) && uprof_store_uuid_digits(uuid, mark))
        return uprof_store_stem(folder->name, closing->day_s, true, mark);
    return g_steal_pointer(&plain);
}

static void
warn_of_damage(Closing *closing, const GError *error)
{
    uprof_notice(closing->settings->notices, UPROF_NOTICE_WARNING,
                 "%s; left out of the day, and not deleted", error->message);
    closing->code = uprof_error_merge(closing->code, UPROF_ERROR_FAILED);
}

/* Returns: false if the profile is damaged; a warning was sent */
static bool
add_profile(Closing *closing, Adding *adding, const UprofStoreItem *item, UprofRun *run,
            bool is_first)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStored) stored = uprof_stored_read(closing->folder, item, &error);

    if (!stored) {
        warn_of_damage(closing, error);
        return false;
    }
    if (is_first) {
        const UprofSlice name = { stored->run->domain, strlen(stored->run->domain) };
        adding->profile =
            uprof_profile_new(adding->names, uprof_names_intern(adding->names, name), true);
    }
    uprof_stored_walk(stored, add_stack, adding);
    uprof_stored_merge(run, stored->run, is_first);
    if (item->is_day) {
        g_array_append_vals(run->slices, stored->run->slices->data, stored->run->slices->len);
    } else {
        const uint32_t second = (uint32_t)(item->start_s - closing->day_s);
        g_array_append_val(run->slices, second);
    }
    return true;
}

static void
merge_group(Closing *closing, const char *uuid, const GPtrArray *slices)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofRun) run = uprof_run_new();
    g_autoptr(GError) error = NULL;
    const ClosedDay *day = find_closed_day(closing, uuid);
    Adding adding = { .names = names };
    unsigned n = 0;

    uprof_names_limit(names, NAMES_MAX);
    if (day && !add_profile(closing, &adding, day->item, run, true))
        return; /* after the damaged file is removed, a later run merges the slices */
    for (guint i = 0; i < slices->len; i++)
        n += add_profile(closing, &adding, g_ptr_array_index(slices, i), run, !adding.profile);
    g_autoptr(UprofProfile) profile = adding.profile;
    if (n == 0)
        return;
    closing->settings->show_day(closing->day_s, n);
    if (closing->settings->dry_run)
        return;
    qsort(run->slices->data, run->slices->len, sizeof(uint32_t), uprof_compare_u32);
    g_free(run->uuid);
    run->uuid = g_strdup(uuid);
    g_autofree char *stem = day ? g_strdup(day->item->stem) : choose_stem(closing, uuid);
    if (!write_day(closing, stem, profile, run, &error))
        closing->code =
            uprof_error_merge(closing->code, uprof_notice_error(closing->settings->notices, error));
}

/* ---- A day ---- */

static void
skip_day(Closing *closing, const GError *error)
{
    g_autofree char *day = uprof_time_format_date(closing->day_s);

    uprof_notice(closing->settings->notices, UPROF_NOTICE_WARNING,
                 "%s; profiles of %s are not merged until this is repaired", error->message, day);
    closing->is_unsure = true;
    closing->code = uprof_error_merge(closing->code, UPROF_ERROR_FAILED);
}

/* Completes or undoes interrupted merges, and then reads the facts of the closed days. */
static void
read_closed_days(Closing *closing)
{
    UprofStoreFolder *folder = closing->folder;

    for (guint i = 0; i < folder->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(folder, i);
        g_autoptr(GError) error = NULL;
        if (!item->is_day || item->start_s != closing->day_s)
            continue;
        if (!closing->settings->dry_run && !uprof_stored_recover(folder, item, &error)) {
            skip_day(closing, error);
            continue;
        }
        if (!uprof_store_item_is_complete(item))
            continue;
        ClosedDay day = { item, uprof_stored_facts(folder, item, &error) };
        if (day.run)
            g_array_append_val(closing->closed, day);
        else
            skip_day(closing, error);
    }
}

static bool
is_counted(const Closing *closing, const UprofStoreItem *slice)
{
    for (guint i = 0; i < closing->closed->len; i++)
        if (uprof_stored_has_slice(g_array_index(closing->closed, ClosedDay, i).run,
                                   slice->start_s))
            return true;
    return false;
}

/* If no closed day has counted the slice, adds it to the list of its domain. */
static void
group_slice(Closing *closing, UprofStoreItem *item, GHashTable *groups)
{
    g_autoptr(GError) error = NULL;

    if (item->is_day || !uprof_store_item_is_complete(item) ||
        uprof_time_day_start(item->start_s) != closing->day_s || is_counted(closing, item))
        return;
    g_autoptr(UprofRun) run = uprof_stored_facts(closing->folder, item, &error);
    if (!run) {
        warn_of_damage(closing, error);
        return;
    }
    GPtrArray *group = g_hash_table_lookup(groups, run->uuid);
    if (!group) {
        group = g_ptr_array_new();
        g_hash_table_insert(groups, g_strdup(run->uuid), group);
    }
    g_ptr_array_add(group, item);
}

static void
close_day(Closing *closing)
{
    g_autoptr(GHashTable) groups =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_group);

    read_closed_days(closing);
    if (closing->is_unsure)
        return;
    for (guint i = 0; i < closing->folder->items->len; i++)
        group_slice(closing, uprof_store_item(closing->folder, i), groups);
    g_autoptr(GList) uuids = g_list_sort(g_hash_table_get_keys(groups), (GCompareFunc)strcmp);
    for (GList *at = uuids; at; at = at->next)
        merge_group(closing, at->data, g_hash_table_lookup(groups, at->data));
}

UprofErrorCode
uprof_merge_days(UprofStoreFolder *folder, const UprofMergeSettings *settings)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    int64_t last_s = -1;

    for (guint i = 0; i < folder->items->len; i++) {
        const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, i)->start_s);
        if (day_s >= settings->today_s || day_s == last_s)
            continue;
        last_s = day_s;
        Closing closing = {
            .settings = settings,
            .folder = folder,
            .day_s = day_s,
            .closed = g_array_new(FALSE, FALSE, sizeof(ClosedDay)),
        };
        g_array_set_clear_func(closing.closed, clear_closed_day);
        close_day(&closing);
        g_array_unref(closing.closed);
        code = uprof_error_merge(code, closing.code);
    }
    return code;
}
