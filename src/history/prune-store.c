/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/prune-store.h"

#include "uprof/time-text.h"

#include "catalog-priv.h"
#include "merge-days-priv.h"
#include "retention-priv.h"
#include "store-process-priv.h"
#include "summary-files-priv.h"

#include <string.h>

/* The folders whose days are closed. All pointers are borrowed. */
typedef struct {
    const UprofPruning *pruning;
    const GPtrArray *folders; /* of UprofStoreFolder */
} Closing;

/* In a process: closes the days of one folder. @reply: UprofErrorCode */
static void
merge_folder(guint job, const UprofNotices *notices, GByteArray *reply, void *data)
{
    const Closing *closing = data;
    const UprofMergeSettings settings = {
        .today_s = closing->pruning->today_s,
        .dry_run = closing->pruning->settings->dry_run,
        .notices = notices,
        .show_day = uprof_store_process_show_day,
    };
    const UprofErrorCode code =
        uprof_merge_days(g_ptr_array_index(closing->folders, job), &settings);

    g_byte_array_append(reply, (const guint8 *)&code, sizeof(code));
}

static void
count_closed_day(const UprofStoreFolder *folder, int64_t day_s, unsigned n_slices, void *data)
{
    UprofPruning *pruning = data;
    g_autofree char *day = uprof_time_format_date(day_s);

    pruning->result->n_days++;
    pruning->result->n_slices += n_slices;
    uprof_pruning_show(pruning, "merge data/%s: %u profiles of %s", folder->name, n_slices, day);
}

static void
close_days_in(UprofPruning *pruning, UprofStoreProcess *process, const GPtrArray *folders, guint i)
{
    const UprofStoreFolder *folder = g_ptr_array_index(folders, i);
    const UprofStoreReaction reaction = {
        .written = pruning->settings->dry_run ? NULL : folder,
        .today_s = pruning->today_s,
        .notices = pruning->settings->notices,
        .shown = folder,
        .show_day = count_closed_day,
        .data = pruning,
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(GByteArray) reply = uprof_store_process_run(process, i, &reaction, &error);
    UprofErrorCode code;

    if (!reply || reply->len != sizeof(code)) {
        uprof_pruning_add_failure(pruning, folder, error);
        return;
    }
    memcpy(&code, reply->data, sizeof(code));
    uprof_pruning_take_code(pruning, code);
}

static void
close_days(UprofPruning *pruning)
{
    g_autoptr(UprofCatalog) catalog =
        uprof_catalog_new(pruning->store, pruning->settings->notices, &pruning->result->code);
    const GPtrArray *folders = uprof_catalog_folders(catalog);
    Closing closing = { pruning, folders };
    const UprofStoreWork work = { .folders = folders, .work = merge_folder, .data = &closing };
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStoreProcess) process = uprof_store_process_start(&work, &error);

    if (!process)
        uprof_pruning_add_error(pruning, error);
    for (guint i = 0; process && i < folders->len; i++)
        close_days_in(pruning, process, folders, i);
}

static void
delete_old_profiles(UprofPruning *pruning)
{
    g_autoptr(UprofCatalog) catalog =
        uprof_catalog_new(pruning->store, pruning->settings->notices, &pruning->result->code);

    uprof_retention_apply(pruning, catalog);
}

static void
show_leftover(const char *path, void *data)
{
    uprof_pruning_show(data, "remove %s", path);
}

/* Writes summaries. They need room, so old profiles may have to be deleted once more. */
static void
write_summaries(UprofPruning *pruning)
{
    g_autoptr(UprofCatalog) catalog =
        uprof_catalog_new(pruning->store, pruning->settings->notices, &pruning->result->code);

    if (!pruning->settings->dry_run)
        uprof_summary_files_write(pruning, catalog);
    if (pruning->result->n_summaries > 0 && uprof_retention_is_exceeded(pruning))
        uprof_retention_apply(pruning, catalog);
}

static void
warn_of_size(const UprofPruning *pruning)
{
    uprof_notice(pruning->settings->notices, UPROF_NOTICE_WARNING,
                 "'%s' keeps %" G_GUINT64_FORMAT
                 " MB, more than maxMegabytes: summaries, files of failures and profiles that "
                 "are being written stay",
                 uprof_store_path(pruning->store), pruning->result->bytes_kept >> 20);
}

void
uprof_prune_store(UprofStore *store, const UprofPruneSettings *settings, int64_t now_s,
                  UprofPruneResult *result)
{
    UprofPruning pruning = { store, settings, uprof_time_day_start(now_s), result };

    *result = (UprofPruneResult){ 0 };
    close_days(&pruning);
    delete_old_profiles(&pruning);
    uprof_store_remove_leftovers(store, now_s, settings->dry_run, show_leftover, &pruning);
    write_summaries(&pruning);
    if (uprof_retention_is_exceeded(&pruning))
        warn_of_size(&pruning);
}

char *
uprof_prune_describe(const UprofPruneResult *result, bool dry_run)
{
    const uint64_t tenths = result->bytes_kept * 10 >> 20;

    return g_strdup_printf("%s%u profiles merged into %u days, %u summaries written, %u profiles "
                           "removed, %" G_GUINT64_FORMAT ".%u MB kept",
                           dry_run ? "dry run, nothing is changed: " : "", result->n_slices,
                           result->n_days, result->n_summaries, result->n_removed, tenths / 10,
                           (unsigned)(tenths % 10));
}
