/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * printk-ring-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_PRINTK_DESC_BYTES_MAX = 64,  /* 24 in kernels so far */
    UPROF_PRINTK_INFO_BYTES_MAX = 256, /* 88 in kernels so far */
};
