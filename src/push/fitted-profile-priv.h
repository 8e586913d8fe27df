/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fitted-profile-priv.h - makes a profile small enough for an engine
 *
 * Grafana Pyroscope takes 16,000 samples, 4 MiB and 1000 frames a stack in a profile by default
 * (validation.Limits in its pkg/validation). Parca takes more.
 */
#pragma once

#include "uprof/output.h"

enum {
    UPROF_FITTED_STACKS_MAX = 16000,
    UPROF_FITTED_FRAMES_MAX = 1000,           /* of a stack */
    UPROF_FITTED_BYTES_MAX = 4 * 1024 * 1024, /* of the profile, before it is compressed */
};

/**
 * uprof_fitted_profile_render:
 * @has_vcpus: keeps the vCPUs of @profile, if it has any
 *
 * If the profile is too large, its smallest stacks become one stack, "[other]", and a comment says
 * so. The outer frames of a stack that is too deep become "[truncated]".
 *
 * Returns: (transfer full): as uprof_pprof_render()
 */
GString *
uprof_fitted_profile_render(const UprofProfile *profile, const UprofRun *run, bool has_vcpus);
