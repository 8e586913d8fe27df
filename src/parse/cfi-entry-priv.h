/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi-entry-priv.h - reads the entries of a section of unwind tables, one after another
 *
 * A common information entry (CIE) has the values that several frame description entries (FDE)
 * share. Each FDE describes one piece of code. The programs of the entries are not run here.
 */
#pragma once

#include "uprof/arch.h"
#include "uprof/bytes.h"

typedef struct {
    const UprofArch *arch;
    const char *name; /* of the file, for messages; borrowed */
    uint64_t start;   /* link address of @bytes */
    UprofSlice bytes; /* borrowed */
    bool is_eh;       /* .eh_frame; else .debug_frame */
} UprofCfiSection;

typedef struct {
    uint64_t at; /* offset of the entry in the section */
    bool is_end; /* an empty entry, which ends the table of one of the linked object files */
    bool is_cie;
    uint64_t cie_at; /* for an FDE: offset of its CIE; may lie outside the section */
    UprofBytes rest; /* a cursor behind the id, in the section up to the end of the entry */
} UprofCfiEntry;

typedef struct {
    size_t at;        /* offset in the section */
    uint8_t encoding; /* of addresses in the FDEs; uprof_cfi_entry_address() can read them */
    bool has_augmentation;
    bool is_signal;
    uint8_t return_reg;  /* register number of @arch that has the return address */
    uint64_t code_align; /* bytes */
    int64_t data_align;  /* bytes */
    UprofBytes program;  /* computes the initial state of the FDEs */
} UprofCfiCie;

typedef struct {
    uint64_t start; /* link address of the code */
    uint64_t len;   /* bytes of code; unchecked */
    UprofBytes program;
} UprofCfiFde;

/** uprof_cfi_entry_first: Returns: a cursor at the first entry, for uprof_cfi_entry_next() */
UprofBytes uprof_cfi_entry_first(const UprofCfiSection *section);

/**
 * uprof_cfi_entry_next:
 * @bytes: (inout): a cursor at an entry; moves to the next entry
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA if the bytes cannot be an entry
 */
bool uprof_cfi_entry_next(const UprofCfiSection *section, UprofBytes *bytes, UprofCfiEntry *entry,
                          GError **error);

/** uprof_cfi_entry_cie: Returns: false if @entry is not a CIE, or has unknown features */
bool
uprof_cfi_entry_cie(const UprofCfiSection *section, const UprofCfiEntry *entry, UprofCfiCie *cie);

/**
 * uprof_cfi_entry_fde:
 * @cie: the CIE of @entry
 *
 * Returns: false if @entry is not an FDE, or is malformed
 */
bool uprof_cfi_entry_fde(const UprofCfiSection *section, const UprofCfiEntry *entry,
                         const UprofCfiCie *cie, UprofCfiFde *fde);

/**
 * uprof_cfi_entry_address: Reads an address in @encoding. Returns: false if @bytes are too short
 */
bool uprof_cfi_entry_address(const UprofCfiSection *section, UprofBytes *bytes, uint8_t encoding,
                             uint64_t *address);

/**
 * uprof_cfi_entry_unsigned:
 * @width: 1, 2, 4 or 8 bytes
 *
 * Returns: false if @bytes are too short
 */
bool uprof_cfi_entry_unsigned(UprofBytes *bytes, unsigned width, uint64_t *value);
