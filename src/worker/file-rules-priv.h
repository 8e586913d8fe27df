/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file-rules-priv.h - opens the files that a worker may read
 */
#pragma once

#include "uprof/fetcher.h"
#include "uprof/file-rules.h"

/**
 * uprof_file_rules_answer: opens a file for a worker
 * @fetcher: (nullable): gets the paths of files of the symbol cache that are missing
 * @ask: the worker's request: UprofFileAsk, folder, NUL, path, NUL; can be any bytes
 * @reason: (out): errno; 0 if the file is open; ENOENT also if no rule allows the file
 *
 * Returns: a descriptor to read from; -1 with @reason
 */
int uprof_file_rules_answer(const UprofFileRules *rules, UprofFetcher *fetcher, UprofSlice ask,
                            int *reason);

/**
 * uprof_file_rules_serve: answers a request for a file
 * @channel: to the process that asks
 * @fetcher, @ask: as for uprof_file_rules_answer()
 * @last_file: (inout) (nullable): owned: gets the path if the file was opened, safe to print
 *
 * Returns: false if the process has ended
 */
bool uprof_file_rules_serve(const UprofFileRules *rules, UprofFetcher *fetcher, int channel,
                            UprofSlice ask, char **last_file);
