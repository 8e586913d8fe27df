/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-regs.h - QEMU's "info registers [-a]", which is text and no ABI
 *
 * Forms: target/i386/cpu-dump.c of QEMU 2.x to 9.x. Used while a guest is held:
 * allocates nothing unless it fails.
 */
#pragma once

#include "uprof/snapshot.h"

enum { UPROF_QEMU_REGS_BYTES_MAX = 4 * 1024 * 1024 };

/**
 * uprof_qemu_regs_find:
 * @text: answer to "info registers -a"
 * @cpu: QEMU's CPU index
 * @block: (out): that CPU's part
 *
 * A text without any "CPU#" heading is the block of CPU 0.
 *
 * Returns: false, @block untouched, if there is none
 */
bool uprof_qemu_regs_find(UprofSlice text, unsigned cpu, UprofSlice *block);

/**
 * uprof_qemu_regs_parse:
 * @block: one CPU's part
 * @arch: of the guest
 * @regs: (out): all registers that the architecture's row names, page-table
 *   roots and modes; a CPU that was never started (x86: CR0.PE clear at the
 *   reset vector) is halted
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA naming the register that is missing
 *   or malformed, or %UPROF_ERROR_UNSUPPORTED for an architecture without a table
 */
bool
uprof_qemu_regs_parse(UprofSlice block, const UprofArch *arch, UprofRegs *regs, GError **error);
