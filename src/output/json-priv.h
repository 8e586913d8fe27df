/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-priv.h - the facts of a run as JSON, for whatever carries them
 */
#pragma once

#include "uprof/run.h"

/** uprof_json_append_run: @with_files: what was written too, in which files that do not know of
 * each other differ */
void uprof_json_append_run(GString *out, const UprofRun *run, bool with_files);
