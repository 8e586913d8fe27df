/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sidecar-priv.h - limits that only this module and its tests know
 */
#pragma once

#include <stdint.h>

enum {
    UPROF_SIDECAR_IMAGES_MAX = 1024,
    UPROF_SIDECAR_VERSION = 1,
};

/* Samples or frames, and milliseconds, of one file. Sums of thousands of files do not overflow. */
#define UPROF_SIDECAR_COUNT_MAX (UINT64_C(1) << 52)
#define UPROF_SIDECAR_MS_MAX (UINT64_C(1) << 33)
