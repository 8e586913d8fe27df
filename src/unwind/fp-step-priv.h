/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fp-step-priv.h - the unwinder that follows frame pointers
 */
#pragma once

#include "unwind-context-priv.h"

/**
 * uprof_fp_step: an UprofStepFunc
 *
 * The frame pointer points at a record: the caller's frame pointer, and the return address
 * above it. The guest wrote it and may mean harm: the record must be aligned, lie above the
 * stack pointer by no more than %UPROF_FRAME_BYTES_MAX bytes, and be in the snapshot.
 *
 * A frame pointer or return address of 0 ends the chain of records. It marks the root only if a
 * record led to the present frame. Otherwise the register may have any value, and the step passes.
 */
UprofStep uprof_fp_step(const UprofUnwindContext *context, UprofCursor *cursor);
