/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-round.h - the rows of one round of `top`, from the worker of a domain to the table
 */
#pragma once

#include "uprof/analysis.h"

/**
 * uprof_top_round_make: in a worker: packs the functions, vCPUs, processes and cgroups of the
 * samples since the last round, and keeps the stacks for a picture (top-picture.h)
 * @argument: empty
 */
void uprof_top_round_make(UprofAnalysis *analysis, UprofSlice argument, GByteArray *reply);
