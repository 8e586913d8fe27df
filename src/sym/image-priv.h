/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * image-priv.h - one source of names: its files' bytes, its code, its symbols
 */
#pragma once

#include "uprof/elf-image.h"
#include "uprof/sym.h"

#include "table-priv.h"

/**
 * UprofCopy: a file's bytes
 * @path: absolute
 *
 * A mapping of the file itself would fault when somebody truncates it.
 */
typedef struct {
    char *path;
    uint8_t *bytes;
    size_t len;
} UprofCopy;

/**
 * uprof_copy_read:
 * @name: of the file, for messages
 * @opener: (nullable): %NULL: it is opened by its path, as the user may
 *
 * Returns: (transfer full) (nullable): %NULL if it is no regular file, empty,
 *   too large or cannot be read
 */
UprofCopy *
uprof_copy_read(const char *path, const char *name, const UprofSymOpener *opener, GError **error);
void uprof_copy_free(UprofCopy *copy);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCopy, uprof_copy_free)

/** uprof_copy_slice: Returns: its bytes */
UprofSlice uprof_copy_slice(const UprofCopy *copy);

/**
 * UprofImage:
 * @copy: of the file; @debug: (nullable): of its debug file; everything else has parts of them
 * @unpacked: of GByteArray; what was compressed in them
 * @hint: (nullable): why a debug file that was found is not used
 * @first: link address of its first page, of a table that of its first function
 * @bias: what to add to a link address to have the guest's
 * @build_id_at: link address of its bytes; 0: not loaded
 * @ranges: of UprofImageRange, sorted, by link address
 * @targets: (nullable): of uint64_t: where functions begin that have no symbol; found when
 *   it is asked for
 * @has_calls: of a table: its architecture is one whose calls are known
 * @mismatch: (nullable): why it does not match
 * @n_seen, @next_look: samples in it since the guest was reset; when to compare next
 * @n_calls, @n_calls_agreed: calls near them into its code, and to the beginning of a function
 * @is_elsewhere: nothing is there in the guest
 * @cfi: (nullable): unwind tables, if it has any that can be read; owned
 * @lines: the ELF file of the two that says which lines its code is of; no bytes if none does
 * @lines_hint: (nullable): why these could not be read
 * @entry: where it begins to run, 0: not known
 * @is_own: no file: it was found in the guest's memory, and so is what the guest runs
 * @module_base: of a module: the place of its first page; 0: it is none
 */
typedef struct {
    char *label;
    UprofCopy *copy;
    UprofCopy *debug;
    GPtrArray *unpacked;
    char *hint;
    UprofSlice lines;
    char *lines_hint;
    char *build_id;
    char *digest;
    bool is_elf;
    uint16_t machine;
    bool big_endian;
    uint64_t entry;
    uint64_t first;
    uint64_t bias;
    bool is_moved;
    uint64_t build_id_at;
    UprofTable *table;
    GArray *ranges;
    GArray *targets;
    UprofCfi *cfi;
    bool has_calls;
    UprofSymMatch match;
    char *mismatch;
    uint64_t n_seen, next_look;
    uint64_t n_calls, n_calls_agreed;
    bool is_elsewhere;
    bool is_own;
    uint64_t module_base;
} UprofImage;

/**
 * uprof_image_load: reads and sorts a symbol file; see uprof_sym_add_file()
 * @debug_folders: where separate debug files are looked for; ends with %NULL
 * @opener: (nullable): see uprof_sym_add_file_by()
 */
UprofImage *
uprof_image_load(const char *path, const UprofArch *arch, const char *const *debug_folders,
                 const UprofSymOpener *opener, GError **error);

/**
 * uprof_image_make: of what was found in the guest's memory; by the guest's addresses
 * @label: "[kernel]"
 * @symbols: of UprofSymbol; their names lie in @names
 * @names: (transfer full)
 * @ranges: of UprofSymCode, sorted, without overlaps
 * @unsized_max: how far a symbol may reach at most
 */
UprofImage *uprof_image_make(const char *label, const GArray *symbols, GByteArray *names,
                             const GArray *ranges, uint64_t unsized_max);

/** uprof_image_move: says where the guest has it; see uprof_sym_add_file_at() */
bool uprof_image_move(UprofImage *image, uint64_t base, GError **error);

/**
 * uprof_image_follow: a kernel may have been moved when it booted (KASLR): a file that is
 * given without a base goes to where functions of it are by @own, if all that both know were
 * moved alike. Whether it is the same kernel is for uprof_image_compare() to say.
 * @own: (nullable): what was found in the guest's memory; %NULL: back to where it was linked
 */
void uprof_image_follow(UprofImage *image, const UprofImage *own);

void uprof_image_free(UprofImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofImage, uprof_image_free)

/** uprof_image_bytes: Returns: how many it has of files, and of what was unpacked of them */
uint64_t uprof_image_bytes(const UprofImage *image);

/** uprof_image_has_code: Returns: whether @pc, the guest's address, lies in its code */
bool uprof_image_has_code(const UprofImage *image, uint64_t pc);

/** uprof_image_find: Returns: (nullable): the symbol that covers @pc, the guest's address */
const UprofSymbol *uprof_image_find(const UprofImage *image, uint64_t pc);

/**
 * uprof_image_is_entry:
 * @symbol: which covers @pc
 *
 * Returns: whether @pc is in the function where it begins to run; one without a size ends
 *   where another one is called
 */
bool uprof_image_is_entry(UprofImage *image, const UprofSymbol *symbol, uint64_t pc);

/**
 * uprof_image_function: by its symbols; by its calls if it has none, or not their size
 * @start, @len: (out): the function that @pc may be in, by the guest's addresses
 *
 * Returns: false if nobody knows
 */
bool uprof_image_function(UprofImage *image, uint64_t pc, uint64_t *start, uint64_t *len);

/**
 * uprof_image_compare: sets @match by the guest's memory; see uprof_sym_check()
 *
 * Returns: whether it is another than before
 */
bool uprof_image_compare(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                         uint64_t pc);

/** uprof_image_recheck: the guest begins anew: nothing is known of it */
void uprof_image_recheck(UprofImage *image);
