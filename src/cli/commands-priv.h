/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * commands-priv.h - one function per command; each returns an exit code
 */
#pragma once

#include "options-priv.h"

int uprof_record_run(UprofOptions *options);
int uprof_list_run(UprofOptions *options);
int uprof_dump_run(UprofOptions *options);
int uprof_check_run(UprofOptions *options);
int uprof_report_run(UprofOptions *options);
int uprof_diff_run(UprofOptions *options);
int uprof_top_run(UprofOptions *options);
int uprof_collect_run(UprofOptions *options);
int uprof_mark_enable(UprofOptions *options);
int uprof_mark_disable(UprofOptions *options);
int uprof_mark_configure(UprofOptions *options);
int uprof_prune_run(UprofOptions *options);
int uprof_summary_run(UprofOptions *options);

/**
 * uprof_complete_run: --complete, which only shells use
 * @words: borrowed: @n words of a command line behind the program's name, the last one
 *   up to where it is to be completed
 */
int uprof_complete_run(int n, const char *const *words);
