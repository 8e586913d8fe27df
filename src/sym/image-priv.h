/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * image-priv.h - one symbol file: its bytes, its code, its symbols
 */
#pragma once

#include "uprof/elf-image.h"
#include "uprof/sym.h"

/** UprofImageRange: code, by link address */
typedef struct {
    uint64_t start;
    uint64_t end;
    UprofSlice bytes; /* borrowed from the image's file */
} UprofImageRange;

/**
 * UprofImage:
 * @bytes: of the file, a private copy: the file may change while it is used
 * @symbols: of UprofSymbol, sorted by address, one per address, no overlaps
 *   ahead of their ends: size is never 0
 * @ranges: of UprofImageRange, sorted
 * @entry: where it begins to run, 0: not known
 */
typedef struct {
    char *label;
    char *path;
    char *build_id;
    char *digest;
    bool is_elf;
    uint8_t *bytes;
    size_t len;
    uint16_t machine;
    uint64_t entry;
    GArray *symbols;
    GArray *ranges;
    UprofSymMatch match;
} UprofImage;

/** uprof_image_load: reads and sorts a symbol file; see uprof_sym_add_file() */
UprofImage *uprof_image_load(const char *path, const UprofArch *arch, GError **error);
void uprof_image_free(UprofImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofImage, uprof_image_free)

/** uprof_image_has_code: Returns: whether @pc lies in its code */
bool uprof_image_has_code(const UprofImage *image, uint64_t pc);

/** uprof_image_find: Returns: (nullable): the symbol that covers @pc */
const UprofSymbol *uprof_image_find(const UprofImage *image, uint64_t pc);

/** uprof_image_compare: sets @match by the guest's memory; see uprof_sym_check() */
void uprof_image_compare(UprofImage *image, UprofMem *mem, unsigned vcpu, const UprofRegs *regs);

/**
 * uprof_table_symbols:
 * @symbols: of UprofSymbol, as parsed
 *
 * Sorts, keeps the best of several names for an address (global before weak
 * before local, then fewest leading underscores, then shortest, then byte
 * order, so that the order in the file does not matter), and gives sizes to
 * those without: up to the next symbol or the end of their range.
 *
 * Returns: (transfer full): code symbols only
 */
GArray *uprof_table_symbols(const GArray *symbols, const GArray *ranges);
