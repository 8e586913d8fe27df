/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * space-priv.h - facts about processes, for tests
 */
#pragma once

#include "uprof/space.h"

/** uprof_space_has_processes: does the guest have processes whose areas can be read? */
bool uprof_space_has_processes(const UprofSpace *space);
