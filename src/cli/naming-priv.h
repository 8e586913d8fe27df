/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * naming-priv.h - names for addresses in profiles that were written without
 *
 * "[app+0x1a2b]" and "0x1a2b" in folded stacks, by the files of --symbols. Build-ids
 * decide: the profile's sidecar says what ran, a file of another build is refused,
 * and where one of the two is not known names are given, with a warning.
 */
#pragma once

#include "options-priv.h"
#include "uprof/profile.h"
#include "uprof/run.h"

typedef struct _UprofNaming UprofNaming;

/**
 * uprof_naming_new: with the files of --symbols
 * @names: borrowed, outlives what is returned
 * @arch: (nullable): of the guest
 *
 * Returns: (transfer full) (nullable): %NULL with an error that names the file
 */
UprofNaming *
uprof_naming_new(const UprofOptions *options, UprofNames *names, const char *arch, GError **error);
void uprof_naming_free(UprofNaming *naming);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofNaming, uprof_naming_free)

/**
 * uprof_naming_begin: what comes next is of one profile
 * @facts: (nullable): of its sidecar
 */
void uprof_naming_begin(UprofNaming *naming, const UprofRun *facts);

/** uprof_naming_frame: Returns: @frame, or its name if it is an address and there is one */
const UprofName *uprof_naming_frame(UprofNaming *naming, const UprofName *frame);

/**
 * uprof_naming_end: when all is read: inlined functions get frames of their own
 * @profile: (transfer full)
 *
 * Says which files were refused, or could not be compared.
 *
 * Returns: (transfer full): the profile
 */
UprofProfile *uprof_naming_end(UprofNaming *naming, UprofProfile *profile);

/** uprof_naming_is_refused: Returns: whether files did not match, and gave no name at all */
bool uprof_naming_is_refused(const UprofNaming *naming);
