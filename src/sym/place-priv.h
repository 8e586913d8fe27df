/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * place-priv.h - addresses that stand in stacks until their lines are looked up
 *
 * What was inlined at an address, and its line, take too long to find while a
 * guest is sampled. So a stack has a name for the very address meanwhile, a place,
 * and each distinct one is looked up once, at the end.
 */
#pragma once

#include "image-priv.h"

typedef struct _UprofPlaces UprofPlaces;

/** uprof_places_new: @names: borrowed */
UprofPlaces *uprof_places_new(UprofNames *names);
void uprof_places_free(UprofPlaces *places);

/** uprof_places_configure: @with_lines: frames say their line; @raw_names: do not demangle */
void uprof_places_configure(UprofPlaces *places, bool with_lines, bool raw_names);

/**
 * uprof_places_mark:
 * @image: borrowed, outlives @places; has lines
 * @address: link address in it
 * @function: what covers it, or what stands for it
 *
 * Returns: (nullable): the place's name; %NULL if there are too many already
 */
const UprofName *uprof_places_mark(UprofPlaces *places, UprofImage *image, uint64_t address,
                                   const UprofName *function);

/** uprof_places_resolve: looks up those of @image that were not yet; sets its @lines_hint */
void uprof_places_resolve(UprofPlaces *places, UprofImage *image);

/**
 * uprof_places_expand:
 * @name: any
 * @frames: (out): outermost first; borrowed
 *
 * Returns: how many frames stand at that place; 0 if @name is no place
 */
unsigned uprof_places_expand(const UprofPlaces *places, const UprofName *name,
                             const UprofName *const **frames);
