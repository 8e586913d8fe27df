/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * profile-priv.h - special nodes of a profile
 */
#pragma once

#include "uprof/profile.h"

/** uprof_profile_unknown: Returns: "[unknown]" in the table of the profile's names */
const UprofName *uprof_profile_unknown(const UprofProfile *profile);

/**
 * uprof_profile_is_halt: does the stack only record that a vCPU was halted?
 * @frames: root first, as visited; if there is no root, the first frame counts as root
 *
 * Such a stack is [idle] directly below the domain, or below a vCPU. With --idle=stack,
 * [idle] is the leaf of the stack in which the vCPU was halted; that is not a halt here.
 */
bool uprof_profile_is_halt(const UprofName *const *frames, unsigned n);
