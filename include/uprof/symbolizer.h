/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * symbolizer.h - names for the addresses in a profile that was written without names
 *
 * Finds the functions of frames such as "[app+0x1a2b]" and "0x1a2b" in symbol files. Build-ids
 * decide which file belongs to a frame: the profile's sidecar has the build-ids of the files that
 * ran, and a file with another build-id is refused. If one of the two build-ids is unknown, the
 * frame gets a name, and a warning says that the build-ids were not compared.
 */
#pragma once

#include "uprof/hot-places.h"
#include "uprof/notice.h"
#include "uprof/profile.h"
#include "uprof/run-facts.h"
#include "uprof/symbol-settings.h"

typedef struct _UprofSymbolizer UprofSymbolizer;

/**
 * uprof_symbolizer_new:
 * @settings: borrowed during the call
 * @names: borrowed; outlives the symbolizer
 * @arch: (nullable): of the guest
 *
 * Returns: (transfer full) (nullable): %NULL with an error that names the file
 */
UprofSymbolizer *uprof_symbolizer_new(const UprofSymbolSettings *settings, UprofNames *names,
                                      const char *arch, GError **error);
void uprof_symbolizer_free(UprofSymbolizer *symbolizer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSymbolizer, uprof_symbolizer_free)

/**
 * uprof_symbolizer_begin_profile: the frames from now on belong to the next profile
 * @facts: (nullable): of the profile's sidecar; borrowed until the next call
 */
void uprof_symbolizer_begin_profile(UprofSymbolizer *symbolizer, const UprofRun *facts);

/** uprof_symbolizer_name_frame: Returns: the name of an address, or @frame if there is none */
const UprofName *uprof_symbolizer_name_frame(UprofSymbolizer *symbolizer, const UprofName *frame);

/**
 * uprof_symbolizer_annotate: counts samples at the address of a frame that
 * uprof_symbolizer_name_frame() has named; nothing is counted at other frames
 * @places: borrowed during the call
 */
void uprof_symbolizer_annotate(UprofSymbolizer *symbolizer, const UprofName *frame,
                               UprofHotPlaces *places, uint64_t weight);

/** uprof_symbolizer_sym: Returns: (transfer none): the symbols, for uprof_hot_places_annotate() */
UprofSym *uprof_symbolizer_sym(UprofSymbolizer *symbolizer);

/**
 * uprof_symbolizer_end: adds frames for inlined functions; call it after all profiles are read
 * @profile: (transfer full)
 * @notices: (nullable): gets a warning if files were refused or could not be compared
 *
 * Returns: (transfer full): the profile
 */
UprofProfile *uprof_symbolizer_end(UprofSymbolizer *symbolizer, UprofProfile *profile,
                                   const UprofNotices *notices);

/** uprof_symbolizer_is_refused: files were refused, and no frame got a name */
bool uprof_symbolizer_is_refused(const UprofSymbolizer *symbolizer);
