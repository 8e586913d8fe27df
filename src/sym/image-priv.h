/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * image-priv.h - one source of names: its files' bytes, its code, its symbols
 */
#pragma once

#include "file-bytes-priv.h"
#include "symbol-table-priv.h"
#include "uprof/arch.h"
#include "uprof/cfi-table.h"
#include "uprof/intern.h"
#include "uprof/mapped-elf.h"
#include "uprof/sym-types.h"

enum { UPROF_IMAGE_ENTRIES = 3 };

/** UprofImage: all members are owned; "link address": as the file was linked */
typedef struct {
    char *label;            /* "[app]" */
    UprofFileBytes *file;   /* without bytes if the source is not a file */
    UprofFileBytes *debug;  /* (nullable): debug file; other members point into both files */
    GPtrArray *unpacked;    /* of GByteArray: unpacked parts of the files */
    char *hint;             /* (nullable): why a debug file that was found is not used */
    UprofSlice lines;       /* bytes of the ELF file that has DWARF, or no bytes; borrowed */
    char *lines_hint;       /* (nullable): why lines could not be read */
    UprofGoLines *go_lines; /* (nullable): of a Go program; used without @lines */
    char *build_id;         /* (nullable): in hex */
    char *digest;           /* SHA-256 in hex */
    bool is_elf;
    uint16_t machine; /* e_machine; 0 for text */
    bool big_endian;
    /* link addresses where the image begins to run, by the ELF header and by Xen's notes; 0: not
     * known */
    uint64_t entries[UPROF_IMAGE_ENTRIES];
    uint64_t first;       /* link address of the first page; of text, of the first function */
    uint64_t bias;        /* guest-virtual address minus link address */
    bool is_moved;        /* the user gave the base */
    uint64_t build_id_at; /* link address of the build-id's bytes; 0 if they are not loaded */
    UprofSymbolTable *table;
    GArray *ranges;  /* of UprofCodeRange, sorted, by link address */
    GArray *targets; /* (nullable): of uint64_t: targets of direct calls; found when needed */
    UprofCfi *cfi;   /* (nullable): unwind tables */
    bool has_calls;  /* text: calls of this architecture can be read */

    UprofSymMatch match;
    char *mismatch;          /* (nullable): why it does not match */
    uint64_t n_seen;         /* samples in its code since the guest was reset */
    uint64_t next_compare;   /* value of @n_seen at the next comparison */
    uint64_t n_calls;        /* calls into its code that were compared */
    uint64_t n_calls_agreed; /* compared calls that lead to the start of a function */
    bool is_elsewhere;       /* the guest maps nothing where the table begins */

    bool is_own;          /* found in guest memory, not in a file: it always matches */
    bool is_from_memory;  /* a file that was read from guest memory */
    uint64_t module_base; /* symbol address of a module's first page; 0 if it is not a module */
    char *guest_path;     /* (nullable): of a module: its path in the guest; any bytes */
} UprofImage;

/**
 * uprof_image_load: reads and sorts a symbol file; see uprof_sym_add_file()
 * @debug_folders: for separate debug files; ends with %NULL
 * @opener: (nullable): see uprof_sym_add_file_by()
 * @room: bytes of memory that are left for symbols
 */
UprofImage *
uprof_image_load(const char *path, const UprofArch *arch, const char *const *debug_folders,
                 const UprofSymOpener *opener, uint64_t room, GError **error);

/**
 * uprof_image_make: makes an image of code and symbols that were found in guest memory
 * @label: "[kernel]"
 * @symbols: of UprofSymbol, by guest-virtual address; their names lie in @names
 * @names: (transfer full)
 * @ranges: of UprofSymCode, sorted, without overlaps
 * @unsized_max: limit of the length of a symbol without a size, in bytes
 */
UprofImage *uprof_image_make(const char *label, const GArray *symbols, GByteArray *names,
                             const GArray *ranges, uint64_t unsized_max);

/**
 * uprof_image_from_memory: makes an image of a file that was read from guest memory
 * @mapped: (inout): loses its tables
 * @name: of the file, for messages
 * @room: bytes of memory that are left for symbols
 *
 * Returns: (nullable): %NULL if there is no room, or the file has no code
 */
UprofImage *uprof_image_from_memory(UprofMappedElf *mapped, const char *name, uint64_t room);

/**
 * uprof_image_add_rules: adds unwind rules from guest memory to an image that has none
 * @mapped: (inout): the same file; loses its tables
 *
 * Returns: false if there are none
 */
bool uprof_image_add_rules(UprofImage *image, UprofMappedElf *mapped, const char *name);

/**
 * uprof_image_take_rules: moves the unwind rules of another image of the same file into one that
 * has none
 * @from: (inout): loses its rules, and its bytes if the rules are in them
 *
 * Returns: false, with both unchanged, if the images do not fit together, or if rules of @from may
 * be in its debug file
 */
bool uprof_image_take_rules(UprofImage *image, UprofImage *from);

/** uprof_image_move: sets the guest's base of an image; see uprof_sym_add_file_at() */
bool uprof_image_move(UprofImage *image, uint64_t base, GError **error);

/**
 * uprof_image_follow:
 * @own: (nullable): the image that was found in guest memory; %NULL moves the image back to its
 *   link addresses
 *
 * A kernel may be moved when it boots (KASLR). A file without a base from the user is moved by
 * the same distance as @own's functions, if all functions that both know have moved alike.
 * uprof_match_compare() then decides whether it is the same kernel.
 */
void uprof_image_follow(UprofImage *image, const UprofImage *own);

/** uprof_image_forget_match: drops all comparisons, because the guest may run other code now */
void uprof_image_forget_match(UprofImage *image);

void uprof_image_free(UprofImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofImage, uprof_image_free)

/** uprof_image_bytes: Returns: bytes of memory for its files, their unpacked parts, and tables */
uint64_t uprof_image_bytes(const UprofImage *image);

/** uprof_image_has_lines: can inlined functions and lines be looked up? */
bool uprof_image_has_lines(const UprofImage *image);

/** uprof_image_has_code: does the image have code at @pc, a guest-virtual address? */
bool uprof_image_has_code(const UprofImage *image, uint64_t pc);

/** uprof_image_code: Returns: the code from @pc on, as far as a file has it; borrowed */
UprofSlice uprof_image_code(const UprofImage *image, uint64_t pc);

/** uprof_image_word_bytes: Returns: 8 for 64-bit code, 4 for 32-bit code; @arch: of the guest */
unsigned uprof_image_word_bytes(const UprofImage *image, const UprofArch *arch);

/** uprof_image_bare_label: Returns: (transfer full): the label without brackets, such as "app" */
char *uprof_image_bare_label(const UprofImage *image);

/** uprof_image_claim_name: notes that the image has a function @name: see uprof_name_add_module()
 */
void uprof_image_claim_name(const UprofImage *image, UprofNames *names, const UprofName *name);

/** uprof_image_find: Returns: (nullable): the symbol that covers @pc, guest-virtual */
const UprofSymbol *uprof_image_find(const UprofImage *image, uint64_t pc);

/**
 * uprof_image_is_entry: is @pc in the function where the image begins to run?
 * @symbol: covers @pc
 *
 * A function without a size ends at the next call target.
 */
bool uprof_image_is_entry(UprofImage *image, const UprofSymbol *symbol, uint64_t pc);

/**
 * uprof_image_function:
 * @start, @len: (out): guest-virtual range of the function that @pc may be in
 *
 * Uses symbols, or the targets of calls if there are no symbols with a size.
 *
 * Returns: false if the function is not known
 */
bool uprof_image_function(UprofImage *image, uint64_t pc, uint64_t *start, uint64_t *len);
