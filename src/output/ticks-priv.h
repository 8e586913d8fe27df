/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ticks-priv.h - the stacks of a profile in the order of time
 *
 * Profiles of other programs, and merged runs, have no times. Their stacks follow each other
 * in the order of their names, from time 0 on, each for the time of its weight.
 */
#pragma once

#include "uprof/profile.h"

/** uprof_ticks_period_ns: Returns: time between samples of a vCPU; 10 ms if the rate is unknown */
uint64_t uprof_ticks_period_ns(const UprofRun *run);

/**
 * uprof_ticks_walk:
 * @vcpu: the vCPU to visit, or %UPROF_PROFILE_ALL_VCPUS
 *
 * Visits the ticks of each vCPU in the order of time.
 */
void uprof_ticks_walk(const UprofProfile *profile, const UprofRun *run, uint32_t vcpu,
                      UprofProfileTickVisit visit, void *data);

/** uprof_ticks_vcpus: Returns: (transfer full) (element-type uint32_t): its vCPUs, ascending */
GArray *uprof_ticks_vcpus(const UprofProfile *profile, const UprofRun *run);
