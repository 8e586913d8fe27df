/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/prune-store.h"

#include "uprof/time-text.h"

#include "merge-days-priv.h"
#include "retention-priv.h"
#include "store-priv.h"
#include "summary-files-priv.h"

static void
count_closed_day(const UprofStoreFolder *folder, const char *day, unsigned n_slices, void *data)
{
    UprofPruning *pruning = data;

    pruning->result->n_days++;
    pruning->result->n_slices += n_slices;
    uprof_pruning_show(pruning, "merge data/%s: %u profiles of %s", folder->name, n_slices, day);
}

static void
close_days(UprofPruning *pruning)
{
    g_autoptr(GPtrArray) names = uprof_store_folders(pruning->store);
    const UprofMergeSettings settings = {
        .today_s = pruning->today_s,
        .dry_run = pruning->settings->dry_run,
        .notices = pruning->settings->notices,
        .show_day = count_closed_day,
        .data = pruning,
    };

    for (guint i = 0; i < names->len; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofStoreFolder) folder =
            uprof_store_folder_open(pruning->store, g_ptr_array_index(names, i), &error);
        if (folder)
            pruning->result->code =
                uprof_error_merge(pruning->result->code, uprof_merge_days(folder, &settings));
        else
            uprof_pruning_add_error(pruning, error);
    }
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
                 " MB, more than maxMegabytes: the newest day of each domain, summaries and "
                 "profiles that are not merged yet stay",
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
