/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/counted-slices.h"

#include "uprof/time-text.h"

#include "store-process-priv.h"
#include "stored-profile-priv.h"

#include <string.h>

/* The closed days that a process reads. All pointers are borrowed. */
typedef struct {
    const UprofStoreFolder *folder;
    const GPtrArray *days; /* of UprofStoreItem */
} Reading;

/* In a process. @reply: of int64_t: when the slices of all days began */
static void
read_days(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    const Reading *reading = data;

    for (guint i = 0; i < reading->days->len; i++) {
        const UprofStoreItem *day = g_ptr_array_index(reading->days, i);
        g_autoptr(UprofRun) run = uprof_stored_facts(reading->folder, day, NULL);
        for (guint j = 0; run && j < run->slices->len; j++) {
            const int64_t start_s = day->start_s + g_array_index(run->slices, uint32_t, j);
            g_byte_array_append(reply, (const guint8 *)&start_s, sizeof(start_s));
        }
    }
}

/* Returns: (transfer container): of UprofStoreItem: the closed days since @since_s */
static GPtrArray *
list_days(const UprofStoreFolder *folder, int64_t since_s)
{
    GPtrArray *days = g_ptr_array_new();

    for (guint i = 0; folder && i < folder->items->len; i++) {
        UprofStoreItem *item = uprof_store_item(folder, i);
        if (item->is_day && item->start_s >= uprof_time_day_start(since_s) && item->has_sidecar)
            g_ptr_array_add(days, item);
    }
    return days;
}

/* Returns: (transfer full) (nullable): the reply of read_days(); %NULL with an error */
static GByteArray *
ask_process(UprofStoreFolder *folder, const GPtrArray *days, GError **error)
{
    g_autoptr(GPtrArray) folders = g_ptr_array_new();
    Reading reading = { folder, days };
    const UprofStoreWork work = { .folders = folders, .work = read_days, .data = &reading };
    const UprofStoreReaction reaction = { 0 };

    g_ptr_array_add(folders, folder);
    g_autoptr(UprofStoreProcess) process = uprof_store_process_start(&work, error);
    GByteArray *reply = process ? uprof_store_process_run(process, 0, &reaction, error) : NULL;
    if (!reply)
        g_prefix_error(error, "'%s': ", folder->path);
    return reply;
}

GHashTable *
uprof_counted_slices(UprofStore *store, const char *name, const char *uuid, int64_t since_s,
                     GError **error)
{
    g_autofree char *safe = uprof_store_safe_name(name, uuid);
    g_autoptr(UprofStoreFolder) folder = uprof_store_folder_open(store, safe, NULL);
    g_autoptr(GHashTable) counted =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_autoptr(GPtrArray) days = list_days(folder, since_s);

    if (days->len == 0)
        return g_steal_pointer(&counted);
    g_autoptr(GByteArray) reply = ask_process(folder, days, error);
    if (!reply)
        return NULL;
    for (size_t at = 0; at + sizeof(int64_t) <= reply->len; at += sizeof(int64_t))
        g_hash_table_add(counted, g_memdup2(reply->data + at, sizeof(int64_t)));
    return g_steal_pointer(&counted);
}
