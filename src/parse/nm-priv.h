/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * nm-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_NM_BYTES_MAX = 512 * 1024 * 1024,
};
