/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-priv.h - the facts of a run as JSON
 */
#pragma once

#include "uprof/json-writer.h"
#include "uprof/run-facts.h"

/**
 * uprof_json_append_run: appends the sidecar of a run
 * @with_files: includes the names of the files that the run wrote
 *
 * Pictures carry no such names, so that equal profiles give equal pictures.
 */
void uprof_json_append_run(GString *out, const UprofRun *run, bool with_files);

/** uprof_json_write_run: writes the members of the sidecar into an object that has begun */
void uprof_json_write_run(UprofJsonWriter *json, const UprofRun *run);
