/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * space-priv.h - facts about processes, for tests
 */
#pragma once

#include "uprof/space.h"

enum {
    UPROF_SPACE_PROCESSES_MAX = 4096, /* remembered */
    UPROF_SPACE_AREAS_MAX = 1024,     /* remembered of a process; code only */
    UPROF_SPACE_LOOKUPS_MAX = 64,     /* for one sample */
};

/** uprof_space_has_processes: does the guest have processes whose areas can be read? */
bool uprof_space_has_processes(const UprofSpace *space);
