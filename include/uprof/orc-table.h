/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * orc-table.h - reads the tables by which a Linux kernel on x86_64 unwinds its own stacks
 *
 * The kernel's memory has two tables, and the memory of each module has two: sorted addresses
 * of code, and an entry for each address. An entry applies from its address up to the next address
 * (Linux, arch/x86/include/asm/orc_types.h and arch/x86/kernel/unwind_orc.c). The bits of an
 * entry have changed between releases; this module translates all of them to UprofOrcRule.
 *
 * This module knows nothing of stacks. src/unwind applies the rules. A hostile guest may write
 * any tables.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_ORC_IP_BYTES = 4,    /* an address, as distance from itself */
    UPROF_ORC_ENTRY_BYTES = 6, /* offset of sp, offset of bp, flags: 16 bits each */
    UPROF_ORC_HEADER_BYTES = 20,
};

/** UprofOrcVersion: the meaning of entries, named after the first release that has it */
typedef enum {
    UPROF_ORC_UNKNOWN,
    UPROF_ORC_4_14,
    UPROF_ORC_5_12, /* differs from 4.14 in UPROF_ORC_REG_AT_SP */
    UPROF_ORC_6_3,
    UPROF_ORC_6_4,
    UPROF_ORC_7_1,
    UPROF_ORC_N_VERSIONS,
} UprofOrcVersion;

/** UprofOrcType: the kind of a frame */
typedef enum {
    UPROF_ORC_UNDEFINED, /* the table does not know the caller */
    UPROF_ORC_END,       /* root frame: there is no caller */
    UPROF_ORC_CALL,      /* a called function: the return address is below its CFA */
    UPROF_ORC_REGS,      /* an interrupt: the CFA is the address of a pt_regs with all registers */
    /* an interrupt: at the CFA are only the registers that the processor pushes; the others are
     * unchanged */
    UPROF_ORC_PARTIAL,
} UprofOrcType;

/** UprofOrcReg: the base from which an offset counts */
typedef enum {
    UPROF_ORC_REG_SAME, /* nothing: the value is unchanged */
    UPROF_ORC_REG_CFA,  /* the caller's stack pointer */
    UPROF_ORC_REG_AX,
    UPROF_ORC_REG_DX,
    UPROF_ORC_REG_DI,
    UPROF_ORC_REG_BP,
    UPROF_ORC_REG_SP,
    UPROF_ORC_REG_R10,
    UPROF_ORC_REG_R13,
    UPROF_ORC_REG_AT_SP,        /* the word at the stack pointer */
    UPROF_ORC_REG_AT_SP_OFFSET, /* nothing: the value is the word at stack pointer + offset */
    UPROF_ORC_REG_AT_BP_OFFSET, /* nothing: the value is the word at frame pointer + offset */
} UprofOrcReg;

/** UprofOrcRule: how to get from a frame to the caller's frame */
typedef struct {
    uint8_t type;      /* UprofOrcType; UNDEFINED and END make the other members meaningless */
    bool is_signal;    /* the caller's program counter is exact, not a return address */
    uint8_t sp_reg;    /* UprofOrcReg that the CFA counts from; neither SAME nor CFA */
    uint8_t bp_reg;    /* UprofOrcReg that the saved frame pointer counts from: SAME, CFA or BP */
    int16_t sp_offset; /* bytes */
    int16_t bp_offset; /* bytes */
} UprofOrcRule;

typedef struct _UprofOrc UprofOrc;

/**
 * uprof_orc_version:
 * @header: %UPROF_ORC_HEADER_BYTES at __start_orc_header, a hash of the format of entries;
 *   empty if the kernel has none (kernels before 6.3.10)
 * @release: as uname -r prints it; used if there is no header
 *
 * Returns: %UPROF_ORC_UNKNOWN if the header is unknown, or the release is malformed or has no
 *   ORC tables
 */
UprofOrcVersion uprof_orc_version(UprofSlice header, const char *release);

/** uprof_orc_version_name: Returns: the first release of @version, like "6.4"; literal */
const char *uprof_orc_version_name(unsigned version);

/**
 * uprof_orc_parse:
 * @ips: addresses of %UPROF_ORC_IP_BYTES each; copied
 * @ips_at: guest-virtual address of @ips
 * @entries: entries of %UPROF_ORC_ENTRY_BYTES each; copied
 * @version: not %UPROF_ORC_UNKNOWN
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if the tables differ in
 *   length, or the addresses are not sorted or too far apart
 */
UprofOrc *uprof_orc_parse(UprofSlice ips, uint64_t ips_at, UprofSlice entries,
                          UprofOrcVersion version, GError **error);
void uprof_orc_free(UprofOrc *orc);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofOrc, uprof_orc_free)

/** uprof_orc_n: Returns: number of entries */
unsigned uprof_orc_n(const UprofOrc *orc);

/**
 * uprof_orc_limit:
 * @start: guest-virtual address of the code that the table describes
 * @len: bytes of this code
 *
 * From now on uprof_orc_find() fails for other code. A module keeps the entries of its init
 * code, which the kernel frees after loading; other code may be there later.
 */
void uprof_orc_limit(UprofOrc *orc, uint64_t start, uint64_t len);

/**
 * uprof_orc_find:
 * @pc: guest-virtual address of an instruction
 * @rule: (out): from the last entry that begins at @pc or before; unchanged on failure
 *
 * Returns: false before the first entry, from the address of the last entry on, outside of the
 *   limits, and for a malformed entry. The last entry only ends the entry before it.
 */
bool uprof_orc_find(const UprofOrc *orc, uint64_t pc, UprofOrcRule *rule);
