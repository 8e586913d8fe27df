/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * leaf-step-x86_64-priv.h - the unwinder for innermost frames without a frame record
 */
#pragma once

#include "unwind-context-priv.h"

/**
 * uprof_leaf_x86_64_step: an UprofStepFunc
 * @cursor: its pc is exact; its frame pointer may be the caller's
 */
UprofStep uprof_leaf_x86_64_step(const UprofUnwindContext *context, UprofCursor *cursor);
