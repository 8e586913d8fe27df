/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * settings-priv.h - parses values of settings
 */
#pragma once

#include "uprof/settings.h"

bool uprof_settings_parse_chance(const char *text, uint64_t *chance_ppm);
