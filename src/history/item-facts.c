/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "item-facts-priv.h"

#include "uprof/time-text.h"

#include "store-process-priv.h"
#include "stored-profile-priv.h"

#include <string.h>

/* The input of the processes. All pointers are borrowed. */
typedef struct {
    const UprofPruning *pruning;
    const GPtrArray *folders;
} Reading;

/* The items of one folder and one day. */
typedef struct {
    const UprofPruning *pruning;    /* borrowed */
    const UprofStoreFolder *folder; /* borrowed */
    int64_t day_s;                  /* 00:00 UTC, since 1970 */
    guint first, end;               /* in the items of @folder */
    GPtrArray *closed;              /* of UprofRun: the closed profiles that are not damaged */
} DayOf;

static void
free_run(gpointer run)
{
    uprof_run_free(run);
}

/* ---- In the process ---- */

static void
read_sidecar(const UprofStoreFolder *folder, const UprofStoreItem *item, UprofItemFacts *facts)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, &error);

    facts->is_read = run;
    facts->is_unknown = !run && !g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    if (run)
        g_strlcpy(facts->uuid, run->uuid, sizeof(facts->uuid));
}

/* Has a closed day counted the slice, or would it in a dry run? */
static bool
is_merged(const DayOf *day, const UprofStoreItem *slice)
{
    for (guint i = 0; i < day->closed->len; i++)
        if (uprof_stored_has_slice(g_ptr_array_index(day->closed, i), slice->start_s))
            return true;
    return day->pruning->settings->dry_run && day->day_s < day->pruning->today_s;
}

static bool
is_damaged(const UprofStoreFolder *folder, const UprofStoreItem *slice)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStored) stored = uprof_stored_read(folder, slice, &error);

    return !stored && g_error_matches(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
}

static void
read_closed_days(DayOf *day)
{
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (!item->is_day || !uprof_store_item_is_complete(item))
            continue;
        g_autoptr(UprofStored) stored = uprof_stored_read(day->folder, item, NULL);
        if (stored)
            g_ptr_array_add(day->closed, g_steal_pointer(&stored->run));
    }
}

static UprofItemFacts
read_item(const DayOf *day, const UprofStoreItem *item)
{
    const UprofPruning *pruning = day->pruning;
    const bool is_complete = uprof_store_item_is_complete(item);
    /* a dry run has merged nothing, so a slice stands for the day that would have counted it */
    const bool would_merge = pruning->settings->dry_run && item->start_s < pruning->today_s;
    UprofItemFacts facts = { 0 };

    if (is_complete && (item->is_day || would_merge))
        read_sidecar(day->folder, item, &facts);
    if (item->is_day)
        return facts;
    facts.is_merged = is_merged(day, item);
    facts.is_damaged = is_complete && !facts.is_merged &&
                       day->day_s < uprof_pruning_limit(pruning, pruning->settings->slice_days) &&
                       is_damaged(day->folder, item);
    return facts;
}

static void
read_day(DayOf *day, GByteArray *reply)
{
    day->closed = g_ptr_array_new_with_free_func(free_run);
    read_closed_days(day);
    for (guint i = day->first; i < day->end; i++) {
        const UprofItemFacts facts = read_item(day, uprof_store_item(day->folder, i));
        g_byte_array_append(reply, (const guint8 *)&facts, sizeof(facts));
    }
    g_ptr_array_unref(day->closed);
}

/* @job: index of the folder. @reply: UprofItemFacts of each item */
static void
read_folder(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    const Reading *reading = data;
    const UprofStoreFolder *folder = g_ptr_array_index(reading->folders, job);

    for (guint i = 0; i < folder->items->len;) {
        const int64_t day_s = uprof_time_day_start(uprof_store_item(folder, i)->start_s);
        DayOf day = { .pruning = reading->pruning, .folder = folder, .day_s = day_s, .first = i };
        while (i < folder->items->len && uprof_store_item(folder, i)->start_s < day_s + UPROF_DAY_S)
            i++;
        day.end = i;
        read_day(&day, reply);
    }
}

/* ---- In the program ---- */

static GArray *
make_unknown_facts(guint n)
{
    GArray *facts = g_array_new(FALSE, TRUE, sizeof(UprofItemFacts));

    g_array_set_size(facts, n);
    for (guint i = 0; i < n; i++)
        g_array_index(facts, UprofItemFacts, i).is_unknown = true;
    return facts;
}

/* A byte that is neither 0 nor 1 must not be read as a bool. */
static bool
is_flag(const bool *flag)
{
    return *(const uint8_t *)flag <= 1;
}

/* A hostile profile may have taken over the process, so that @reply can have any content. */
static bool
is_sound(const GByteArray *reply, guint n)
{
    if (reply->len != n * sizeof(UprofItemFacts))
        return false;
    for (guint i = 0; i < n; i++) {
        const UprofItemFacts *facts = (const UprofItemFacts *)(const void *)reply->data + i;
        if (!is_flag(&facts->is_read) || !is_flag(&facts->is_unknown) ||
            !is_flag(&facts->is_merged) || !is_flag(&facts->is_damaged))
            return false;
        if (facts->is_read && (!memchr(facts->uuid, '\0', sizeof(facts->uuid)) ||
                               !g_uuid_string_is_valid(facts->uuid)))
            return false;
    }
    return true;
}

static GArray *
ask_process(UprofPruning *pruning, UprofStoreProcess *process, const GPtrArray *folders, guint i)
{
    const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
    const UprofStoreReaction reaction = { .notices = pruning->settings->notices };
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) reply = uprof_store_process_run(process, i, &reaction, &error);
    GArray *facts = make_unknown_facts(folder->items->len);

    if (reply && is_sound(reply, folder->items->len))
        memcpy(facts->data, reply->data, reply->len);
    else
        uprof_pruning_add_failure(pruning, folder, error);
    return facts;
}

static void
free_facts(gpointer facts)
{
    g_array_unref(facts);
}

GPtrArray *
uprof_item_facts_find(UprofPruning *pruning, const GPtrArray *folders)
{
    Reading reading = { pruning, folders };
    const UprofStoreWork work = { .folders = folders, .work = read_folder, .data = &reading };
    GPtrArray *all = g_ptr_array_new_with_free_func(free_facts);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreProcess) process = uprof_store_process_start(&work, &error);

    if (!process)
        uprof_pruning_add_error(pruning, error);
    for (guint i = 0; i < folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
        g_ptr_array_add(all, process ? ask_process(pruning, process, folders, i)
                                     : make_unknown_facts(folder->items->len));
    }
    return all;
}
