/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * match-priv.h - checks whether the guest runs the code of an image's file
 */
#pragma once

#include "image-priv.h"
#include "uprof/mem.h"

/**
 * uprof_match_compare: sets the image's @match by guest memory; see uprof_sym_check()
 *
 * Returns: true if @match has changed
 */
bool uprof_match_compare(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                         uint64_t pc);
