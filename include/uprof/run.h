/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run.h - the facts of one run over one domain
 *
 * What was asked, what was done, and how good it was. Filled while sampling or
 * replaying; written into captures (what a replay cannot work out again) and
 * into the sidecar. The table says which members a capture carries.
 */
#pragma once

#include "uprof/histogram.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

enum { UPROF_RUN_MODULES_MAX = 512 }; /* to so many images no more modules are added */

/**
 * UprofRunImage:
 * @label: "[app]" as in stacks
 * @path: (nullable): the symbol file, as it was opened
 * @build_id: (nullable): in hex, of that file
 * @digest: (nullable): SHA-256 of that file in hex
 * @base: (nullable): in hex, where the guest has its first page; %NULL: as linked
 * @checked: whether the running guest could be compared with it
 * @matched: and agreed
 * @mismatch: (nullable): why it did not agree
 * @n_seen: samples in its code
 * @lines_hint: (nullable): why inlined functions and lines could not all be found
 * @is_module: no file that was given: what processes of the guest have mapped; addresses in it
 *   count from its first page
 */
typedef struct {
    char *label;
    char *path;
    char *build_id;
    char *digest;
    char *base;
    bool checked;
    bool matched;
    char *mismatch;
    uint64_t n_seen;
    char *lines_hint;
    bool is_module;
} UprofRunImage;

/**
 * UprofRunLinux: what was found of a guest that runs Linux
 * @release: (nullable): as `uname -r` says it; %NULL: it runs none, or several do not agree
 * @symbols, @modules: of its kernel; how many
 * @rules, @rules_version: of the kernel's unwind tables; 0: none
 * @has_types, @has_tasks: whether the kernel's types are known, and which process runs
 * @kernel_stacks: that have a part in the kernel; @kernel_complete: all of it
 * @user_stacks: that have a part in user mode, or would; @user_complete: all of it
 */
typedef struct {
    char *release;
    uint64_t symbols, modules;
    uint64_t rules, rules_version;
    bool has_types, has_tasks;
    uint64_t kernel_stacks, kernel_complete;
    uint64_t user_stacks, user_complete;
} UprofRunLinux;

typedef struct {
    /* who */
    char *program; /* "virt-uprof VERSION", which recorded it */
    char *domain;  /* true name, any bytes but newline */
    char *uuid;
    char *driver; /* "QEMU", "Xen" */
    char *type;   /* "kvm", "qemu", "xen" */
    char *arch;
    char *access; /* "monitor", "direct", "xen", "replay" */
    char *why;    /* (nullable) why not a better access */
    char *unwind; /* "auto", "cfi", "fp" */
    uint64_t vcpus;

    /* what was asked */
    uint64_t started_utc_ns;
    uint64_t rate_mhz; /* millihertz */
    uint64_t asked_ns; /* duration; 0: until stopped */
    uint64_t max_depth;
    bool per_vcpu;
    bool pids;        /* processes are shown with their numbers */
    bool idle;        /* halted vCPUs are shown ... */
    bool idle_stacks; /* ... by their last stack */
    bool no_pause;

    /* what happened */
    char *ended_by; /* "duration", "signal", "gone", "limit", "error" */
    uint64_t duration_ns;
    uint64_t divisor; /* the asked rate was divided by this to fit the budget; 1: not */
    uint64_t late, busy, skipped, stuck;
    uint64_t held_ns; /* of the vCPU that was held longest, in all */
    uint64_t cpu_ns;  /* of the profiler */

    /* how good it was; worked out again by a replay */
    uint64_t samples, running, idles, torn;
    uint64_t unfiltered; /* what a filter has found as samples; 0: there was none */
    uint64_t complete, truncated, unknown;
    uint64_t frames, named, by_orc, by_cfi, by_leaf, by_fp;
    uint64_t calls_checked, calls_agreed;
    uint64_t one_frame; /* stacks of a single frame */
    UprofHistogram hold, stopped;
    UprofRunLinux kernel;

    GPtrArray *images; /* of UprofRunImage, owned */
    GPtrArray *files;  /* of char, owned: what was written */

    /* of a closed day alone */
    GArray *slices;       /* of uint32_t: seconds of the day in which its runs began */
    char *profile_sha256; /* of the file with its stacks */
} UprofRun;

/** UprofRunKind: type of a member: char *, uint64_t or bool */
typedef enum { UPROF_RUN_TEXT, UPROF_RUN_UINT, UPROF_RUN_BOOL } UprofRunKind;

/**
 * UprofRunWhen: what is known at the start, only when the run is over, or at the start but may be
 * different in the end: a capture begins before the first sample, and the way into the guest
 * is chosen anew where one fails
 */
typedef enum {
    UPROF_RUN_AT_START = 1,
    UPROF_RUN_AT_END = 2,
    UPROF_RUN_AT_BOTH = UPROF_RUN_AT_START | UPROF_RUN_AT_END,
} UprofRunWhen;

/**
 * UprofRunField:
 * @key: in a capture
 * @kind, @offset: of the member
 * @when: it is known
 */
typedef struct {
    const char *key;
    UprofRunKind kind;
    size_t offset;
    UprofRunWhen when;
} UprofRunField;

extern const UprofRunField uprof_run_fields[];
extern const size_t uprof_run_n_fields;

UprofRun *uprof_run_new(void);
void uprof_run_free(UprofRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRun, uprof_run_free)

/**
 * uprof_run_add_image:
 * @label, @path, @build_id, @digest: copied; all but @label may be %NULL
 *
 * Returns: (transfer none): the new image
 */
UprofRunImage *uprof_run_add_image(UprofRun *run, const char *label, const char *path,
                                   const char *build_id, const char *digest);

/**
 * uprof_run_leave_module_out: there are more than %UPROF_RUN_MODULES_MAX: of those that are
 * called @label it is not known any more which is meant
 */
void uprof_run_leave_module_out(UprofRun *run, const char *label);

/**
 * uprof_run_merge: adds the facts of one more run
 * @is_first: @run is new and knows nothing yet
 *
 * What the two do not agree upon is not known of both. An image that both have
 * is there once. Slices are not added.
 */
void uprof_run_merge(UprofRun *run, const UprofRun *other, bool is_first);

/** uprof_run_got_mhz: Returns: samples per second of one vCPU, in millihertz */
uint64_t uprof_run_got_mhz(const UprofRun *run);

/**
 * uprof_run_held_ns: Returns: how long the vCPU that was held longest was held in
 *   all; of a run that was killed, which could not say it, all holds together
 */
uint64_t uprof_run_held_ns(const UprofRun *run);

/** uprof_permille: Returns: @part of @whole in tenths of a percent, rounded; 0 if @whole is */
uint64_t uprof_permille(uint64_t part, uint64_t whole);
