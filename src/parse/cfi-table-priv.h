/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi-table-priv.h - limits of tables of unwind rules, and a walk over all rows for tests
 */
#pragma once

#include "uprof/cfi-table.h"

/*
 * An image beyond the limits of sections, entries or pages is refused. Code beyond the other
 * limits has no rule.
 */
enum {
    UPROF_CFI_SECTION_BYTES_MAX = 256 * 1024 * 1024,
    UPROF_CFI_CIES_MAX = 256 * 1024, /* in one section */
    UPROF_CFI_FDES_MAX = 4 * 1000 * 1000,
    UPROF_CFI_ROWS_MAX = 16 * 1000 * 1000,
    UPROF_CFI_REGIONS_MAX = 64,    /* ranges of code that are far apart */
    UPROF_CFI_PAGES_MAX = 1 << 20, /* pages of 4 KiB in all regions: 4 GiB of code */
    UPROF_CFI_PROGRAM_BYTES_MAX = 64 * 1024,
    UPROF_CFI_STATES_MAX = 16, /* states that a program can push */
    UPROF_CFI_RULES_MAX = 65535,
    UPROF_CFI_EXPRESSIONS_MAX = 4096, /* different expressions */
    UPROF_CFI_REACH_BYTES_MAX = 1024 * 1024,
};

/**
 * uprof_cfi_row:
 * @i: index of the row, from 0; rows are sorted by address
 * @pc: (out): link address where the row begins
 * @rule: (out) (nullable): borrowed; %NULL if the row has no rule
 *
 * Returns: false behind the last row
 */
bool uprof_cfi_row(const UprofCfi *cfi, size_t i, uint64_t *pc, const UprofCfiRule **rule);
