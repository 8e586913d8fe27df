/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * settings-priv.h - parses values of settings
 */
#pragma once

#include "uprof/settings.h"

enum {
    UPROF_RATE_MAX_HZ = 20000,
    UPROF_DURATION_MAX_S = 30 * 24 * 3600,
    UPROF_DEPTH_DEFAULT = 127,
    UPROF_METADATA_RATE_MAX_HZ = 1000,
};

/** uprof_settings_parse_chance: parses a probability, 0 to 1. Returns: false for a bad value */
bool uprof_settings_parse_chance(const char *text, uint64_t *chance_ppm);
