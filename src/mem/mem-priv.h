/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mem-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_MEM_PAGES_MAX = 16 * 1024, /* pages that are remembered: 64 MiB */
    UPROF_MEM_FRESH_MAX = 48,        /* pages that are fetched for one sample */
    /* pages beyond these, by the time of snapshots, and how many of them may be saved up */
    UPROF_MEM_MORE_PER_SECOND = 1024,
    UPROF_MEM_SAVED_MAX = 4096,
};
