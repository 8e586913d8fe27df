/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi.h - the unwind tables of an image, compiled once into sorted rows
 *
 * .eh_frame and .debug_frame say for each instruction where its frame's caller
 * kept what: as small programs, one for each function, whose result at an
 * address can only be had by running them up to there. Here all of them are run
 * once. What is left is a list of addresses, each with the number of a rule
 * that holds from there to the next one; rules are few, since functions begin
 * and end alike, and are kept once each.
 *
 * Formats: DWARF 5, section 6.4 (.debug_frame, versions 1, 3 and 4, in 32 and
 * 64 bits); Linux Standard Base Core 5.0, sections 10.5 and 10.6 (.eh_frame,
 * versions 1 and 3); System V psABI supplements for the numbers of registers,
 * which become ours here (arch.h). .eh_frame_hdr is not looked at.
 *
 * Where both sections describe an address, .eh_frame counts. Where two entries
 * of one section do, the one that begins first counts, or stands first. What
 * lies between functions has no rule. Dropped, and counted, are entries outside
 * the image's code (linkers leave those of functions that they left out), and
 * those that cannot be understood, or whose program is no proper one.
 *
 * Does not know what runs, nor stacks; unwind/cfi.c applies the rules.
 */
#pragma once

#include "uprof/arch.h"
#include "uprof/elf-image.h"

/*
 * Limits. An image beyond those of sections, entries and pages is refused; what
 * is beyond the others has no rule.
 */
enum {
    UPROF_CFI_SECTION_BYTES_MAX = 256 * 1024 * 1024,
    UPROF_CFI_CIES_MAX = 256 * 1024, /* in one section */
    UPROF_CFI_FDES_MAX = 4 * 1000 * 1000,
    UPROF_CFI_ROWS_MAX = 16 * 1000 * 1000,
    UPROF_CFI_REGIONS_MAX = 64,    /* far apart from each other */
    UPROF_CFI_PAGES_MAX = 1 << 20, /* of 4 KiB, of all regions: 4 GiB of code */
    UPROF_CFI_PROGRAM_BYTES_MAX = 64 * 1024,
    UPROF_CFI_STATES_MAX = 16, /* remembered in a program */
    UPROF_CFI_RULES_MAX = 65535,
    UPROF_CFI_EXPRESSIONS_MAX = 4096, /* different ones */
    UPROF_CFI_REACH_BYTES_MAX = 1024 * 1024,
};

/**
 * UprofCfiHow: how a value is found
 * @UPROF_CFI_SAME: it was not touched; such registers are not listed
 * @UPROF_CFI_UNDEFINED: it is lost
 * @UPROF_CFI_AT_OFFSET: in memory, at CFA + value
 * @UPROF_CFI_OFFSET: it is CFA + value; of the CFA itself, register + value
 * @UPROF_CFI_REGISTER: in the register of number value
 * @UPROF_CFI_AT_EXPRESSION: in memory, where an expression says
 * @UPROF_CFI_EXPRESSION: it is the result of an expression
 *
 * Expressions begin with the CFA on their stack, that of the CFA itself with
 * nothing.
 */
typedef enum {
    UPROF_CFI_SAME,
    UPROF_CFI_UNDEFINED,
    UPROF_CFI_AT_OFFSET,
    UPROF_CFI_OFFSET,
    UPROF_CFI_REGISTER,
    UPROF_CFI_AT_EXPRESSION,
    UPROF_CFI_EXPRESSION,
} UprofCfiHow;

enum {
    UPROF_CFI_SIGNAL = 1, /* frame of a trap or a signal: its caller's pc is exact */
    UPROF_CFI_END = 2,    /* nobody called this */
};

/**
 * UprofCfiSaved: where the caller's value of one register is
 * @reg: our number; the program counter's is the return address
 * @how: of #UprofCfiHow
 * @value: bytes, a register, or an expression, by @how
 */
typedef struct {
    uint8_t reg;
    uint8_t how;
    int32_t value;
} UprofCfiSaved;

/**
 * UprofCfiRule: how to get from a frame to its caller's
 * @cfa_how: %UPROF_CFI_OFFSET or %UPROF_CFI_EXPRESSION
 * @cfa_reg: our number
 * @cfa_value: bytes, or an expression
 * @flags: %UPROF_CFI_SIGNAL, %UPROF_CFI_END; with the latter nothing else matters
 * @n_saved: of uprof_cfi_saved(), among them always the program counter
 * @reach: bytes, if the rule is as most are: without flags, with a CFA that counts from
 *   the stack or the frame pointer, and all that is listed in whole words of memory
 *   from that many below the CFA up to the CFA, the stack pointer not among it; else 0
 *
 * The canonical frame address (CFA) is what the stack pointer was before the
 * call, and is again in the caller's frame unless the stack pointer is listed.
 */
typedef struct {
    uint8_t cfa_how;
    uint8_t cfa_reg;
    uint8_t flags;
    uint8_t n_saved;
    int32_t cfa_value;
    uint32_t first_saved;
    uint32_t reach;
} UprofCfiRule;

/**
 * UprofCfiSummary:
 * @n_fdes: entries that were taken
 * @n_dead: entries outside the image's code
 * @n_dropped: entries that could not be understood, or were beyond a limit
 * @n_rows, @n_rules, @n_expressions: of the table
 * @n_bytes: of memory that the table takes
 */
typedef struct {
    size_t n_fdes, n_dead, n_dropped;
    size_t n_rows, n_rules, n_expressions;
    size_t n_bytes;
} UprofCfiSummary;

typedef struct _UprofCfi UprofCfi;

/**
 * uprof_cfi_compile:
 * @image: of which machine, byte order, code and the two sections are used; the
 *   file's bytes must outlive what is returned, which has expressions in them
 * @name: of the file, for messages
 *
 * An image without unwind tables gets one without rows. Takes time and memory
 * linear in the sections' bytes, whatever they contain.
 *
 * Returns: (transfer full): the table; %NULL with %UPROF_ERROR_BAD_DATA if a
 *   section is no list of entries or beyond a limit, with
 *   %UPROF_ERROR_UNSUPPORTED if the machine is not known
 */
UprofCfi *uprof_cfi_compile(const UprofElfImage *image, const char *name, GError **error);
void uprof_cfi_free(UprofCfi *cfi);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCfi, uprof_cfi_free)

/** uprof_cfi_arch: Returns: the architecture of the image, not of what runs it */
const UprofArch *uprof_cfi_arch(const UprofCfi *cfi);

/** uprof_cfi_summary: Returns: what was found and what it takes */
UprofCfiSummary uprof_cfi_summary(const UprofCfi *cfi);

/**
 * uprof_cfi_find:
 * @pc: link address of an instruction
 *
 * Returns: (nullable): its rule; %NULL if there is none
 */
const UprofCfiRule *uprof_cfi_find(const UprofCfi *cfi, uint64_t pc);

/** uprof_cfi_saved: Returns: (nullable): the registers of a rule of this table, by number */
const UprofCfiSaved *uprof_cfi_saved(const UprofCfi *cfi, const UprofCfiRule *rule);

/** uprof_cfi_expression: @value: of a rule that has one. Returns: DWARF operations, borrowed */
UprofSlice uprof_cfi_expression(const UprofCfi *cfi, int32_t value);

/**
 * uprof_cfi_row:
 * @i: from 0
 * @pc: (out): where the row begins
 * @rule: (out) (nullable): its rule
 *
 * For those who want to see all of it: the rows, by address.
 *
 * Returns: false behind the last row
 */
bool uprof_cfi_row(const UprofCfi *cfi, size_t i, uint64_t *pc, const UprofCfiRule **rule);
