/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * settings-priv.h - parses values of settings
 */
#pragma once

#include "uprof/settings.h"

/** uprof_settings_parse_chance: parses a probability, 0 to 1. Returns: false for a bad value */
bool uprof_settings_parse_chance(const char *text, uint64_t *chance_ppm);
