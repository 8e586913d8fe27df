/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * record-priv.h - record, for other commands
 */
#pragma once

#include "options-priv.h"
#include "uprof/run.h"

/** UprofRecordTold: @run: borrowed: of one domain, when its files are written */
typedef void (*UprofRecordTold)(const UprofRun *run, void *data);

/**
 * uprof_record_run_told: as the command
 * @told: (nullable)
 *
 * Forks before it connects: whoever calls it has no connection, and no thread.
 *
 * Returns: exit code
 */
int uprof_record_run_told(UprofOptions *options, UprofRecordTold told, void *data);
