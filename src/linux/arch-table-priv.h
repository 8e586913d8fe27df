/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * arch-table-priv.h - finds the row of an architecture
 */
#pragma once

#include "uprof/linux-arch.h"

/**
 * uprof_linux_arch_find:
 * @arch: of the guest
 *
 * Returns: (nullable): %NULL if Linux guests of this architecture are not supported
 */
const UprofLinuxArch *uprof_linux_arch_find(const UprofArch *arch);
