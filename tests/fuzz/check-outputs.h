/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * check-outputs.h - writes a profile in all formats, and checks the results
 */
#pragma once

#include "uprof/output.h"

/** CheckedOutputs: a set of formats to check */
typedef enum {
    CHECK_STACKS = 1,    /* folded stacks, pprof, perf */
    CHECK_DOCUMENTS = 2, /* SVG, speedscope, sidecar, report in JSON */
    CHECK_TABLES = 4,    /* tables, and comparisons with other profiles */
    CHECK_ALL = 7,
} CheckedOutputs;

/**
 * check_outputs: aborts if an output is not well-formed, or loses samples
 *
 * Other libraries read XML and JSON. The project's own readers read folded stacks and pprof.
 */
void check_outputs(const UprofProfile *profile, const UprofRun *run, CheckedOutputs which);

/** check_annotation: the same for the instructions of a function */
void check_annotation(const UprofAnnotation *annotation, const UprofRun *run);
