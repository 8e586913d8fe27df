/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * destination-priv.h - makes destinations of the configuration file
 */
#pragma once

#include "uprof/config-xml.h"
#include "uprof/destination.h"

enum { UPROF_DESTINATION_AGE_S = 3600 }; /* default of maxAge: what Pyroscope takes */

/**
 * uprof_destination_new:
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA, which names the attribute
 */
UprofDestination *uprof_destination_new(const UprofDestinationXml *xml, GError **error);
