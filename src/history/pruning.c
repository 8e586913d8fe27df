/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "pruning-priv.h"

#include "uprof/time-text.h"

void
uprof_pruning_show(const UprofPruning *pruning, const char *format, ...)
{
    va_list arguments;

    if (!pruning->settings->show_change)
        return;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    pruning->settings->show_change(text, pruning->settings->data);
}

void
uprof_pruning_add_error(UprofPruning *pruning, const GError *error)
{
    pruning->result->code = uprof_error_merge(
        pruning->result->code, uprof_notice_error(pruning->settings->notices, error));
}

void
uprof_pruning_add_failure(UprofPruning *pruning, const UprofStoreFolder *folder,
                          const GError *error)
{
    g_autoptr(GError) failure = g_error_new(
        UPROF_ERROR, UPROF_ERROR_FAILED, "'%s': %s", folder->path,
        error ? error->message : "the process that reads the files has sent a malformed reply");

    uprof_pruning_add_error(pruning, failure);
}

void
uprof_pruning_take_code(UprofPruning *pruning, UprofErrorCode code)
{
    const bool is_usual =
        code == UPROF_ERROR_NONE || code == UPROF_ERROR_NO_FILE || code == UPROF_ERROR_DENIED;

    pruning->result->code =
        uprof_error_merge(pruning->result->code, is_usual ? code : UPROF_ERROR_FAILED);
}

int64_t
uprof_pruning_limit(const UprofPruning *pruning, uint64_t days)
{
    return pruning->today_s - (int64_t)days * UPROF_DAY_S;
}

int64_t
uprof_pruning_first_day(const UprofPruning *pruning)
{
    const UprofPruneSettings *settings = pruning->settings;

    return uprof_pruning_limit(pruning, MAX(settings->slice_days, settings->merged_days));
}
