/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * pipeline.h - the analysis of a sample: snapshot -> stack -> names -> counts
 *
 * A live guest and a capture use the same pipeline, so that the replay of a capture gives the
 * same profile as the run. One thread at a time uses a pipeline.
 */
#pragma once

#include "uprof/cgroups.h"
#include "uprof/backend.h"
#include "uprof/hot-places.h"
#include "uprof/linux.h"
#include "uprof/profile.h"
#include "uprof/runtimes.h"
#include "uprof/space.h"
#include "uprof/task-list.h"
#include "uprof/unwind.h"
#include "uprof/window-size.h"

/** UprofPipelineLast: the result of the last snapshot of one vCPU */
typedef struct {
    bool is_known; /* there was a snapshot, and later ticks may reuse its stack */
    bool is_idle;
    bool has_leaf;
    uint64_t leaf;     /* if @has_leaf: symbol address of the program counter */
    uint64_t *tally;   /* (nullable): the counter in the run that counted the stack */
    unsigned n_frames; /* in @frames */
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX]; /* root first */
} UprofPipelineLast;

/** UprofPipeline: the worker thread uses it, unless a member says otherwise */
typedef struct {
    UprofRun *run;           /* borrowed; the pipeline counts the quality of the stacks here */
    UprofNames *names;       /* owned */
    UprofSym *sym;           /* owned */
    UprofLinux *kernel;      /* owned; the guest's kernel, if the guest is Linux */
    UprofSpace *space;       /* owned; the processes of that kernel */
    UprofRuntimes *runtimes; /* owned; runtimes of languages in those processes */
    UprofCgroups *cgroups;   /* owned; their services and containers */
    /* owned; until uprof_pipeline_end(), the frames of its stacks are sites (sym.h) */
    UprofProfile *profile;
    UprofProfile *waits;    /* (nullable): owned: microseconds in which tasks waited: see waits.h */
    bool is_coarse;         /* stacks have functions, not sites: see uprof_sym_coarsen() */
    UprofGuest *recorder;   /* (nullable): owned; reads the guest and records these pages */
    UprofTaskList *tasks;   /* (nullable): owned; of a capture: the list that it has */
    UprofMem *mem;          /* owned; reads the guest outside holds */
    UprofWriter *writer;    /* (nullable): borrowed; the capture */
    UprofHotPlaces *places; /* (nullable): borrowed; also counts program counters */
    UprofWindowSize *sizes; /* (nullable): borrowed; by vCPU; the stacks adapt them */
    uint64_t last_hold;     /* the number of the hold counted last, if @any_hold */
    bool any_hold;          /* a hold of this guest was counted */
    bool is_idle;           /* the vCPU of the last snapshot was idle */
    UprofStack *stack;      /* owned; of the last snapshot, leaf first */
    struct _UprofPythonMerge *python;                 /* owned; of the last snapshot */
    UprofUnwindCache *cache;                          /* owned */
    const UprofName *frames[UPROF_PROFILE_DEPTH_MAX]; /* of the last snapshot, root first */
    unsigned n_frames;                                /* in @frames */
    bool has_leaf;                                    /* the last snapshot has a stack */
    uint64_t leaf;                                    /* as in UprofPipelineLast */
    uint64_t ends[UPROF_N_ENDS];                      /* stacks by the reason why they ended */
    GHashTable *lasts;                                /* owned; vCPU number -> UprofPipelineLast */
    /* guards @run and @profile while another thread shows the progress of the run */
    GMutex lock;
} UprofPipeline;

/**
 * uprof_pipeline_new:
 * @guest: borrowed; its memory is read outside holds
 * @run: borrowed; has the facts that are known at the start
 * @writer: (nullable): borrowed; an empty capture. uprof_pipeline_begin() writes the run and the
 *   images to it.
 */
UprofPipeline *uprof_pipeline_new(UprofGuest *guest, UprofRun *run, UprofWriter *writer);
void uprof_pipeline_free(UprofPipeline *pipeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPipeline, uprof_pipeline_free)

/**
 * uprof_pipeline_want_waits: makes the profile of waits, empty; call it before the first snapshot
 */
void uprof_pipeline_want_waits(UprofPipeline *pipeline);

/**
 * uprof_pipeline_move: continues with another access to the same guest
 * @guest: borrowed; replaces the old guest, which the caller may close afterwards
 *
 * Call it while the worker analyzes no snapshot.
 */
void uprof_pipeline_move(UprofPipeline *pipeline, UprofGuest *guest);

/**
 * uprof_pipeline_begin: notes the symbol files in the run and in the capture
 *
 * Call it when all symbol files are added.
 *
 * Returns: false with %UPROF_ERROR_FAILED if the capture cannot be written
 */
bool uprof_pipeline_begin(UprofPipeline *pipeline, GError **error);

/**
 * uprof_pipeline_add_images: the same for symbol files that were added later
 *
 * Returns: false with %UPROF_ERROR_FAILED if the capture cannot be written
 */
bool uprof_pipeline_add_images(UprofPipeline *pipeline, GError **error);

/**
 * uprof_pipeline_keep_rules: begins with what an earlier run of the same guest has found in the
 * code of its files; call it before the first snapshot
 * @list: (transfer full)
 */
void uprof_pipeline_keep_rules(UprofPipeline *pipeline, UprofRuleList *list);

/** uprof_pipeline_pack_rules: Returns: (transfer full) (nullable): the same for a later run */
GByteArray *uprof_pipeline_pack_rules(const UprofPipeline *pipeline);

/**
 * uprof_pipeline_find_unseen: Returns: (nullable) (transfer none): the path of the first symbol
 *   file, if no frame so far was in the code of any of the first @n files
 */
const char *uprof_pipeline_find_unseen(const UprofPipeline *pipeline, unsigned n);

/**
 * uprof_pipeline_find_mismatch: Returns: (nullable) (transfer none): of the first @n symbol files,
 *   the path of the first file that differs from what the guest runs, by what is known now
 */
const char *uprof_pipeline_find_mismatch(const UprofPipeline *pipeline, unsigned n);

/**
 * uprof_pipeline_take: analyzes and counts one snapshot
 *
 * A snapshot with @is_prime is not counted: it only shows the pipeline where
 * the kernel of the guest is.
 *
 * Returns: false with %UPROF_ERROR_FAILED if the capture cannot be written; the
 *   snapshot is counted even so
 */
bool uprof_pipeline_take(UprofPipeline *pipeline, const UprofSnapshot *snapshot, GError **error);

/** UprofTaskLabel: the frames above those of a task; all pointers are borrowed */
typedef struct {
    const char *name;   /* %UPROF_LINUX_NAME_BYTES bytes, printable; "": not known */
    uint32_t process;   /* its number */
    const char *cgroup; /* (nullable): its label, if the run shows cgroups */
} UprofTaskLabel;

/**
 * uprof_pipeline_name_task: names the frames of a task that does not run, as if a vCPU ran it
 * @stack: (nullable) (inout): without a frame: its functions are not known
 * @has_user: @stack has functions of user space
 * @frames: (out) (transfer none): below the domain, the outermost first; until the next call
 *
 * Returns: the number of frames
 */
unsigned
uprof_pipeline_name_task(UprofPipeline *pipeline, const UprofTaskLabel *label, UprofStack *stack,
                         bool has_user, const UprofName *const **frames);

/**
 * uprof_pipeline_take_profile:
 *
 * Any thread may call it. From the first call on, stacks do not show inlined functions.
 *
 * Returns: (transfer full): the samples since the last call; the pipeline owns the names
 */
UprofProfile *uprof_pipeline_take_profile(UprofPipeline *pipeline);

/** uprof_pipeline_note_facts: notes in the run what is known now of the guest and of its symbol
 * files */
void uprof_pipeline_note_facts(UprofPipeline *pipeline);

/**
 * uprof_pipeline_end: completes profile and run
 * @time_ms: time limit for the inlined functions and source lines; those not found in time are left
 *   out
 *
 * Finds inlined functions and source lines for the profile, and notes in the run whether the
 * symbol files matched the guest.
 */
void uprof_pipeline_end(UprofPipeline *pipeline, unsigned time_ms);
