/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-results-priv.h - prints the results of destinations, for the commands push and record
 */
#pragma once

#include "uprof/push-rounds.h"

/**
 * uprof_push_say_results: prints a line for each destination on stderr
 * @results: of UprofPushResult
 * @is_quiet: prints only errors
 *
 * Returns: as uprof_push_code()
 */
UprofErrorCode uprof_push_say_results(const GArray *results, bool is_quiet);
