/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol.h - one symbol of a symbol file, in any format
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_SYMBOLS_MAX = 4 * 1000 * 1000,
};

/** UprofBinding: if an address has several symbols, the one with the strongest binding names it */
typedef enum {
    UPROF_BINDING_LOCAL,
    UPROF_BINDING_WEAK,
    UPROF_BINDING_GLOBAL,
} UprofBinding;

/** uprof_elf_binding: Returns: the binding that st_info of an ELF symbol says */
UprofBinding uprof_elf_binding(unsigned char st_info);

typedef struct {
    uint64_t start;  /* link address */
    uint64_t size;   /* bytes; 0 if the file does not say */
    UprofSlice name; /* borrowed from the file; not empty; may have control characters */
    UprofBinding binding;
    bool code;     /* names code; other symbols only bound the symbol before them */
    bool is_label; /* of an ELF file: local, without type and size, as assemblers make it */
} UprofSymbol;
