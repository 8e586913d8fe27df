/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * hot-places.h - samples by the address that the program counter had, for one function
 *
 * Functions are known for certain at the end only, so that all addresses are counted. The code of
 * the function is read from guest memory if no file has it, while samples of the function come.
 */
#pragma once

#include "uprof/annotation.h"
#include "uprof/guest.h"
#include "uprof/sym.h"

enum {
    UPROF_ANNOTATE_INSNS_MAX = 200 * 1000, /* of all functions of the name */
};

typedef struct _UprofHotPlaces UprofHotPlaces;

/**
 * uprof_hot_places_new:
 * @function: name of the function, as profiles show it, or without the "_[k]" of a kernel's
 * function
 * @guest: (nullable): borrowed; its memory has code that no file has
 */
UprofHotPlaces *uprof_hot_places_new(const char *function, UprofGuest *guest);
void uprof_hot_places_free(UprofHotPlaces *places);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofHotPlaces, uprof_hot_places_free)

/**
 * uprof_hot_places_annotate: decodes the code of the function; call it after the last sample
 *
 * Decodes each function from its start, up to its first MiB and to %UPROF_ANNOTATE_INSNS_MAX
 * instructions of all functions. Behind these limits, decodes only instructions with samples.
 *
 * Returns: (transfer full): without functions if there is no sample in the function itself
 */
UprofAnnotation *uprof_hot_places_annotate(const UprofHotPlaces *places, UprofSym *sym);
