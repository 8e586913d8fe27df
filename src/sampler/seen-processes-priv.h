/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seen-processes-priv.h - the processes of a guest that were sampled lately
 *
 * A process that ends takes with it where its files are mapped. So the analysis must look at a new
 * process at once.
 */
#pragma once

#include "uprof/links.h"
#include "uprof/snapshot.h"

enum { UPROF_SEEN_PROCESSES = 1024 };

/** UprofSeenProcesses: all zeros: none was seen. A process may be forgotten for another one. */
typedef struct {
    uint64_t keys[UPROF_SEEN_PROCESSES];
} UprofSeenProcesses;

/**
 * uprof_seen_processes_add:
 * @links: (nullable): of the guest, as in the hold
 *
 * Returns: true if the sample is of a process that was not seen
 */
bool uprof_seen_processes_add(UprofSeenProcesses *seen, const UprofLinks *links,
                              const UprofSnapshot *snapshot);
