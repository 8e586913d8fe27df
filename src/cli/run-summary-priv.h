/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run-summary-priv.h - the start and the end of a run, in a few lines on stderr
 */
#pragma once

#include "uprof/number-text.h"
#include "uprof/profile.h"
#include "uprof/run-facts.h"

/** uprof_summary_say_start: prints the plan of the run; @shown: the name, safe to print */
void uprof_summary_say_start(const UprofRun *run, const char *shown);

/** uprof_summary_say_end: prints the counts, the quality and hints, in at least two lines */
void uprof_summary_say_end(const UprofRun *run, const char *shown);

/** uprof_summary_say_untimed: warns if @profile lacks the times of some samples */
void uprof_summary_say_untimed(const UprofProfile *profile, const char *shown);
