/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "merge-priv.h"

#include "exit-priv.h"
#include "fit-priv.h"
#include "stored-priv.h"
#include "uprof/error.h"
#include "uprof/output.h"

#include <string.h>

enum { NAMES_MAX = 4 * UPROF_PROFILE_NAMES_MAX };

/**
 * Closing: one day of a folder
 * @days: of Day: what is closed already, of one or several UUIDs
 * @is_unsure: more is closed, and cannot be read: who knows which slices it has counted
 */
typedef struct {
    UprofStoreFolder *folder;
    int64_t day_s;
    GArray *days;
    bool is_unsure;
    bool dry_run;
    UprofMergeVisit visit;
    void *data;
    int code;
} Closing;

typedef struct {
    const UprofStoreItem *item;
    UprofRun *run;
} Day;

/* Stacks of several files, the first frame of each is the domain. */
typedef struct {
    UprofNames *names;
    UprofProfile *profile;
} Adding;

static void
clear_day(gpointer data)
{
    uprof_run_free(((Day *)data)->run);
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

static bool
write_file(const UprofStoreFolder *folder, const char *stem, const char *ending,
           const GString *bytes, GError **error)
{
    g_autofree char *path = g_strconcat(folder->path, "/", stem, ending, NULL);
    g_autoptr(UprofFile) file = uprof_file_open_own(path, error);

    return file && uprof_file_write(file, bytes->str, bytes->len, error) &&
           uprof_file_commit(g_steal_pointer(&file), error);
}

/* Packs what can be read back: what is too much for that is [unknown], and said. */
static GString *
pack(const UprofStoreFolder *folder, const char *stem, const UprofProfile *profile,
     const UprofRun *run)
{
    uint64_t n_lost = 0;

    for (uint64_t max = UPROF_STORED_TEXT_MAX;; max /= 2) {
        g_autoptr(UprofProfile) fitted = uprof_fit_profile(profile, max, &n_lost);
        GString *packed =
            uprof_output_render(&uprof_format_folded_gz, fitted ? fitted : profile, run);
        if (packed->len > UPROF_STORED_PACKED_MAX) {
            g_string_free(packed, TRUE);
            continue;
        }
        if (n_lost > 0)
            uprof_say(
                "virt-uprof: data/%s/%s is too large; its rarest stacks, of %" G_GUINT64_FORMAT
                " samples, are [unknown] now",
                folder->name, stem, n_lost);
        return packed;
    }
}

static bool
write_day(const UprofStoreFolder *folder, const char *stem, const UprofProfile *profile,
          UprofRun *run, GError **error)
{
    GString *packed = pack(folder, stem, profile, run);

    g_free(run->profile_sha256);
    run->profile_sha256 = uprof_stored_digest(packed->str, packed->len);
    g_ptr_array_set_size(run->files, 0);
    g_ptr_array_add(run->files, g_strconcat(stem, UPROF_STORE_PROFILE, NULL));
    GString *facts = uprof_output_render(&uprof_format_meta, profile, run);
    const bool is_replaced = write_file(folder, stem, UPROF_STORE_PENDING, facts, error) &&
                             write_file(folder, stem, UPROF_STORE_PROFILE, packed, error);
    /* once the stacks are new, only the pending sidecar tells of them: the next run renames it */
    if (!is_replaced)
        uprof_store_remove_one(folder, stem, UPROF_STORE_PENDING, NULL);
    g_string_free(packed, TRUE);
    g_string_free(facts, TRUE);
    return is_replaced &&
           uprof_store_rename(folder, stem, UPROF_STORE_PENDING, UPROF_STORE_SIDECAR, error);
}

/* ---- One domain's slices of a day ---- */

static const Day *
find_day(const Closing *closing, const char *uuid)
{
    for (guint i = 0; i < closing->days->len; i++) {
        const Day *day = &g_array_index(closing->days, Day, i);
        if (strcmp(day->run->uuid, uuid) == 0)
            return day;
    }
    return NULL;
}

/* The name of a day that is not there yet: the plain one, unless another domain has it. */
static char *
choose_stem(const Closing *closing, const char *uuid)
{
    const UprofStoreFolder *folder = closing->folder;
    char mark[UPROF_STORE_MARK_BYTES];
    g_autofree char *plain = uprof_store_stem(folder->name, closing->day_s, true, NULL);

    if (uprof_store_has(folder, plain, UPROF_STORE_SIDECAR) && uprof_store_mark_of(uuid, mark))
        return uprof_store_stem(folder->name, closing->day_s, true, mark);
    return g_steal_pointer(&plain);
}

static int
compare_seconds(const void *a, const void *b)
{
    const uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b;

    return one < other ? -1 : one > other;
}

static void
complain(Closing *closing, const GError *error)
{
    uprof_say("virt-uprof: %s; left out, and left as it is", error->message);
    closing->code = uprof_exit_worse(closing->code, UPROF_EXIT_FAILED);
}

/* Returns: false, said, if it is damaged */
static bool
add_item(Closing *closing, Adding *adding, const UprofStoreItem *item, UprofRun *run, bool is_first)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStored) stored = uprof_stored_read(closing->folder, item, &error);

    if (!stored) {
        complain(closing, error);
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
    g_autofree char *shown = uprof_store_format_day(closing->day_s);
    const Day *day = find_day(closing, uuid);
    Adding adding = { .names = names };
    unsigned n = 0;

    uprof_names_limit(names, NAMES_MAX);
    if (day && !add_item(closing, &adding, day->item, run, true))
        return; /* the slices stay, and are merged when the damaged file is gone */
    for (guint i = 0; i < slices->len; i++)
        n += add_item(closing, &adding, g_ptr_array_index(slices, i), run, !adding.profile);
    g_autoptr(UprofProfile) profile = adding.profile;
    if (n == 0)
        return;
    closing->visit(closing->folder, shown, n, closing->data);
    if (closing->dry_run)
        return;
    qsort(run->slices->data, run->slices->len, sizeof(uint32_t), compare_seconds);
    g_free(run->uuid);
    run->uuid = g_strdup(uuid);
    g_autofree char *stem = day ? g_strdup(day->item->stem) : choose_stem(closing, uuid);
    if (!write_day(closing->folder, stem, profile, run, &error))
        closing->code = uprof_exit_worse(closing->code, uprof_say_error(error));
}

/* ---- A day ---- */

static void
give_up_day(Closing *closing, const GError *error)
{
    g_autofree char *day = uprof_store_format_day(closing->day_s);

    uprof_say("virt-uprof: %s; profiles of %s are not merged while that is so", error->message,
              day);
    closing->is_unsure = true;
    closing->code = uprof_exit_worse(closing->code, UPROF_EXIT_FAILED);
}

/* Reads what is closed of it already. */
static void
read_days(Closing *closing)
{
    UprofStoreFolder *folder = closing->folder;

    for (guint i = 0; i < folder->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(folder, i);
        g_autoptr(GError) error = NULL;
        if (!item->is_day || item->start_s != closing->day_s)
            continue;
        if (!closing->dry_run && !uprof_stored_recover(folder, item, &error)) {
            give_up_day(closing, error);
            continue;
        }
        if (!uprof_store_item_is_whole(item))
            continue;
        Day day = { item, uprof_stored_facts(folder, item, &error) };
        if (day.run)
            g_array_append_val(closing->days, day);
        else
            give_up_day(closing, error);
    }
}

static bool
is_counted(const Closing *closing, const UprofStoreItem *slice)
{
    for (guint i = 0; i < closing->days->len; i++)
        if (uprof_stored_has_slice(g_array_index(closing->days, Day, i).run, slice->start_s))
            return true;
    return false;
}

/* Adds what is not counted yet to a list of its domain. */
static void
sort_slice(Closing *closing, UprofStoreItem *item, GHashTable *groups)
{
    g_autoptr(GError) error = NULL;

    if (item->is_day || !uprof_store_item_is_whole(item) ||
        uprof_store_day_of(item->start_s) != closing->day_s || is_counted(closing, item))
        return;
    g_autoptr(UprofRun) run = uprof_stored_facts(closing->folder, item, &error);
    if (!run) {
        complain(closing, error);
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

    read_days(closing);
    if (closing->is_unsure)
        return;
    for (guint i = 0; i < closing->folder->items->len; i++)
        sort_slice(closing, uprof_store_item(closing->folder, i), groups);
    g_autoptr(GList) uuids = g_list_sort(g_hash_table_get_keys(groups), (GCompareFunc)strcmp);
    for (GList *at = uuids; at; at = at->next)
        merge_group(closing, at->data, g_hash_table_lookup(groups, at->data));
}

int
uprof_merge_folder(UprofStoreFolder *folder, int64_t today_s, bool dry_run, UprofMergeVisit visit,
                   void *data)
{
    int code = UPROF_EXIT_OK;
    int64_t last_s = -1;

    for (guint i = 0; i < folder->items->len; i++) {
        const int64_t day_s = uprof_store_day_of(uprof_store_item(folder, i)->start_s);
        if (day_s >= today_s || day_s == last_s)
            continue;
        last_s = day_s;
        Closing closing = {
            .folder = folder,
            .day_s = day_s,
            .days = g_array_new(FALSE, FALSE, sizeof(Day)),
            .dry_run = dry_run,
            .visit = visit,
            .data = data,
        };
        g_array_set_clear_func(closing.days, clear_day);
        close_day(&closing);
        g_array_unref(closing.days);
        code = uprof_exit_worse(code, closing.code);
    }
    return code;
}
