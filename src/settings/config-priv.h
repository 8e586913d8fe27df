/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config-priv.h - parses a configuration from memory
 */
#pragma once

#include "uprof/config.h"

/**
 * uprof_config_parse:
 * @text: the content of a file
 *
 * Returns: (transfer full) (nullable): the values of @text, and defaults for all others; %NULL with
 *   %UPROF_ERROR_BAD_DATA, which does not name the file
 */
UprofConfig *uprof_config_parse(UprofSlice text, GError **error);
