/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-orc.h - the two tables by which a Linux kernel says how its stacks are unwound
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/** OrcLine: @pc: where it begins; the rest as the kernel writes it */
typedef struct {
    uint64_t pc;
    int16_t sp_offset, bp_offset;
    uint16_t flags;
} OrcLine;

/**
 * build_orc:
 * @ips_at: where the table of addresses is; not farther from any of them than 2 GiB
 * @ips, @entries: (out): appended to
 */
void
build_orc(const OrcLine *lines, size_t n, uint64_t ips_at, GByteArray *ips, GByteArray *entries);
