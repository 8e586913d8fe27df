/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gzip-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_GZIP_BYTES_MAX_MIB = 256, /* unpacked and packed */
    UPROF_GZIP_RATIO_MAX = 1000,    /* unpacked to packed size, from 1 MiB of unpacked data on */
};
