/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * diagnosis-text.h - findings as lines, and as JSON
 */
#pragma once

#include "uprof/diagnosis.h"
#include "uprof/json-writer.h"

/**
 * uprof_diagnosis_text_append: appends the title and a line for each finding
 * @only_failures: leaves out all other findings, and the title if nothing is left
 */
void uprof_diagnosis_text_append(GString *out, const UprofDiagnosis *diagnosis, bool only_failures);

/** uprof_diagnosis_text_write: writes one object; @exit_code: its member "exit" */
void
uprof_diagnosis_text_write(UprofJsonWriter *json, const UprofDiagnosis *diagnosis, int exit_code);
