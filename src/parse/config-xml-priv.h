/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * config-xml-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_CONFIG_VALUE_BYTES_MAX = 64 * 1024,
    UPROF_CONFIG_DESTINATIONS_MAX = 32,
};
