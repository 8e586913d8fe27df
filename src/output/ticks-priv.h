/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ticks-priv.h - a profile in the order of time, whether that is known or not
 *
 * What was not sampled here, or is several runs in one, has no times: then
 * stacks follow each other in the order of their names, from 0 on, each for as
 * long as it weighs.
 */
#pragma once

#include "uprof/profile.h"

/** uprof_ticks_period_ns: Returns: between samples of one vCPU; of an unknown rate 10 ms */
uint64_t uprof_ticks_period_ns(const UprofRun *run);

/**
 * uprof_ticks_walk:
 * @vcpu: of that one alone; %UPROF_PROFILE_ALL_VCPUS: of all
 *
 * Visits in the order of time, of each vCPU.
 */
void uprof_ticks_walk(const UprofProfile *profile, const UprofRun *run, uint32_t vcpu,
                      UprofProfileTickVisit visit, void *data);

/** uprof_ticks_vcpus: Returns: (transfer full): of uint32_t: those there are, ascending */
GArray *uprof_ticks_vcpus(const UprofProfile *profile, const UprofRun *run);
