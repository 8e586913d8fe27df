/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fit-priv.h - a profile made small enough to be read back
 */
#pragma once

#include "uprof/profile.h"

/**
 * uprof_fit_profile:
 * @profile: with a root
 * @bytes_max: of it as folded stacks
 * @n_lost: (out): samples that are [unknown] now
 *
 * The rarest stacks go first.
 *
 * Returns: (transfer full) (nullable): %NULL if it is small enough as it is
 */
UprofProfile *uprof_fit_profile(const UprofProfile *profile, uint64_t bytes_max, uint64_t *n_lost);
