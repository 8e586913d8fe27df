/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * load.h - reads profiles from files: captures, folded stacks and pprof
 *
 * The content of a file, not its name, decides its format. Several files become one profile.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/capture-replay.h"
#include "uprof/profile.h"
#include "uprof/symbolizer.h"

/** UprofLoadSettings: how to read profiles; all pointers are borrowed */
typedef struct {
    UprofReplaySettings replay;  /* for captures; @symbols also name addresses in other files */
    bool has_modules;            /* names of functions in text have their modules already */
    const GRegex *include;       /* (nullable): see UprofFilter */
    const GRegex *exclude;       /* (nullable) */
    bool drop_idle;              /* drops the stacks of halted vCPUs */
    const UprofNotices *notices; /* (nullable) */
} UprofLoadSettings;

/** UprofLoad: all files together */
typedef struct {
    const UprofLoadSettings *settings; /* borrowed */
    UprofNames *names;                 /* borrowed */
    UprofProfile *profile;             /* owned */
    UprofRun *run;                     /* owned; facts that all files agree on, and sums */
    UprofSymbolizer *symbolizer;       /* (nullable): owned; made when the first file needs it */
    UprofHotPlaces *places;            /* (nullable): owned; addresses in files without memory */
    UprofAnnotation *annotation;       /* (nullable): owned; %NULL: nothing had addresses */
    unsigned n_files;                  /* files that were read, at least in part */
    bool is_partial;                   /* a file could not be read to its end */
    bool is_cut;                       /* a capture ends early: its recording was killed */
} UprofLoad;

enum { UPROF_LOAD_FRAMES_MAX = 8 * 1000 * 1000 }; /* of all files together: about 1 GB */

/** UprofLoadMerge: adds the facts in @other to @run, as uprof_run_merge() does */
typedef void (*UprofLoadMerge)(UprofRun *run, const UprofRun *other, bool is_first);

/**
 * uprof_load_new:
 * @names: borrowed; outlives the load. Loads that are compared share them.
 * @settings: borrowed; outlives the load
 */
UprofLoad *uprof_load_new(UprofNames *names, const UprofLoadSettings *settings);
void uprof_load_free(UprofLoad *load);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLoad, uprof_load_free)

/**
 * uprof_load_add_file:
 * @path: of a regular file or a pipe; "-" is stdin. If the settings ask for an annotation, it is
 * that of the last capture.
 *
 * Sends a warning if the file cannot be read to its end, or if all files together have more
 * frames than %UPROF_LOAD_FRAMES_MAX. The stacks that were read before count.
 */
UprofErrorCode uprof_load_add_file(UprofLoad *load, const char *path);

/**
 * uprof_load_add_text:
 * @text: folded stacks that uprof_folded_parse() accepts
 * @root: replaces the first frame of each stack
 * @facts: the facts of these stacks, with their sample counts
 * @merge: adds @facts to the facts of the load
 *
 * Sends a warning, as uprof_load_add_file() does.
 */
UprofErrorCode uprof_load_add_text(UprofLoad *load, UprofSlice text, const char *root,
                                   const UprofRun *facts, UprofLoadMerge merge);

/**
 * uprof_load_sidecar_path:
 *
 * Returns: (transfer full) (nullable): NAME.meta.json for NAME.folded and NAME.folded.gz; %NULL for
 *   other files, which have no sidecar
 */
char *uprof_load_sidecar_path(const char *path);

/** UprofLoadTarget: a file to write; uprof_load_target_init() fills it */
typedef struct {
    const char *path; /* borrowed; "-" is stdout */
    bool is_stream;   /* stdout, a pipe or a device */
    bool exists;
} UprofLoadTarget;

/** uprof_load_target_init: looks at the file; a process without rights cannot do that later */
void uprof_load_target_init(UprofLoadTarget *target, const char *path);

/**
 * uprof_load_check_output: checks that the profile may be written to the file
 *
 * If the input could not be read to its end, no file may be written. If a capture ends early, no
 * existing file may be replaced.
 *
 * Returns: false with %UPROF_ERROR_FAILED
 */
bool uprof_load_check_output(const UprofLoad *load, const UprofLoadTarget *target, GError **error);

/**
 * uprof_load_finish: names addresses, finds the root and filters; call it after all files are added
 *
 * Returns: false if no symbol file belongs to the profiles; a warning was sent
 */
bool uprof_load_finish(UprofLoad *load);
