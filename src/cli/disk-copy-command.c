/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * disk-copy-command.c - the command symbols: copies the files that a Linux guest runs out of its
 * disks
 */
#include "commands-priv.h"

#include "domain-command-priv.h"
#include "exit-priv.h"
#include "uprof/disk-symbols.h"
#include "uprof/mapped-files.h"

static const UprofAnalysisCall calls[] = { uprof_mapped_files_make };

static GPtrArray *found; /* of UprofDiskSymbols */

static UprofErrorCode
find_files(UprofSession *session, const UprofOptions *options, const UprofNotices *notices)
{
    UprofErrorCode code;
    UprofDiskSymbols *symbols = uprof_disk_symbols_find(session, 0, notices, &code);

    if (symbols)
        g_ptr_array_add(found, symbols);
    return code;
}

int
uprof_symbols_run(UprofOptions *options)
{
    const UprofNotices notices = uprof_options_notices(options);
    UprofErrorTally tally = { 0 };

    found = g_ptr_array_new_with_free_func((GDestroyNotify)uprof_disk_symbols_free);
    int code = uprof_domain_command_run(options, calls, G_N_ELEMENTS(calls), find_files);
    const bool found_any = found->len > 0;
    for (guint i = 0; i < found->len; i++)
        uprof_error_count(&tally, uprof_disk_symbols_copy(g_ptr_array_index(found, i), &notices));
    g_ptr_array_unref(found);
    return found_any ? uprof_exit_worse(code, uprof_exit_of_tally(&tally)) : code;
}
