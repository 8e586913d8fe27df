/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * retention-priv.h - deletes profiles that are too old, or for which there is no room
 *
 * Old slices are deleted if a closed day has counted them, or if they are damaged. Old days are
 * deleted after their slices. Age does not delete the newest closed day of a domain, because the
 * domain may be off for a long time, and because a wrong clock makes every profile look old. The
 * size limit applies to all profiles: the newest closed day of each domain, and slices that are not
 * merged, are deleted after all other profiles; otherwise older profiles are deleted first.
 */
#pragma once

#include "pruning-priv.h"
#include "uprof/catalog.h"

/** uprof_retention_apply: deletes profiles, and adds up the size of the files that stay */
void uprof_retention_apply(UprofPruning *pruning, const UprofCatalog *catalog);

/** uprof_retention_is_exceeded: the store is larger than its limit */
bool uprof_retention_is_exceeded(const UprofPruning *pruning);
