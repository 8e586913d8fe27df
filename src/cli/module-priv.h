/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module-priv.h - loads the module for Xen, when a domain of Xen is named
 */
#pragma once

#include "uprof/xen-module.h"

/**
 * uprof_module_xen:
 *
 * Looks in the folder that was compiled in, and nowhere else; what others than
 * root could have written there is refused. Once loaded it stays.
 *
 * Returns: (transfer none) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED: what is
 *   missing, and which package has it
 */
const UprofXenModule *uprof_module_xen(GError **error);
