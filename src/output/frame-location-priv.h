/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * frame-location-priv.h - the module and address of a frame, as far as its name shows them
 *
 * Some formats need modules and addresses, but a profile has only names.
 */
#pragma once

#include "uprof/kind.h"

/** UprofLocation: of a frame */
typedef struct {
    /* The module, if it is known; or else a literal: "[app]" or "[guest.kernel.kallsyms]", or the
     * marker if the frame is one */
    const char *module;
    uint64_t address; /* 0 unless the name is an address */
    bool is_code;     /* the frame is in an image */
} UprofLocation;

#define UPROF_LOCATION_APP "[app]"
#define UPROF_LOCATION_KERNEL "[guest.kernel.kallsyms]"

/** uprof_location_of: @name: of a frame that is not the root */
UprofLocation uprof_location_of(const UprofName *name);
