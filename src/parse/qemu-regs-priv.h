/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-regs-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_QEMU_REGS_BYTES_MAX = 4 * 1024 * 1024,
};
