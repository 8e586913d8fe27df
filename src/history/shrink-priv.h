/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shrink-priv.h - makes a profile small enough to be read again
 */
#pragma once

#include "uprof/profile.h"

/**
 * uprof_shrink_profile: replaces the rarest stacks by [unknown]
 * @profile: with a root
 * @bytes_max: limit of the profile as folded stacks
 * @n_lost: (out): samples of the stacks that were replaced
 *
 * Returns: (transfer full) (nullable): %NULL if @profile is small enough
 */
UprofProfile *
uprof_shrink_profile(const UprofProfile *profile, uint64_t bytes_max, uint64_t *n_lost);
