/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sym.h - names and unwind rules for addresses
 *
 * Names come from an ordered list of sources: ELF files on the host, symbol tables that are text,
 * the symbols of a Linux guest's kernel, and the files that its processes map. A source is sorted
 * when it is added, and searched by bisection. All sources share one cache. This module does not
 * handle stacks.
 */
#pragma once

#include "uprof/cfi-table.h"
#include "uprof/intern.h"
#include "uprof/mapped-elf.h"
#include "uprof/mem.h"
#include "uprof/orc-table.h"
#include "uprof/sym-types.h"

enum {
    UPROF_SYM_SOURCES_MAX = 64,
    UPROF_SYM_RESOLVE_MS = 20 * 1000, /* the usual time for uprof_sym_resolve() */
    UPROF_SYM_BYTES_MAX_MIB = 256,
    UPROF_SYM_LINES_MAX = 50 * 1000,
};

typedef struct _UprofSym UprofSym;

/** UprofSymKind: the result of a search for an address */
typedef enum {
    UPROF_SYM_OUTSIDE,  /* it is in no known image */
    UPROF_SYM_IN_IMAGE, /* it is in an image, but no symbol covers it */
    UPROF_SYM_NAMED,
} UprofSymKind;

/** UprofSymAnswer: the answer of uprof_sym_find() for an address */
typedef struct {
    UprofSymKind kind;
    /* the symbol, "[image+0x1a2b]" or "[unknown]"; the address in hex if there is no source */
    const UprofName *name;
    /*
     * (nullable): a name for this address alone, for uprof_sym_expand() after
     * uprof_sym_resolve(); %NULL if no file knows inlined functions or lines
     */
    const UprofName *site;
    const char *image; /* (nullable): label of the image; borrowed */
    uint64_t start;    /* of the symbol; 0 unless it is named */
    uint64_t size;     /* of the symbol, in bytes; 0 unless it is named */
    bool is_entry;     /* the image begins to run in this function: it has no caller */
} UprofSymAnswer;

/** UprofSymSource: facts about a source; all strings are borrowed */
typedef struct {
    const char *label;      /* "[app]" */
    const char *path;       /* as given */
    const char *debug_path; /* (nullable): of the debug file that was found */
    const char *hint;       /* (nullable): why a debug file that was found is not used */
    const char *lines_hint; /* (nullable): why inlined functions and lines are incomplete */
    bool has_lines;         /* a file knows inlined functions and source lines */
    /* guest-virtual address of the first loaded page; of text, of the first function */
    uint64_t base;
    bool is_moved;        /* @base is not the address that the file was linked for */
    const char *build_id; /* (nullable): in hex */
    const char *digest;   /* SHA-256 in hex, of the file and of what its debug file adds */
    const char *kind;     /* "ELF" or "text" */
    uint16_t machine;     /* e_machine; 0 for text */
    size_t n_symbols;
    const UprofCfi *cfi; /* (nullable): unwind tables; borrowed */
    UprofSymMatch match;
    const char *mismatch; /* (nullable): why it does not match */
    uint64_t n_seen;      /* samples whose program counter lay in its code */
} UprofSymSource;

/**
 * uprof_sym_new:
 * @arch: of the guest
 * @names: borrowed; must outlive the result
 */
UprofSym *uprof_sym_new(const UprofArch *arch, UprofNames *names);
void uprof_sym_free(UprofSym *sym);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSym, uprof_sym_free)

/** uprof_sym_arch: Returns: the architecture of the guest */
const UprofArch *uprof_sym_arch(const UprofSym *sym);

/** UprofSymConfig: settings of the user; zeros are the defaults */
typedef struct {
    /* (nullable): folders for separate debug files, ends with %NULL; else the system's folder */
    const char *const *debug_folders;
    /*
     * (nullable): folders that hold a guest's files under the guest's paths, ends with %NULL.
     * They are not trusted: no link in them leads out of the folder.
     */
    const char *const *sysroots;
    const char *cache_folder; /* (nullable): see symbol-cache.h; the last place of all */
    bool raw_names;           /* do not demangle */
    bool lines;               /* names of frames include file and line of the source */
    /* memory for all files, their unpacked parts and tables; 0: %UPROF_SYM_BYTES_MAX_MIB */
    uint64_t bytes_max;
} UprofSymConfig;

/** uprof_sym_configure: call it before files are added */
void uprof_sym_configure(UprofSym *sym, const UprofSymConfig *config);

/**
 * uprof_sym_set_domain: uses files that were copied out of the disks of this domain, too
 * @uuid: (nullable): of the domain
 *
 * Call it after uprof_sym_configure(). Does nothing without a cache.
 */
void uprof_sym_set_domain(UprofSym *sym, const char *uuid);

/** uprof_sym_has_line_names: do names of frames include file and line? */
bool uprof_sym_has_line_names(const UprofSym *sym);

/**
 * uprof_sym_add_file:
 * @path: an ELF file, or text as nm, System.map or kallsyms write it; the content decides
 * @required: refuse an ELF file without symbols, too
 *
 * If the ELF file has a debug file of the same build, the debug file supplies what the ELF file
 * lacks. The debug file is FILE.dbg (as Unikraft's build leaves it), or the file that
 * .gnu_debuglink names (beside the file, in .debug there, or under the debug folders), or
 * .build-id/ab/cdef.debug under the debug folders and then in the symbol cache. Names come from
 * .symtab, else from .dynsym and .gnu_debugdata, and from the debug file. Unwind tables come from
 * .eh_frame first, then from .debug_frame.
 *
 * Returns: false with an error that names the file
 */
bool uprof_sym_add_file(UprofSym *sym, const char *path, bool required, GError **error);

/**
 * uprof_sym_add_file_at: uprof_sym_add_file() for a file at another address than it was linked for
 * @base: (nullable): guest-virtual address of the ELF file's first loaded page, or of the first
 *   function of a table that is text; %NULL: as it was linked
 */
bool uprof_sym_add_file_at(UprofSym *sym, const char *path, const uint64_t *base, bool required,
                           GError **error);

/**
 * uprof_sym_add_file_by: uprof_sym_add_file() for a path that @opener opens
 * @opener: (nullable): also opens debug files that lie beside the file. The user's debug
 *   folders are trusted and opened without it.
 */
bool uprof_sym_add_file_by(UprofSym *sym, const char *path, const UprofSymOpener *opener,
                           bool required, GError **error);

/** UprofSymOwn: sources in the guest's own memory; searched after all files */
typedef enum {
    UPROF_SYM_KERNEL,
    UPROF_SYM_MODULES,
    UPROF_SYM_N_OWN,
} UprofSymOwn;

/**
 * uprof_sym_set_own:
 * @symbols: (nullable): of UprofSymbol, by guest-virtual address, with their names in @names;
 *   %NULL removes the source
 * @names: (transfer full) (nullable): any bytes
 * @ranges: (nullable): of UprofSymCode, sorted, without overlaps
 *
 * Replaces the source and removes its unwind tables. Names of its symbols end in "_[k]", and so do
 * names from files for addresses that no process can have. If the kernel was linked for another
 * address, its files are moved to the address of the guest's kernel once its functions are known.
 */
void uprof_sym_set_own(UprofSym *sym, UprofSymOwn which, const GArray *symbols, GByteArray *names,
                       const GArray *ranges);

enum { UPROF_SYM_MODULES_MAX = 4096 };

/**
 * uprof_sym_add_module:
 * @name: of the file in the guest, without folders; a label, never opened
 * @path: (nullable): in the guest, "/usr/sbin/nginx"; opened in sysroots only
 * @build_id: (nullable): in hex; a file of this host with this build-id gives names and rules
 *
 * Returns: the module's number, from 1; 0 if there are too many
 */
unsigned
uprof_sym_add_module(UprofSym *sym, const char *name, const char *path, const char *build_id);

/**
 * uprof_sym_fill_module:
 * @number: of a module
 * @mapped: (inout): the module's file, as far as guest memory has it; loses its tables
 *
 * Gives names and unwind rules to a module without a file on this host. A later call replaces them.
 * A module with a file that has no unwind tables, such as a debug file, gets rules only, once.
 *
 * Returns: false if nothing was added
 */
bool uprof_sym_fill_module(UprofSym *sym, unsigned number, UprofMappedElf *mapped);

/**
 * uprof_sym_reload_modules: searches the files of modules again, because one has arrived
 * @build_id: in hex: of these modules
 */
void uprof_sym_reload_modules(UprofSym *sym, const char *build_id);

/** UprofSymModule: facts about a module; all strings are borrowed */
typedef struct {
    const char *label;    /* "[libc.so.6]" */
    const char *build_id; /* (nullable): in hex */
    const char *path;     /* (nullable): of the file on this host that gives names */
    /* (nullable): of the file in the guest; any bytes */
    const char *guest_path;
    bool is_from_memory; /* the guest's memory gives names */
    size_t n_symbols;
    const UprofCfi *cfi; /* (nullable): unwind tables; borrowed */
} UprofSymModule;

/** uprof_sym_module: @number: from 1. @module: (out). Returns: false behind the last one */
bool uprof_sym_module(const UprofSym *sym, unsigned number, UprofSymModule *module);

/**
 * uprof_sym_module_address:
 * @offset: bytes from the module's first page, less than %UPROF_SYM_MODULE_BYTES_MAX
 *
 * Returns: the symbol address, for uprof_sym_find() and the like
 */
uint64_t uprof_sym_module_address(unsigned module, uint64_t offset);

/** uprof_sym_module_of: Returns: number of the module that @symbol_address is in; 0 if it is in
 * none */
unsigned uprof_sym_module_of(uint64_t symbol_address);

enum { UPROF_SYM_PROCESSES = 1 << 14 }; /* whose code in no file is distinguished */

/**
 * uprof_sym_process_address:
 * @process: number of the process; modulo %UPROF_SYM_PROCESSES
 * @pc: address of code that is in no file, such as that of a JIT compiler
 *
 * Returns: the symbol address, for uprof_sym_find() and the like
 */
uint64_t uprof_sym_process_address(unsigned process, uint64_t pc);

/** uprof_sym_is_process_address: is @pc a result of uprof_sym_process_address()? */
bool uprof_sym_is_process_address(uint64_t pc);

/**
 * uprof_sym_add_generated:
 * @process: as above
 * @is_jitdump: @bytes are of a jitdump (jitdump.h); else of a perf map (perf-map.h)
 * @bytes: a part of the process's file
 * @n_missing: how many bytes between the last part and this one are missing
 *
 * Gives names to code that is in no file. Names of several processes together take a bounded
 * memory.
 *
 * Returns: false if there is no room left, so that nothing was added
 */
bool uprof_sym_add_generated(UprofSym *sym, unsigned process, bool is_jitdump, UprofSlice bytes,
                             uint64_t n_missing);

/** uprof_sym_forget_process: removes the names of a process that has ended */
void uprof_sym_forget_process(UprofSym *sym, unsigned process);

/** uprof_sym_count_generated: @n_processes: (out): that have names. Returns: how many names */
size_t uprof_sym_count_generated(const UprofSym *sym, unsigned *n_processes);

/** uprof_sym_has_names: is there a file, or a kernel's own symbols? */
bool uprof_sym_has_names(const UprofSym *sym);

/** uprof_sym_n_sources: Returns: how many files were added */
unsigned uprof_sym_n_sources(const UprofSym *sym);

/** uprof_sym_source: @i: less than uprof_sym_n_sources(). @source: (out) */
void uprof_sym_source(const UprofSym *sym, unsigned i, UprofSymSource *source);

/**
 * uprof_sym_check:
 * @pc: an address that runs now
 * @reset: how often the guest was reset before
 *
 * Call it for each sample. A source that has code at @pc is compared with the guest: by
 * build-id, if the guest has loaded it; else by 8 pieces of 256 bytes of its code, of which 6
 * must be equal (kernels patch themselves). A table that is text is compared by the calls in
 * the pages from @pc on: half of them must lead to the start of a function (x86). A table of a
 * kernel mismatches, too, if the guest runs kernel code but maps nothing where the table begins.
 *
 * A source that mismatches gives no names. While @pc lies in the source, the source is compared
 * again now and then, because the code that ran may have been firmware. A source that matched is
 * compared again more rarely.
 *
 * Returns: true if this call changed whether a source matches
 */
bool uprof_sym_check(UprofSym *sym, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                     uint64_t pc, uint32_t reset);

/** uprof_sym_is_unchecked: is there a source that was not compared with the guest yet? */
bool uprof_sym_is_unchecked(const UprofSym *sym);

/**
 * uprof_sym_find:
 * @pc: a symbol address
 * @is_return: @pc is a return address: the byte before it is looked up
 */
UprofSymAnswer uprof_sym_find(UprofSym *sym, uint64_t pc, bool is_return);

/**
 * uprof_sym_code_start:
 *
 * Returns: start of the code of source @i, from which "[image+0x1a2b]" counts; 0 if the source has
 *   no code
 */
uint64_t uprof_sym_code_start(const UprofSym *sym, unsigned i);

/** uprof_sym_find_in: as uprof_sym_find(), but in source @i only, even if it mismatches */
UprofSymAnswer uprof_sym_find_in(UprofSym *sym, unsigned i, uint64_t pc);

/**
 * uprof_sym_function:
 * @pc: symbol address of an instruction
 * @start: (out): of its function
 * @len: (out): bytes
 * @is_entry: (out): the image begins to run in the function
 *
 * If symbols or their sizes are missing, functions begin at the targets of the calls in the image.
 *
 * Returns: false if the function is not known
 */
bool uprof_sym_function(UprofSym *sym, uint64_t pc, uint64_t *start, uint64_t *len, bool *is_entry);

/** UprofSymPlace: the code at a symbol address */
typedef struct {
    const char *image;     /* (nullable): label of its image; borrowed */
    uint64_t link_address; /* as its file was linked; the guest's if there is no image */
    UprofSlice code;       /* from there on, as far as a file has it, perhaps nothing; borrowed */
    unsigned word_bytes;   /* 8 for 64-bit code, 4 for 32-bit code */
} UprofSymPlace;

/** uprof_sym_place: @pc: a symbol address. @place: (out) */
void uprof_sym_place(const UprofSym *sym, uint64_t pc, UprofSymPlace *place);

/**
 * uprof_sym_lines: looks up source lines
 * @addresses: symbol addresses of one function, in rising order; those behind the first
 *   %UPROF_SYM_LINES_MAX have no lines
 * @n: how many
 * @time_ms: limit of processor time
 * @lines: (out): by address: (nullable): such as "file.c:12", of the innermost inlined function
 */
void uprof_sym_lines(UprofSym *sym, const uint64_t *addresses, unsigned n, unsigned time_ms,
                     const UprofName **lines);

/** uprof_sym_epoch: Returns: a number that changes whenever answers may change */
uint32_t uprof_sym_epoch(const UprofSym *sym);

/** uprof_sym_is_code: does @pc lie in code of a known image, or of a Linux kernel? */
bool uprof_sym_is_code(UprofSym *sym, uint64_t pc);

/**
 * uprof_sym_rule:
 * @pc: symbol address of an instruction, not a return address behind it
 * @cfi: (out): the table that holds the rule; borrowed; untouched without a rule
 *
 * Returns: (nullable): the unwind rule of the first source that has one
 */
const UprofCfiRule *uprof_sym_rule(UprofSym *sym, uint64_t pc, const UprofCfi **cfi);

/**
 * uprof_sym_add_orc:
 * @orc: (transfer full): of a Linux kernel, or of one of its modules
 *
 * The table covers the code from its first address to its last, or to its limit. It stays
 * until uprof_sym_set_own() replaces the source @which. If several tables cover an address, the
 * first one counts. Tables of modules are used only while the kernel has a table.
 */
void uprof_sym_add_orc(UprofSym *sym, UprofSymOwn which, UprofOrc *orc);

/**
 * uprof_sym_orc:
 * @pc: address of an instruction, not a return address behind it
 * @rule: (out): how a Linux kernel's own tables unwind there
 *
 * Returns: false, with @rule untouched, if no table covers @pc
 */
bool uprof_sym_orc(UprofSym *sym, uint64_t pc, UprofOrcRule *rule);

/**
 * uprof_sym_resolve:
 * @time_ms: time limit for all files together; a file that is not finished in time gets a hint in
 *   UprofSymSource
 *
 * Finds the inlined functions of all sites so far, and their lines if the config asks for
 * lines, once for each site.
 */
void uprof_sym_resolve(UprofSym *sym, unsigned time_ms);

/**
 * uprof_sym_expand:
 * @name: any name
 * @frames: (out): outermost first: the function, and the functions inlined in it, whose names
 *   end in "_[i]"; borrowed
 *
 * Returns: how many frames; 0 if @name is not the name of a site
 */
unsigned
uprof_sym_expand(const UprofSym *sym, const UprofName *name, const UprofName *const **frames);

/** uprof_sym_coarsen: makes no more sites; existing ones expand to their functions */
void uprof_sym_coarsen(UprofSym *sym);
