/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-regs.h - reads registers from QEMU's "info registers [-a]"
 *
 * The output is text for people and has no stable format. The reader knows the forms of
 * target/i386/cpu-dump.c and target/arm/cpu.c of QEMU 2.x to 9.x. The reader runs while a guest is
 * held, so it allocates only error messages.
 */
#pragma once

#include "uprof/snapshot.h"

/**
 * uprof_qemu_regs_find:
 * @text: reply to "info registers -a"
 * @cpu: QEMU's CPU index
 * @block: (out): the part of this CPU, borrowed; unchanged on failure
 *
 * A text without any "CPU#" heading is the block of CPU 0.
 *
 * Returns: false if @text has no such part
 */
bool uprof_qemu_regs_find(UprofSlice text, unsigned cpu, UprofSlice *block);

/**
 * uprof_qemu_regs_parse:
 * @block: the part of one CPU
 * @arch: the guest's
 * @regs: (out): all registers of @arch, page-table roots and modes; a CPU that has not been
 *   started (x86: CR0.PE clear at the reset vector) is halted; unchanged on failure. On aarch64,
 *   @regs has no roots and no modes, because QEMU prints no system registers.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA naming the register that is missing
 *   or malformed, or %UPROF_ERROR_UNSUPPORTED for an architecture without a table
 */
bool
uprof_qemu_regs_parse(UprofSlice block, const UprofArch *arch, UprofRegs *regs, GError **error);
