/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-orc.h - writes the two tables by which a Linux kernel unwinds its own stacks
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/** OrcLine: an entry of the tables */
typedef struct {
    uint64_t pc;                  /* first address to which the entry applies */
    int16_t sp_offset, bp_offset; /* as in the kernel's table */
    uint16_t flags;               /* as in the kernel's table */
} OrcLine;

/**
 * build_orc:
 * @ips_at: address of the table of addresses; each address lies within 2 GiB of it
 * @ips, @entries: (inout): the tables are appended
 */
void
build_orc(const OrcLine *lines, size_t n, uint64_t ips_at, GByteArray *ips, GByteArray *entries);
