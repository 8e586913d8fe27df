/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * load-priv.h - profiles from files: captures, folded stacks, pprof
 *
 * What a file is it says itself, whatever its name. Several become one profile.
 */
#pragma once

#include "naming-priv.h"
#include "options-priv.h"
#include "stored-priv.h"
#include "uprof/profile.h"

/**
 * UprofLoad:
 * @names: borrowed
 * @run: of several files, all together
 * @n_profiles: of the store: slices; a day is as many as it is made of
 * @naming: (nullable): of --symbols, once there is something that it may name
 * @is_partial: something could not be read to its end, and that was said
 * @is_cut: a capture ends early, as that of a run that was killed
 */
typedef struct {
    UprofNames *names;
    UprofProfile *profile;
    UprofRun *run;
    UprofNaming *naming;
    unsigned n_files;
    unsigned n_profiles;
    bool keeps_times;
    bool is_partial;
    bool is_cut;
} UprofLoad;

enum { UPROF_LOAD_FRAMES_MAX = 8 * 1000 * 1000 }; /* of all files together: about 1 GB */

/**
 * uprof_load_new:
 * @names: borrowed, outlives what is returned; loads that are compared share it
 * @keeps_times: for formats that tell them; only a single capture has any
 */
UprofLoad *uprof_load_new(UprofNames *names, bool keeps_times);
void uprof_load_free(UprofLoad *load);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLoad, uprof_load_free)

/**
 * uprof_load_add:
 * @path: of a regular file, or a pipe; "-" is stdin
 *
 * Says what is wrong with it, also if there are more frames than
 * %UPROF_LOAD_FRAMES_MAX.
 *
 * Returns: exit code; also if it is not 0 what could be read counts
 */
int uprof_load_add(UprofLoad *load, const char *path, const UprofOptions *options);

/**
 * uprof_load_add_stored:
 * @stored: of the store
 * @name: the domain's: what its stacks begin with, whatever it was called then
 * @options: (nullable): for their symbols
 *
 * Returns: exit code, as of uprof_load_add()
 */
int uprof_load_add_stored(UprofLoad *load, const UprofStored *stored, const char *name,
                          const UprofOptions *options);

/**
 * uprof_load_may_write: whether what was read may become the file @path: nothing
 *   of a part is written to files, and a capture that was cut off replaces none.
 *   Says why not.
 */
bool uprof_load_may_write(const UprofLoad *load, const char *path);

/**
 * uprof_load_finish: when all files are added
 * @drop_idle: leaves halted vCPUs out
 *
 * Drops what --include and --exclude do not let pass.
 *
 * Returns: exit code: if none of the symbols is of what ran; that was said
 */
int uprof_load_finish(UprofLoad *load, const UprofOptions *options, bool drop_idle);
