/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * orc-table-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_ORC_ENTRIES_MAX = 4 * 1024 * 1024,
};
