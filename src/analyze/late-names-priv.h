/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * late-names-priv.h - names for addresses whose symbols came after their samples were counted
 */
#pragma once

#include "uprof/profile.h"
#include "uprof/sym.h"

/**
 * uprof_late_names_apply: replaces frames such as "[libc.so.6+0x1a2b]" by names that @sym knows now
 * @profile: (transfer full)
 * @n_named: (inout): the frames that got a name are added, once for each sample
 *
 * Call it before uprof_sym_resolve(). If modules of the same label differ, their frames stay.
 *
 * Returns: (transfer full): the profile
 */
UprofProfile *uprof_late_names_apply(UprofProfile *profile, UprofSym *sym, uint64_t *n_named);
