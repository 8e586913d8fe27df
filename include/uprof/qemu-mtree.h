/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-mtree.h - finds the guest's memory in QEMU's monitor output
 *
 * "info mtree -f" prints flat views. Only lines of kind "ram" in the view of address space
 * "memory" count. The other lines are ROM, devices and views of other masters. Reading a device
 * can change the device.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_RAM_RANGES_MAX = 256,
};

typedef struct {
    uint64_t gpa; /* guest-physical address of the first byte */
    uint64_t len; /* bytes */
    uint64_t hva; /* address in the QEMU process; 0: unknown */
} UprofRamRange;

/**
 * uprof_qemu_mtree_parse:
 * @text: reply to "info mtree -f"
 * @ranges: (out): sorted by address, not overlapping, hva 0
 * @n: (out): number of ranges, at least 1
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, outputs unchanged, if there is no such view, the view
 *   has no RAM, or a line is malformed
 */
bool uprof_qemu_mtree_parse(UprofSlice text, UprofRamRange ranges[UPROF_RAM_RANGES_MAX],
                            unsigned *n, GError **error);

/**
 * uprof_qemu_hva_parse:
 * @text: reply to "gpa2hva ADDRESS"
 * @hva: (out): address in the QEMU process
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, quoting QEMU, if the address is not RAM
 */
bool uprof_qemu_hva_parse(UprofSlice text, uint64_t *hva, GError **error);
