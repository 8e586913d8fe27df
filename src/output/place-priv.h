/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * place-priv.h - where a frame's code is, as far as its name says it
 *
 * Formats that know modules and addresses want them; a profile has names.
 */
#pragma once

#include "uprof/kind.h"

/**
 * UprofPlace:
 * @module: a literal such as "[app]" or "[guest.kernel.kallsyms]"; of our
 *   markers, the marker
 * @address: of names that are addresses; else 0
 * @is_code: it is in an image
 */
typedef struct {
    const char *module;
    uint64_t address;
    bool is_code;
} UprofPlace;

#define UPROF_PLACE_APP "[app]"
#define UPROF_PLACE_KERNEL "[guest.kernel.kallsyms]"

/** uprof_place_of: Returns: of a frame that is not the root */
UprofPlace uprof_place_of(const UprofName *name);
