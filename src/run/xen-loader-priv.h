/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * xen-loader-priv.h - loads the two modules for Xen domains when they are first needed
 */
#pragma once

#include "uprof/xen-module.h"
#include "uprof/xl-module.h"

/**
 * uprof_xen_loader_load: loads the module from the folder that was set when the program was built
 *
 * Any thread may call it. Refuses a module that a user other than root may write to, because root
 * may run the program. The module stays loaded until the process ends.
 *
 * Returns: (transfer none) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED; the message names the
 *   package that contains the module
 */
const UprofXenModule *uprof_xen_loader_load(GError **error);

/**
 * uprof_xen_loader_load_xl: the same for the module that knows the domains of xl
 *
 * Returns: (transfer none) (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED, also if libxenlight is
 *   missing
 */
const UprofXlModule *uprof_xen_loader_load_xl(GError **error);
