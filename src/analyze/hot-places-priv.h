/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hot-places-priv.h - what the counts of addresses know, for their annotation
 */
#pragma once

#include "uprof/hot-places.h"
#include "uprof/stack.h"

enum {
    UPROF_HOT_PLACES_MAX = 256 * 1024, /* different addresses */
};

/**
 * uprof_hot_places_see: reads code of the function if it runs in a snapshot and no file has its
 * code
 * @frame: of @snapshot: the innermost one
 *
 * Reads a bounded number of pages, and changes nothing that the analysis of the snapshot uses.
 */
void uprof_hot_places_see(UprofHotPlaces *places, UprofSym *sym, const UprofSnapshot *snapshot,
                          const UprofFrame *frame);

/** uprof_hot_places_add: counts samples; @address: symbol address of the program counter */
void uprof_hot_places_add(UprofHotPlaces *places, UprofSym *sym, uint64_t address, uint64_t weight);

/** UprofHotPlace: an address in the function */
typedef struct {
    uint64_t address; /* symbol address */
    uint64_t samples;
    uint64_t start, size; /* of the function, in symbol addresses and bytes */
} UprofHotPlace;

/**
 * uprof_hot_places_list: Returns: (transfer full): of UprofHotPlace: those in functions of the
 * name, by function and address
 */
GArray *uprof_hot_places_list(const UprofHotPlaces *places, UprofSym *sym);

/** UprofHotCode: bytes of code */
typedef struct {
    uint8_t bytes[32];
    size_t len;          /* of @bytes; 0: unknown */
    unsigned word_bytes; /* of the code's mode */
} UprofHotCode;

/** uprof_hot_places_code: @address: symbol address. @code: (out): what files or guest memory have
 * there */
void uprof_hot_places_code(const UprofHotPlaces *places, const UprofSym *sym, uint64_t address,
                           UprofHotCode *code);

/** uprof_hot_places_left_out: Returns: samples that were not counted, because there were too many
 * addresses */
uint64_t uprof_hot_places_left_out(const UprofHotPlaces *places);
