/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-mtree-priv.h - limits that only this module and its tests know
 */
#pragma once

enum {
    UPROF_QEMU_MTREE_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_QEMU_HVA_BYTES_MAX = 1024,
};
