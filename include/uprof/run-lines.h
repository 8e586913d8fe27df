/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run-lines.h - the start and the end of a run, in a few lines for people
 *
 * @shown is the domain's name, safe to print. Each function returns the lines: (transfer full)
 * (element-type utf8).
 */
#pragma once

#include "uprof/number-text.h"
#include "uprof/profile.h"
#include "uprof/run-facts.h"

/**
 * uprof_run_lines_start: the settings of the run
 * @samples: the run ends after so many samples; 0: no limit
 */
GPtrArray *uprof_run_lines_start(const UprofRun *run, const char *shown, unsigned samples);

/** UprofRunLinesHow: what the end of a run shows */
typedef struct {
    bool is_verbose; /* all numbers; otherwise one line, and a line for each thing that is not well
                      */
    bool is_live;    /* the run has just ended, and can be repeated with other options */
} UprofRunLinesHow;

/** uprof_run_lines_end: the counts, the quality and hints */
GPtrArray *uprof_run_lines_end(const UprofRun *run, const char *shown, const UprofRunLinesHow *how);

/** uprof_run_lines_untimed: a warning if @profile lacks the times of some samples */
GPtrArray *uprof_run_lines_untimed(const UprofProfile *profile, const char *shown);
