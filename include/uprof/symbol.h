/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbol.h - what the parsers of symbol files give
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_SYMBOLS_MAX = 4 * 1000 * 1000,
    UPROF_SYMBOL_NAME_BYTES_MAX = 4096,
};

/** UprofBinding: the stronger one names an address that has several symbols */
typedef enum {
    UPROF_BINDING_LOCAL,
    UPROF_BINDING_WEAK,
    UPROF_BINDING_GLOBAL,
} UprofBinding;

/**
 * UprofSymbol:
 * @start: link address
 * @size: bytes; 0 if the file does not say
 * @name: borrowed from the file's bytes; not empty; not clean
 * @binding: its strength
 * @code: whether it names code; others only bound what stands before them
 */
typedef struct {
    uint64_t start;
    uint64_t size;
    UprofSlice name;
    UprofBinding binding;
    bool code;
} UprofSymbol;
