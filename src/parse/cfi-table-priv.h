/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi-table-priv.h - lets tests walk over all rows of a table
 */
#pragma once

#include "uprof/cfi-table.h"

/**
 * uprof_cfi_row:
 * @i: index of the row, from 0; rows are sorted by address
 * @pc: (out): link address where the row begins
 * @rule: (out) (nullable): borrowed; %NULL if the row has no rule
 *
 * Returns: false behind the last row
 */
bool uprof_cfi_row(const UprofCfi *cfi, size_t i, uint64_t *pc, const UprofCfiRule **rule);
