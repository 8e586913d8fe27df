/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi-table.h - compiles the unwind tables of an image into sorted rows
 *
 * .eh_frame and .debug_frame tell for each instruction where the frame keeps the caller's
 * registers. Each function has a small program; the answer for an address is the state of the
 * program at that address. The compiler runs every program once and stores a sorted list of
 * addresses. Each address has the number of the rule that holds up to the next address. Rules
 * are few, because functions begin and end alike, and equal rules are stored once.
 *
 * Formats: DWARF 5, section 6.4 (.debug_frame, versions 1, 3 and 4, with 32 and 64 bits);
 * Linux Standard Base Core 5.0, sections 10.5 and 10.6 (.eh_frame, versions 1 and 3); System V
 * psABI supplements for register numbers, which the compiler translates to the numbers of arch.h.
 * .eh_frame_hdr is not read; mapped-elf.h reads it where parts of .eh_frame are missing.
 *
 * A Go program has the sizes of its frames in a table of its own (UprofElfImage.frames). If several
 * sources describe an address, .eh_frame counts, then Go's table, then .debug_frame. If two entries
 * of one section describe an address, the entry whose code begins first counts. If their code
 * begins at the same address, the first entry of the section counts. Addresses between functions
 * have no rule. The compiler drops and counts entries that are malformed or have unknown features,
 * and entries outside the code of the image. Linkers leave such entries behind for functions that
 * they removed.
 *
 * This module knows nothing of stacks. src/unwind applies the rules.
 */
#pragma once

#include "uprof/arch.h"
#include "uprof/elf-image.h"

/**
 * UprofCfiHow: how to find a value
 *
 * An expression starts with the CFA on its stack; the expression of the CFA itself starts with
 * an empty stack.
 */
typedef enum {
    UPROF_CFI_SAME,          /* unchanged; such registers are not listed */
    UPROF_CFI_UNDEFINED,     /* lost */
    UPROF_CFI_AT_OFFSET,     /* in memory at CFA + value */
    UPROF_CFI_OFFSET,        /* CFA + value; for the CFA itself: register + value */
    UPROF_CFI_REGISTER,      /* in the register that value numbers */
    UPROF_CFI_AT_EXPRESSION, /* in memory at the result of an expression */
    UPROF_CFI_EXPRESSION,    /* the result of an expression */
} UprofCfiHow;

enum {
    UPROF_CFI_SIGNAL = 1, /* frame of a trap or a signal: the caller's pc is exact */
    UPROF_CFI_END = 2,    /* root frame: there is no caller */
    /* the caller is on another stack, and the table does not tell where */
    UPROF_CFI_SWITCHED = 4,
    UPROF_CFI_GO = 8, /* with SIGNAL: the function is of Go's runtime */
};

/** UprofCfiSaved: where to find the caller's value of one register */
typedef struct {
    uint8_t reg;   /* number of arch.h; the program counter's value is the return address */
    uint8_t how;   /* UprofCfiHow */
    int32_t value; /* bytes, a register number or the number of an expression; see @how */
} UprofCfiSaved;

/**
 * UprofCfiRule: how to get from a frame to the caller's frame
 *
 * The canonical frame address (CFA) is the value of the stack pointer before the call. The
 * caller's stack pointer is the CFA, unless the rule lists the stack pointer.
 */
typedef struct {
    uint8_t cfa_how;   /* UPROF_CFI_OFFSET or UPROF_CFI_EXPRESSION */
    uint8_t cfa_reg;   /* number of arch.h */
    uint8_t flags;     /* UPROF_CFI_SIGNAL and so on; with END or SWITCHED no other member counts */
    uint8_t n_saved;   /* registers of uprof_cfi_saved(), which include the program counter */
    int32_t cfa_value; /* bytes, or the number of an expression */
    uint32_t first_saved; /* private to the table */
    /*
     * Bytes below the CFA that contain all saved registers, if the rule is simple; else 0. A
     * simple rule has no flags, a CFA that counts from the stack or frame pointer, and registers
     * in words of memory below the CFA, without the stack pointer.
     */
    uint32_t reach;
} UprofCfiRule;

typedef struct {
    size_t n_fdes;    /* entries in the table */
    size_t n_dead;    /* entries outside the image's code */
    size_t n_dropped; /* entries that are malformed, unknown or beyond a limit */
    size_t n_rows;
    size_t n_rules;
    size_t n_expressions;
    size_t n_bytes; /* memory of the table */
} UprofCfiSummary;

typedef struct _UprofCfi UprofCfi;

/**
 * uprof_cfi_compile:
 * @image: borrowed; its bytes must outlive the table, which borrows the expressions
 * @name: of the file, for messages
 *
 * An image without unwind tables gives a table without rows. Time and memory are linear in the
 * bytes of the sections, even if these are hostile.
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if a section is not a
 *   list of entries or is beyond a limit, with %UPROF_ERROR_UNSUPPORTED if the machine is unknown
 */
UprofCfi *uprof_cfi_compile(const UprofElfImage *image, const char *name, GError **error);

/**
 * uprof_cfi_compile_listed: as uprof_cfi_compile(), but only of some entries of .eh_frame
 * @listed: (nullable): of uint64_t: offsets of the entries; %NULL: all
 *
 * For a section of which parts are missing. An offset without an entry is ignored.
 */
UprofCfi *uprof_cfi_compile_listed(const UprofElfImage *image, const GArray *listed,
                                   const char *name, GError **error);
void uprof_cfi_free(UprofCfi *cfi);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCfi, uprof_cfi_free)

/** uprof_cfi_arch: Returns: the architecture of the image; the guest's can be another one */
const UprofArch *uprof_cfi_arch(const UprofCfi *cfi);

UprofCfiSummary uprof_cfi_summary(const UprofCfi *cfi);

/**
 * uprof_cfi_find:
 * @pc: link address of an instruction
 *
 * Returns: (nullable): the rule at @pc, borrowed; %NULL if there is none
 */
const UprofCfiRule *uprof_cfi_find(const UprofCfi *cfi, uint64_t pc);

/** uprof_cfi_saved: Returns: (nullable): @n_saved registers of @rule, sorted, borrowed */
const UprofCfiSaved *uprof_cfi_saved(const UprofCfi *cfi, const UprofCfiRule *rule);

/**
 * uprof_cfi_expression:
 * @value: number of an expression, from a rule
 *
 * Returns: DWARF operations, borrowed
 */
UprofSlice uprof_cfi_expression(const UprofCfi *cfi, int32_t value);
