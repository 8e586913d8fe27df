/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * capture-writer-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_CAPTURE_TASKS_PART_BYTES = 64 * 1024,
};
