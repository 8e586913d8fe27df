/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * analysis-priv.h - the main function of a worker
 */
#pragma once

#include "uprof/analysis.h"

/** uprof_analysis_run: UprofSpawnPlan.work; @data: UprofWorkerPlan. Returns: 0, always */
int uprof_analysis_run(const int *fds, unsigned n_fds, void *data);
