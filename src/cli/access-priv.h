/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * access-priv.h - which way into a guest
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/host.h"

/** uprof_access_find: Returns: (nullable): the backend of that name, if this build has it */
const UprofGuestOps *uprof_access_find(const char *name);

/**
 * uprof_access_choose:
 * @domain: running
 * @asked: "auto" or a name
 * @why: (out): why it is this one; literal
 *
 * Touches no guest.
 *
 * Returns: (nullable): %NULL with %UPROF_ERROR_UNSUPPORTED
 */
const UprofGuestOps *
uprof_access_choose(const UprofDomain *domain, const char *asked, const char **why, GError **error);
