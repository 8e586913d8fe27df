/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * commands-priv.h - one function for each command; each returns an exit code
 */
#pragma once

#include "options-priv.h"

int uprof_record_run(UprofOptions *options);
int uprof_list_run(UprofOptions *options);
int uprof_dump_run(UprofOptions *options);
int uprof_ps_run(UprofOptions *options);
int uprof_dmesg_run(UprofOptions *options);
int uprof_check_run(UprofOptions *options);
int uprof_report_run(UprofOptions *options);
int uprof_diff_run(UprofOptions *options);
int uprof_top_run(UprofOptions *options);
int uprof_watch_command_run(UprofOptions *options);
int uprof_collect_run(UprofOptions *options);
int uprof_enable_run(UprofOptions *options);
int uprof_disable_run(UprofOptions *options);
int uprof_configure_run(UprofOptions *options);
int uprof_prune_run(UprofOptions *options);
int uprof_history_run(UprofOptions *options);
int uprof_summary_run(UprofOptions *options);
int uprof_push_run(UprofOptions *options);
int uprof_symbols_run(UprofOptions *options);

/**
 * uprof_complete_run: the command `--complete WORD...`, for the completion of shells
 * @commands: the table of commands; the first one is the default
 * @words: borrowed; the @n words after the program's name. The last one ends at the cursor.
 *
 * complete.c describes the output. The exit code is always 0.
 */
int uprof_complete_run(const UprofCommand *commands, int n, const char *const *words);
