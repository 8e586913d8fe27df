/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * analysis-findings.h - findings of `check` from the analysis of a few samples, in a worker
 */
#pragma once

#include "uprof/analysis.h"
#include "uprof/diagnosis.h"

/** uprof_analysis_findings_add: adds findings about symbols, unwind tables, stacks and callers */
void uprof_analysis_findings_add(UprofDiagnosis *diagnosis, const UprofAnalysis *analysis);
