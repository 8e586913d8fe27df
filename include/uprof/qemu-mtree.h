/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-mtree.h - where QEMU keeps the guest's memory
 *
 * "info mtree -f" prints flat views; only the one of address space "memory"
 * counts, and of it only lines of kind "ram": the rest is ROM, devices and
 * other masters' views, and reading a device is an access to it.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_RAM_RANGES_MAX = 256,
    UPROF_QEMU_MTREE_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_QEMU_HVA_BYTES_MAX = 1024,
};

/**
 * UprofRamRange:
 * @gpa: guest-physical address of its first byte
 * @len: bytes
 * @hva: address in the QEMU process; 0: not known
 */
typedef struct {
    uint64_t gpa;
    uint64_t len;
    uint64_t hva;
} UprofRamRange;

/**
 * uprof_qemu_mtree_parse:
 * @text: answer to "info mtree -f"
 * @ranges: (out): sorted by address, not overlapping, hva 0
 * @n: (out): how many, at least 1
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, outputs untouched, if there is no
 *   such view, no RAM in it, or a line is malformed
 */
bool uprof_qemu_mtree_parse(UprofSlice text, UprofRamRange ranges[UPROF_RAM_RANGES_MAX],
                            unsigned *n, GError **error);

/**
 * uprof_qemu_hva_parse:
 * @text: answer to "gpa2hva ADDRESS"
 * @hva: (out): address in the QEMU process
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, quoting QEMU, if it is not RAM
 */
bool uprof_qemu_hva_parse(UprofSlice text, uint64_t *hva, GError **error);
