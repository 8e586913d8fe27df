/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "stock-priv.h"

#include "exit-priv.h"
#include "uprof/error.h"
#include "uprof/text.h"

#include <string.h>

struct _UprofStock {
    GPtrArray *folders; /* of UprofStoreFolder */
};

static void
free_folder(gpointer folder)
{
    uprof_store_folder_close(folder);
}

static void
free_pick(gpointer data)
{
    UprofPick *pick = data;

    uprof_run_free(pick->run);
    g_free(pick);
}

static void
free_run(gpointer run)
{
    uprof_run_free(run);
}

UprofStock *
uprof_stock_new(UprofStore *store, int *code)
{
    UprofStock *stock = g_new0(UprofStock, 1);
    g_autoptr(GPtrArray) names = uprof_store_folders(store);

    stock->folders = g_ptr_array_new_with_free_func(free_folder);
    for (guint i = 0; i < names->len; i++) {
        g_autoptr(GError) error = NULL;
        UprofStoreFolder *folder =
            uprof_store_folder_open(store, g_ptr_array_index(names, i), &error);
        if (folder)
            g_ptr_array_add(stock->folders, folder);
        else
            *code = uprof_exit_worse(*code, uprof_say_error(error));
    }
    return stock;
}

void
uprof_stock_free(UprofStock *stock)
{
    if (!stock)
        return;
    g_ptr_array_unref(stock->folders);
    g_free(stock);
}

const GPtrArray *
uprof_stock_folders(const UprofStock *stock)
{
    return stock->folders;
}

/* ---- Which domain ---- */

/* Whether a domain called @word may have its profiles in that folder: long names are cut. */
static bool
may_be_folder(const char *folder, const char *word)
{
    g_autofree char *safe = uprof_store_safe_name(word, "");
    const char *cut = strchr(safe, '~');

    return cut ? strncmp(folder, safe, (size_t)(cut - safe) + 1) == 0 : strcmp(folder, safe) == 0;
}

/* Returns: (nullable): facts of the last profile of a domain of that name */
static UprofRun *
find_last(const UprofStoreFolder *folder, const char *shown, int64_t *start_s)
{
    for (guint i = folder->items->len; i > 0; i--) {
        const UprofStoreItem *item = uprof_store_item(folder, i - 1);
        if (!uprof_store_item_is_whole(item))
            continue;
        g_autoptr(UprofRun) run = uprof_stored_facts(folder, item, NULL);
        if (!run || strcmp(run->domain, shown) != 0)
            continue;
        *start_s = item->start_s;
        return g_steal_pointer(&run);
    }
    return NULL;
}

char *
uprof_stock_find(const UprofStock *stock, const char *word, GError **error)
{
    g_autofree char *shown = uprof_text_quote(word);
    g_autofree char *uuid = NULL;
    int64_t start_s, last_s = -1;

    if (g_uuid_string_is_valid(word))
        return g_ascii_strdown(word, -1);
    for (guint i = 0; i < stock->folders->len; i++) {
        const UprofStoreFolder *folder = g_ptr_array_index(stock->folders, i);
        if (!may_be_folder(folder->name, word))
            continue;
        g_autoptr(UprofRun) run = find_last(folder, shown, &start_s);
        if (!run || start_s < last_s)
            continue;
        last_s = start_s;
        g_free(uuid);
        uuid = g_steal_pointer(&run->uuid);
    }
    if (uuid)
        return g_steal_pointer(&uuid);
    g_set_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                "no profile of '%s' is stored; 'virt-uprof collect' stores them, of domains that "
                "are enabled",
                shown);
    return NULL;
}

/* ---- What is there ---- */

typedef struct {
    int64_t since_s, until_s;
    const char *uuid; /* (nullable) */
    GPtrArray *picks;
    UprofStockGaps *gaps;
} Picking;

/* What a folder has of a day. */
typedef struct {
    const UprofStoreFolder *folder;
    int64_t day_s;
    guint first, end;  /* of its items */
    bool is_whole;     /* the day is asked for as a whole */
    GPtrArray *closed; /* of UprofRun, borrowed: days that are among the picks */
} DayOf;

static void
complain(Picking *picking, const GError *error)
{
    picking->gaps->n_damaged++;
    uprof_say("virt-uprof: %s; left out", error->message);
}

static bool
is_wanted(const Picking *picking, const UprofRun *run)
{
    return !picking->uuid || strcmp(run->uuid, picking->uuid) == 0;
}

static void
add_pick(Picking *picking, const DayOf *day, const UprofStoreItem *item, UprofRun *run)
{
    UprofPick *pick = g_new0(UprofPick, 1);

    *pick = (UprofPick){ day->folder, item, run };
    g_ptr_array_add(picking->picks, pick);
}

/* @days: of UprofRun, of the day of @start_s */
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
        if (!item->is_day && item->start_s == start_s && uprof_store_item_is_whole(item))
            return true;
    }
    return false;
}

/* Slices asked for that only their day still has. */
static void
count_gone(Picking *picking, const DayOf *day, const UprofRun *closed)
{
    for (guint i = 0; i < closed->slices->len; i++) {
        const int64_t start_s = day->day_s + g_array_index(closed->slices, uint32_t, i);
        picking->gaps->n_gone +=
            start_s >= picking->since_s && start_s < picking->until_s && !has_slice(day, start_s);
    }
}

/* A closed day: picked, if all of it is asked for, and it is of a domain that is wanted. */
static void
take_day(Picking *picking, DayOf *day, const UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofRun) facts = uprof_stored_facts(day->folder, item, &error);

    if (facts && day->is_whole && is_wanted(picking, facts)) {
        /* if it is damaged its slices may still be there */
        UprofRun *run = uprof_stored_facts_of_stacks(day->folder, item, &error);
        if (run) {
            g_ptr_array_add(day->closed, run);
            add_pick(picking, day, item, run);
        }
    } else if (facts && is_wanted(picking, facts)) {
        count_gone(picking, day, facts);
    }
    /* slices of other domains are told by their own sidecars */
    if (error)
        complain(picking, error);
}

static void
take_slice(Picking *picking, const DayOf *day, const UprofStoreItem *item)
{
    g_autoptr(GError) error = NULL;

    if (item->start_s < picking->since_s || item->start_s >= picking->until_s ||
        (day->is_whole && is_counted(day->closed, item->start_s)))
        return;
    g_autoptr(UprofRun) run = uprof_stored_facts(day->folder, item, &error);
    if (!run)
        complain(picking, error);
    else if (is_wanted(picking, run))
        add_pick(picking, day, item, g_steal_pointer(&run));
}

static void
pick_day(Picking *picking, DayOf *day)
{
    /* closed days stand before slices */
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (uprof_store_item_is_whole(item) && item->is_day)
            take_day(picking, day, item);
    }
    for (guint i = day->first; i < day->end; i++) {
        const UprofStoreItem *item = uprof_store_item(day->folder, i);
        if (uprof_store_item_is_whole(item) && !item->is_day)
            take_slice(picking, day, item);
    }
}

static void
pick_folder(Picking *picking, const UprofStoreFolder *folder)
{
    guint i = 0;

    while (i < folder->items->len) {
        const int64_t day_s = uprof_store_day_of(uprof_store_item(folder, i)->start_s);
        const int64_t end_s = day_s + UPROF_STORE_DAY_S;
        DayOf day = {
            .folder = folder,
            .day_s = day_s,
            .first = i,
            .is_whole = picking->since_s <= day_s && end_s <= picking->until_s,
        };
        while (i < folder->items->len && uprof_store_item(folder, i)->start_s < end_s)
            i++;
        day.end = i;
        if (end_s <= picking->since_s || day_s >= picking->until_s)
            continue;
        day.closed = g_ptr_array_new();
        pick_day(picking, &day);
        g_ptr_array_unref(day.closed);
    }
}

GPtrArray *
uprof_stock_pick(const UprofStock *stock, int64_t since_s, int64_t until_s, const char *uuid,
                 UprofStockGaps *gaps)
{
    Picking picking = { since_s, until_s, uuid, g_ptr_array_new_with_free_func(free_pick), gaps };

    for (guint i = 0; i < stock->folders->len; i++)
        pick_folder(&picking, g_ptr_array_index(stock->folders, i));
    return picking.picks;
}

/* ---- Together ---- */

const char *
uprof_stock_name(const GPtrArray *picks, const char *uuid)
{
    const UprofPick *last = NULL;

    for (guint i = 0; i < picks->len; i++) {
        const UprofPick *pick = g_ptr_array_index(picks, i);
        if (strcmp(pick->run->uuid, uuid) == 0 &&
            (!last || pick->item->start_s >= last->item->start_s))
            last = pick;
    }
    return last ? last->run->domain : NULL;
}

/*
 * Days that were added, of one folder and one date: what they have counted may be more
 * than it was when slices were picked.
 */
typedef struct {
    const UprofStoreFolder *folder;
    int64_t day_s;
    GPtrArray *runs;
} Added;

static void
begin_day(Added *added, const UprofPick *pick)
{
    const int64_t day_s = uprof_store_day_of(pick->item->start_s);

    if (added->folder != pick->folder || added->day_s != day_s)
        g_ptr_array_set_size(added->runs, 0);
    added->folder = pick->folder;
    added->day_s = day_s;
}

static int
load_pick(UprofLoad *load, const UprofPick *pick, Added *added, const char *name,
          const UprofOptions *options)
{
    g_autoptr(GError) error = NULL;

    begin_day(added, pick);
    if (!pick->item->is_day && is_counted(added->runs, pick->item->start_s))
        return UPROF_EXIT_OK;
    g_autoptr(UprofStored) stored = uprof_stored_read(pick->folder, pick->item, &error);
    if (!stored) {
        uprof_say("virt-uprof: %s; left out", error->message);
        load->is_partial = true;
        return UPROF_EXIT_FAILED;
    }
    const int code = uprof_load_add_stored(load, stored, name, options);
    if (pick->item->is_day)
        g_ptr_array_add(added->runs, g_steal_pointer(&stored->run));
    return code;
}

int
uprof_stock_load(UprofLoad *load, const GPtrArray *picks, const char *uuid,
                 const UprofOptions *options)
{
    g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(free_run);
    const char *name = uprof_stock_name(picks, uuid);
    Added added = { .runs = runs };
    int code = UPROF_EXIT_OK;

    for (guint i = 0; i < picks->len; i++) {
        const UprofPick *pick = g_ptr_array_index(picks, i);
        if (strcmp(pick->run->uuid, uuid) == 0)
            code = uprof_exit_worse(code, load_pick(load, pick, &added, name, options));
    }
    return code;
}
