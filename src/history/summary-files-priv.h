/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * summary-files-priv.h - writes and deletes the files with the summaries of days
 */
#pragma once

#include "pruning-priv.h"
#include "uprof/catalog.h"

/**
 * uprof_summary_files_write: writes the summary of each day that has none, or whose profiles
 * are newer than its summary
 *
 * Adds the size of the files to @bytes_kept of the result.
 */
void uprof_summary_files_write(UprofPruning *pruning, UprofCatalog *catalog);

/** uprof_summary_files_expire: deletes summaries that are too old, and counts the others */
void uprof_summary_files_expire(UprofPruning *pruning);
