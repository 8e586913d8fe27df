/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unwind-priv.h - between unwind.c and the unwinders
 */
#pragma once

#include "uprof/unwind.h"

/** uprof_unwind_read_code: guest memory at @gva, as remembered. Returns: whether all is there */
bool
uprof_unwind_read_code(const UprofUnwindContext *context, uint64_t gva, void *into, size_t len);

/** uprof_leaf_x86_64_step: as uprof_fp_step(), of an innermost frame at the edge of its function */
UprofStep uprof_leaf_x86_64_step(const UprofUnwindContext *context, UprofRegs *frame);
