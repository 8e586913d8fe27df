/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sym.h - names for addresses
 *
 * An ordered list of sources (ELF files on the host, symbol tables that are
 * text), sorted when they are added, searched by halving, with one cache in
 * front. Knows addresses as the guest's code was linked; has never heard of
 * stacks.
 *
 * A symbol source: `prepare` once, slow, may fail; `find` often, fast, may only
 * not know. Separate debug files, unwind tables, demangling and line numbers
 * join here: see uprof_sym_add_file() for the place of the first two, and
 * demangle.c and lines.c (at output time only) for the others.
 */
#pragma once

#include "uprof/intern.h"
#include "uprof/mem.h"

enum {
    UPROF_SYM_SOURCES_MAX = 64,
    UPROF_SYM_FILE_BYTES_MAX_MIB = 2048,
};

typedef struct _UprofSym UprofSym;

/** UprofSymKind: what is known of an address */
typedef enum {
    UPROF_SYM_OUTSIDE,  /* in no known image */
    UPROF_SYM_IN_IMAGE, /* in one, but no symbol covers it */
    UPROF_SYM_NAMED,
} UprofSymKind;

/**
 * UprofSymAnswer:
 * @name: the symbol, or "[image+0x1a2b]", or "[unknown]", or, when there is no
 *   source at all, the address in hexadecimal
 * @image: (nullable): label of the image; %NULL outside all
 * @start: of the symbol; 0 unless it is named
 * @is_entry: the image begins to run here: nobody called this
 */
typedef struct {
    UprofSymKind kind;
    const UprofName *name;
    const char *image; /* borrowed */
    uint64_t start;
    bool is_entry;
} UprofSymAnswer;

/** UprofSymMatch: whether the guest runs what the file holds */
typedef enum {
    UPROF_SYM_UNCHECKED, /* a table that is text, or its code could not be read (yet) */
    UPROF_SYM_MATCHED,
    UPROF_SYM_MISMATCHED, /* and therefore not asked any more */
} UprofSymMatch;

/**
 * UprofSymSource: what a source says of itself
 * @label: "[app]"
 * @path: as given
 * @build_id: (nullable): in hex
 * @digest: SHA-256 of the file, in hex
 * @kind: "ELF" or "text"
 * @machine: e_machine, 0 of a text
 */
typedef struct {
    const char *label;
    const char *path;
    const char *build_id;
    const char *digest;
    const char *kind;
    uint16_t machine;
    size_t n_symbols;
    UprofSymMatch match;
} UprofSymSource;

/**
 * uprof_sym_new:
 * @arch: of the guest
 * @names: borrowed, outlives what is returned
 */
UprofSym *uprof_sym_new(const UprofArch *arch, UprofNames *names);
void uprof_sym_free(UprofSym *sym);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSym, uprof_sym_free)

/**
 * uprof_sym_add_file:
 * @path: an ELF file, or text as nm, System.map or kallsyms write it; told apart by content
 * @required: an ELF file without symbols is refused too
 *
 * Of an ELF file without symbols FILE.dbg beside it is taken (as Unikraft's
 * build leaves them), if there is one.
 *
 * Returns: false with an error that names the file
 */
bool uprof_sym_add_file(UprofSym *sym, const char *path, bool required, GError **error);

/** uprof_sym_n_sources: Returns: how many were added */
unsigned uprof_sym_n_sources(const UprofSym *sym);

/** uprof_sym_source: @i: less than that; @source: (out): borrowed strings */
void uprof_sym_source(const UprofSym *sym, unsigned i, UprofSymSource *source);

/**
 * uprof_sym_check:
 * @pc: an address that runs now
 *
 * When @pc is the first seen in an ELF source, compares bytes of its code with
 * the guest's: 8 pieces of 256 bytes, 6 must agree (kernels patch themselves).
 * A source that does not agree is not asked any more.
 *
 * Returns: whether something was decided by this call
 */
bool
uprof_sym_check(UprofSym *sym, UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t pc);

/**
 * uprof_sym_find:
 * @pc: an address; of a return address the one before it counts
 * @is_return: whether it is one
 */
UprofSymAnswer uprof_sym_find(UprofSym *sym, uint64_t pc, bool is_return);

/** uprof_sym_is_code: Returns: whether @pc lies in code of a known image */
bool uprof_sym_is_code(const UprofSym *sym, uint64_t pc);
