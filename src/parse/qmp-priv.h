/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qmp-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_QMP_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_QMP_CPUS_MAX = 4096,
};
