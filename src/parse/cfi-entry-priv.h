/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cfi-entry-priv.h - the entries of a section of unwind tables, one after another
 *
 * Common entries (CIE) say what the others (FDE), one for each piece of code, have
 * in common. Their programs are not looked at here.
 */
#pragma once

#include "uprof/arch.h"
#include "uprof/bytes.h"

/** UprofCfiSection: @start: link address of @bytes; @is_eh: .eh_frame, else .debug_frame */
typedef struct {
    const UprofArch *arch;
    const char *name; /* of the file, for messages */
    uint64_t start;
    UprofSlice bytes;
    bool is_eh;
} UprofCfiSection;

/**
 * UprofCfiEntry:
 * @at: of its length in the section
 * @is_end: an end mark of one of the files that were linked: there is nothing in it
 * @cie_at: of an FDE: where its CIE is, if it is anywhere; may be beyond the section
 * @rest: the section up to the entry's end, behind the id
 */
typedef struct {
    size_t at;
    bool is_end, is_cie;
    uint64_t cie_at;
    UprofBytes rest;
} UprofCfiEntry;

/**
 * UprofCfiCie:
 * @encoding: of addresses in its FDEs; one that uprof_cfi_entry_address() can read
 * @return_reg: register of @arch that has the return address
 * @program: of its FDEs' first state
 */
typedef struct {
    size_t at;
    uint8_t encoding;
    bool has_augmentation, is_signal;
    uint8_t return_reg;
    uint64_t code_align;
    int64_t data_align;
    UprofBytes program;
} UprofCfiCie;

/** UprofCfiFde: code from @start on, link address; @len may be anything */
typedef struct {
    uint64_t start, len;
    UprofBytes program;
} UprofCfiFde;

/** uprof_cfi_entry_first: Returns: where a section begins, for uprof_cfi_entry_next() */
UprofBytes uprof_cfi_entry_first(const UprofCfiSection *section);

/**
 * uprof_cfi_entry_next:
 * @bytes: (inout): where an entry begins; behind it afterwards
 *
 * Returns: false, with the error set, if no entry can be there
 */
bool uprof_cfi_entry_next(const UprofCfiSection *section, UprofBytes *bytes, UprofCfiEntry *entry,
                          GError **error);

/** uprof_cfi_entry_cie: Returns: whether @entry is a CIE that can be understood */
bool
uprof_cfi_entry_cie(const UprofCfiSection *section, const UprofCfiEntry *entry, UprofCfiCie *cie);

/** uprof_cfi_entry_fde: @cie: of @entry. Returns: whether it is an FDE that can be understood */
bool uprof_cfi_entry_fde(const UprofCfiSection *section, const UprofCfiEntry *entry,
                         const UprofCfiCie *cie, UprofCfiFde *fde);

/** uprof_cfi_entry_address: an address as @encoding says. Returns: false if it is not there */
bool uprof_cfi_entry_address(const UprofCfiSection *section, UprofBytes *bytes, uint8_t encoding,
                             uint64_t *address);

/** uprof_cfi_entry_unsigned: @width: 1, 2, 4 or 8 bytes. Returns: false if they are not there */
bool uprof_cfi_entry_unsigned(UprofBytes *bytes, unsigned width, uint64_t *value);
