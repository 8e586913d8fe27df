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
 * not know.
 */
#pragma once

#include "uprof/cfi.h"
#include "uprof/intern.h"
#include "uprof/mem.h"
#include "uprof/orc.h"

enum {
    UPROF_SYM_SOURCES_MAX = 64,
    UPROF_SYM_FILE_BYTES_MAX_MIB = 2048,
    UPROF_SYM_BYTES_MAX_MIB = 8192,
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
 * @place: (nullable): a name for this very address, until uprof_sym_expand() can
 *   say which functions were inlined there; %NULL if no file knows
 * @image: (nullable): label of the image; %NULL outside all
 * @start, @size: of the symbol, in bytes; 0 unless it is named
 * @is_entry: the image begins to run here: nobody called this
 */
typedef struct {
    UprofSymKind kind;
    const UprofName *name;
    const UprofName *place;
    const char *image; /* borrowed */
    uint64_t start;
    uint64_t size;
    bool is_entry;
} UprofSymAnswer;

/** UprofSymMatch: whether the guest runs what the file holds */
typedef enum {
    UPROF_SYM_UNCHECKED, /* nothing to compare was seen (yet) */
    UPROF_SYM_MATCHED,
    UPROF_SYM_MISMATCHED, /* and therefore not asked, unless it matches later */
} UprofSymMatch;

/**
 * UprofSymSource: what a source says of itself
 * @label: "[app]"
 * @path: as given
 * @debug_path: (nullable): of the debug file that was found
 * @has_lines: it, or its debug file, says which functions were inlined and which lines
 *   code is of
 * @lines_hint: (nullable): why inlined functions and lines could not all be found
 * @hint: (nullable): why a debug file that was found is not used
 * @base: guest's address of the first page that is loaded of it, of a table that is
 *   text of its first function; @is_moved: which is another than was linked for
 * @build_id: (nullable): in hex
 * @digest: SHA-256 in hex, of the file and of what its debug file adds
 * @kind: "ELF" or "text"
 * @machine: e_machine, 0 of a text
 * @cfi: (nullable): unwind tables; %NULL if it has none, or none that can be read
 * @mismatch: (nullable): why it does not match
 * @n_seen: samples whose program counter lay in its code
 */
typedef struct {
    const char *label;
    const char *path;
    const char *debug_path;
    const char *hint;
    const char *lines_hint;
    bool has_lines;
    uint64_t base;
    bool is_moved;
    const char *build_id;
    const char *digest;
    const char *kind;
    uint16_t machine;
    size_t n_symbols;
    const UprofCfi *cfi; /* borrowed */
    UprofSymMatch match;
    const char *mismatch; /* borrowed */
    uint64_t n_seen;
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
 * UprofSymConfig: what the user may choose
 * @debug_folders: (nullable): where separate debug files are looked for; ends
 *   with %NULL; without any it is the system's folder
 * @sysroots: (nullable): folders that have the files of a guest where the guest has them;
 *   ends with %NULL. Whoever has filled them may have meant harm: no link in them leads out
 * @raw_names: do not demangle
 * @lines: frames have file and line of the source in their names
 * @bytes_max: of all files together, debug files and what is unpacked of them among them;
 *   0: %UPROF_SYM_BYTES_MAX_MIB
 */
typedef struct {
    const char *const *debug_folders;
    const char *const *sysroots;
    bool raw_names;
    bool lines;
    uint64_t bytes_max;
} UprofSymConfig;

/** uprof_sym_configure: before files are added; without it all is as in a config of zeros */
void uprof_sym_configure(UprofSym *sym, const UprofSymConfig *config);

/**
 * uprof_sym_add_file:
 * @path: an ELF file, or text as nm, System.map or kallsyms write it; told apart by content
 * @required: an ELF file without symbols is refused too
 *
 * What an ELF file lacks is taken from its debug file, if there is one of the
 * same build: FILE.dbg (as Unikraft's build leaves them), what .gnu_debuglink
 * names (beside the file, in .debug there, or under the debug folders), or
 * .build-id/ab/cdef.debug under these. Names are those of .symtab, else of
 * .dynsym and .gnu_debugdata, and those of the debug file; of unwind tables
 * .eh_frame goes before .debug_frame.
 *
 * Returns: false with an error that names the file
 */
bool uprof_sym_add_file(UprofSym *sym, const char *path, bool required, GError **error);

/**
 * uprof_sym_add_file_at: the same for a file whose code is not where it was linked
 * @base: (nullable): where the guest has the first page that is loaded of an ELF
 *   file, or the first function of a table that is text; %NULL: as it was linked
 */
bool uprof_sym_add_file_at(UprofSym *sym, const char *path, const uint64_t *base, bool required,
                           GError **error);

/**
 * UprofSymOpener: how files are opened whose paths somebody else has chosen
 * @open: Returns: a descriptor to read from, the caller's, or -1 with an error that names @path,
 *   which is %UPROF_ERROR_NO_FILE if nothing is there
 * @debug_folder: (nullable): where it opens separate debug files too, behind those of the user
 */
typedef struct {
    int (*open)(const char *path, void *data, GError **error);
    void *data;
    const char *debug_folder;
} UprofSymOpener;

/**
 * uprof_sym_add_file_by: uprof_sym_add_file() of a file that is opened once, by @opener
 * @opener: (nullable): also opens debug files that lie beside it, but not those in the debug
 *   folders, which nobody but the user has chosen
 */
bool uprof_sym_add_file_by(UprofSym *sym, const char *path, const UprofSymOpener *opener,
                           bool required, GError **error);

/** UprofSymCode: a range of code, by the guest's addresses; @end is behind it */
typedef struct {
    uint64_t start;
    uint64_t end;
} UprofSymCode;

/** UprofSymOwn: what is found in the guest's memory, and asked behind all files */
typedef enum {
    UPROF_SYM_KERNEL,
    UPROF_SYM_MODULES,
    UPROF_SYM_N_OWN,
} UprofSymOwn;

/**
 * uprof_sym_set_own:
 * @symbols: (nullable): of UprofSymbol, by the guest's addresses, names in @names;
 *   %NULL: there are none any more
 * @names: (transfer full) (nullable): bytes
 * @ranges: (nullable): of UprofSymCode, sorted, without overlaps
 *
 * In place of those there were, which take their unwind tables with them. Names of its
 * symbols end in "_[k]"; so do those of files, of addresses that no process has. With a kernel's
 * functions known, files of a kernel that was linked elsewhere are taken to be where it is.
 */
void uprof_sym_set_own(UprofSym *sym, UprofSymOwn which, const GArray *symbols, GByteArray *names,
                       const GArray *ranges);

/* Places of modules: addresses that no guest has, each module's in a part of its own. */
#define UPROF_SYM_MODULE_BYTES_MAX (UINT64_C(1) << 40)
enum { UPROF_SYM_MODULES_MAX = 4096 };

/**
 * uprof_sym_add_module: a file that processes of the guest have mapped
 * @name: of the file in the guest, without folders; a label, never opened
 * @path: (nullable): in the guest, "/usr/sbin/nginx"; opened in sysroots alone
 * @build_id: (nullable): in hex; a file of this host that has it gives names and rules
 *
 * Returns: its number, from 1; 0 if there are too many
 */
unsigned
uprof_sym_add_module(UprofSym *sym, const char *name, const char *path, const char *build_id);

/**
 * UprofSymModule:
 * @label: "[libc.so.6]"
 * @build_id: (nullable): in hex
 * @path: (nullable): of the file on this host that gives names
 */
typedef struct {
    const char *label;
    const char *build_id;
    const char *path;
} UprofSymModule;

/** uprof_sym_module: @number: from 1. @module: (out): borrowed. Returns: false behind the last */
bool uprof_sym_module(const UprofSym *sym, unsigned number, UprofSymModule *module);

/**
 * uprof_sym_module_place:
 * @offset: from the module's first page, less than %UPROF_SYM_MODULE_BYTES_MAX
 *
 * Returns: an address to ask for
 */
uint64_t uprof_sym_module_place(unsigned module, uint64_t offset);

/** uprof_sym_hex: Returns: (transfer full): two digits a byte */
char *uprof_sym_hex(UprofSlice bytes);

/** uprof_sym_has_names: Returns: whether there is any source, file or not */
bool uprof_sym_has_names(const UprofSym *sym);

/** uprof_sym_n_sources: Returns: how many files were added */
unsigned uprof_sym_n_sources(const UprofSym *sym);

/** uprof_sym_source: @i: less than that; @source: (out): borrowed strings */
void uprof_sym_source(const UprofSym *sym, unsigned i, UprofSymSource *source);

/**
 * uprof_sym_check:
 * @pc: an address that runs now
 * @reset: how often the guest was reset before
 *
 * To be called for each sample. A source that @pc lies in is compared with the
 * guest: by build-id, if it is loaded; else by 8 pieces of 256 bytes of its code,
 * of which 6 must agree (kernels patch themselves); a table that is text by the
 * calls in the pages from @pc on, of which half must lead to the beginning of a
 * function (x86). A table of a kernel is also seen to be another's if the guest
 * runs kernel code, but has nothing mapped where the table begins.
 *
 * A source that does not agree is not asked any more. It is compared again now
 * and then when @pc lies in it, since what ran was perhaps only the firmware; and
 * so is, more seldom, one that agreed.
 *
 * Returns: whether something was decided by this call
 */
bool uprof_sym_check(UprofSym *sym, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                     uint64_t pc, uint32_t reset);

/** uprof_sym_is_unchecked: Returns: whether a source has not been compared with the guest yet */
bool uprof_sym_is_unchecked(const UprofSym *sym);

/**
 * uprof_sym_find:
 * @pc: an address; of a return address the one before it counts
 * @is_return: whether it is one
 */
UprofSymAnswer uprof_sym_find(UprofSym *sym, uint64_t pc, bool is_return);

/**
 * uprof_sym_code_start: Returns: where the code of source @i begins, from which on the address
 *   in "[image+0x1a2b]" is counted; 0 if it has none
 */
uint64_t uprof_sym_code_start(const UprofSym *sym, unsigned i);

/** uprof_sym_find_in: as uprof_sym_find(), but only source @i is asked, and asked always */
UprofSymAnswer uprof_sym_find_in(UprofSym *sym, unsigned i, uint64_t pc);

/**
 * uprof_sym_function:
 * @pc: address of an instruction
 * @start: (out): of the function that it is in
 * @len: (out): bytes
 * @is_entry: (out): the image begins to run in it
 *
 * Of code without symbols, and of symbols without a size, as far as the image's
 * calls tell.
 *
 * Returns: false if nobody knows
 */
bool uprof_sym_function(UprofSym *sym, uint64_t pc, uint64_t *start, uint64_t *len, bool *is_entry);

/** uprof_sym_epoch: Returns: another number whenever answers may be others than before */
uint32_t uprof_sym_epoch(const UprofSym *sym);

/** uprof_sym_is_code: Returns: whether @pc lies in code of a known image, or of a Linux kernel */
bool uprof_sym_is_code(UprofSym *sym, uint64_t pc);

/**
 * uprof_sym_rule:
 * @pc: address of an instruction, not behind it
 * @cfi: (out): the table that the rule is of, if there is one; borrowed
 *
 * Returns: (nullable): how to unwind there, by the first source that knows
 */
const UprofCfiRule *uprof_sym_rule(UprofSym *sym, uint64_t pc, const UprofCfi **cfi);

/**
 * uprof_sym_add_orc:
 * @orc: (transfer full): of a Linux kernel, or of one of its modules, of which there are
 *   none without the kernel's
 *
 * For the code from its first address to its last, or as far as it is limited; until
 * uprof_sym_set_own() for the same. Of several that know an address the first counts.
 */
void uprof_sym_add_orc(UprofSym *sym, UprofSymOwn which, UprofOrc *orc);

/**
 * uprof_sym_orc:
 * @pc: address of an instruction, not behind it
 * @rule: (out): how to unwind there, by a Linux kernel's own tables
 *
 * Returns: false, @rule untouched, if none does
 */
bool uprof_sym_orc(UprofSym *sym, uint64_t pc, UprofOrcRule *rule);

/**
 * uprof_sym_resolve:
 *
 * Looks up, for all places that were given and once for each, which functions
 * were inlined there and, if the config says so, which lines they are of; of
 * files with DWARF. Takes a child process, and seconds at most for a file.
 */
void uprof_sym_resolve(UprofSym *sym);

/**
 * uprof_sym_expand:
 * @name: any name
 * @frames: (out): outermost first: the function, and what was inlined in it, with
 *   "_[i]" at the end of their names; borrowed
 *
 * Returns: how many; 0 if @name is not the name of a place
 */
unsigned
uprof_sym_expand(const UprofSym *sym, const UprofName *name, const UprofName *const **frames);

/** uprof_sym_coarsen: no more places from now on, and those there are are their functions */
void uprof_sym_coarsen(UprofSym *sym);
