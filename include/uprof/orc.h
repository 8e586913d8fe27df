/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * orc.h - how a Linux kernel on x86_64 says that its stacks are unwound
 *
 * Two tables in the kernel's own memory, and two in that of each module: addresses of
 * code, sorted, and as many entries, each of which holds from its address up to the
 * next one (Linux, arch/x86/include/asm/orc_types.h and arch/x86/kernel/unwind_orc.c).
 * What an entry's bits mean has changed with releases; here all of them become one.
 *
 * Does not know stacks; unwind/orc.c applies the rules. The tables are the guest's, and
 * may be made to hurt.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_ORC_ENTRIES_MAX = 4 * 1024 * 1024,
    UPROF_ORC_IP_BYTES = 4,    /* an address: as far as it lies from its own place */
    UPROF_ORC_ENTRY_BYTES = 6, /* offsets of sp and of bp, flags: 16 bits each */
    UPROF_ORC_HEADER_BYTES = 20,
};

/** UprofOrcVersion: what entries mean, by the release from which on they mean it */
typedef enum {
    UPROF_ORC_UNKNOWN,
    UPROF_ORC_4_14,
    UPROF_ORC_5_12, /* as before, but for what the stack pointer points at */
    UPROF_ORC_6_3,
    UPROF_ORC_6_4,
    UPROF_ORC_7_1,
    UPROF_ORC_N_VERSIONS,
} UprofOrcVersion;

/**
 * UprofOrcType: what a frame is
 * @UPROF_ORC_UNDEFINED: nobody knows
 * @UPROF_ORC_END: nobody called this
 * @UPROF_ORC_CALL: it was called: the return address is below its CFA
 * @UPROF_ORC_REGS: at its CFA are all registers of what was interrupted: a pt_regs
 * @UPROF_ORC_PARTIAL: at its CFA is what the processor leaves there of an interrupt;
 *   all other registers are as they were
 */
typedef enum {
    UPROF_ORC_UNDEFINED,
    UPROF_ORC_END,
    UPROF_ORC_CALL,
    UPROF_ORC_REGS,
    UPROF_ORC_PARTIAL,
} UprofOrcType;

/**
 * UprofOrcReg: what an offset counts from
 * @UPROF_ORC_REG_SAME: nothing: the value was not touched
 * @UPROF_ORC_REG_CFA: the caller's stack pointer
 * @UPROF_ORC_REG_AT_SP: the word at the stack pointer
 * @UPROF_ORC_REG_AT_SP_OFFSET: nothing: it is the word at stack pointer + offset
 * @UPROF_ORC_REG_AT_BP_OFFSET: nothing: it is the word at frame pointer + offset
 */
typedef enum {
    UPROF_ORC_REG_SAME,
    UPROF_ORC_REG_CFA,
    UPROF_ORC_REG_AX,
    UPROF_ORC_REG_DX,
    UPROF_ORC_REG_DI,
    UPROF_ORC_REG_BP,
    UPROF_ORC_REG_SP,
    UPROF_ORC_REG_R10,
    UPROF_ORC_REG_R13,
    UPROF_ORC_REG_AT_SP,
    UPROF_ORC_REG_AT_SP_OFFSET,
    UPROF_ORC_REG_AT_BP_OFFSET,
} UprofOrcReg;

/**
 * UprofOrcRule: how to get from a frame to its caller's
 * @type: of #UprofOrcType; of an undefined frame and of the end nothing else matters
 * @is_signal: the caller's program counter is exact, no return address
 * @sp_reg: of #UprofOrcReg, what the CFA counts from; neither %UPROF_ORC_REG_SAME nor
 *   %UPROF_ORC_REG_CFA
 * @bp_reg: of #UprofOrcReg, what the place of the saved frame pointer counts from:
 *   %UPROF_ORC_REG_SAME, %UPROF_ORC_REG_CFA or %UPROF_ORC_REG_BP
 * @sp_offset, @bp_offset: bytes
 */
typedef struct {
    uint8_t type;
    bool is_signal;
    uint8_t sp_reg, bp_reg;
    int16_t sp_offset, bp_offset;
} UprofOrcRule;

typedef struct _UprofOrc UprofOrc;

/**
 * uprof_orc_version:
 * @header: what the kernel says of its entries: %UPROF_ORC_HEADER_BYTES from
 *   __start_orc_header on; empty if there is no such place (before 6.3.10 and 6.4)
 * @release: as uname -r prints it; counts if there is no header
 *
 * Returns: %UPROF_ORC_UNKNOWN if the header is one that is not known, or the release is
 *   none, or one without such tables
 */
UprofOrcVersion uprof_orc_version(UprofSlice header, const char *release);

/** uprof_orc_version_name: Returns: the release from which on entries mean it, "6.4"; literal */
const char *uprof_orc_version_name(unsigned version);

/**
 * uprof_orc_parse:
 * @ips: %UPROF_ORC_IP_BYTES each; copied
 * @ips_at: guest-virtual address of the first of them
 * @entries: %UPROF_ORC_ENTRY_BYTES each, as many; copied
 * @version: not %UPROF_ORC_UNKNOWN
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if these are no
 *   such tables: not as many of one as of the other, not sorted, too far apart
 */
UprofOrc *uprof_orc_parse(UprofSlice ips, uint64_t ips_at, UprofSlice entries,
                          UprofOrcVersion version, GError **error);
void uprof_orc_free(UprofOrc *orc);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofOrc, uprof_orc_free)

/** uprof_orc_n: Returns: entries */
unsigned uprof_orc_n(const UprofOrc *orc);

/**
 * uprof_orc_limit:
 * @start: guest-virtual address of the code that the table is of
 * @len: bytes
 *
 * From now on the table knows nothing of what lies elsewhere. A module keeps entries of
 * code that is gone after it was loaded, where by now other code may be.
 */
void uprof_orc_limit(UprofOrc *orc, uint64_t start, uint64_t len);

/**
 * uprof_orc_find:
 * @pc: guest-virtual address of an instruction
 * @rule: (out): the last entry's that does not begin behind it
 *
 * Returns: false, @rule untouched, before the first entry, from the last one on (which
 *   only ends the one before), out of the limits, and of an entry that means nothing
 */
bool uprof_orc_find(const UprofOrc *orc, uint64_t pc, UprofOrcRule *rule);
