/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run-facts.h - the facts of one run over one domain
 *
 * UprofRun has the user's settings, the course of the run, and the quality of the result. A run or
 * a replay fills it, and the sidecar has a copy. A capture has only the members that a replay
 * cannot compute again; uprof_run_fields lists them.
 */
#pragma once

#include "uprof/bytes.h"
#include "uprof/histogram.h"

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

enum { UPROF_RUN_MODULES_MAX = 512 }; /* a run with this many images adds no modules */

/** UprofRunImage: an image with symbols. Strings are owned. */
typedef struct {
    char *label;         /* "[app]", as in stacks */
    char *path;          /* (nullable): the symbol file, as it was opened */
    char *guest_path;    /* (nullable): of a module: its file in the guest */
    char *build_id;      /* (nullable): of that file, in hex */
    char *digest;        /* (nullable): SHA-256 of that file, in hex */
    char *base;          /* (nullable): guest address of its first page, in hex; %NULL: as linked */
    bool checked;        /* the file could be compared with the running guest */
    bool matched;        /* the comparison succeeded */
    char *mismatch;      /* (nullable): the difference */
    uint64_t n_seen;     /* samples in its code */
    char *lines_hint;    /* (nullable): why some inlined functions and lines are missing */
    bool is_module;      /* not given by the user, but mapped by processes of the guest; addresses
                          * count from its first page */
    bool is_from_memory; /* a module whose names came from the guest's memory */
} UprofRunImage;

/** UprofRunLinux: facts of a guest that runs Linux */
typedef struct {
    /* (nullable): owned; as `uname -r` prints it; %NULL if the guest does not run Linux, or if
     * merged runs differ */
    char *release;
    /* (nullable): literal: why no kernel was found at the addresses of Linux; not kept in files */
    const char *why;
    uint64_t symbols;         /* of its kernel */
    uint64_t modules;         /* of its kernel */
    uint64_t rules;           /* in the kernel's unwind tables; 0: no tables */
    uint64_t rules_version;   /* UprofOrcVersion of these tables */
    bool has_types;           /* the types of the kernel are known */
    bool has_tasks;           /* the running process is known */
    uint64_t kernel_stacks;   /* stacks with a kernel part */
    uint64_t kernel_complete; /* stacks with a complete kernel part */
    uint64_t user_stacks;     /* stacks with a user part, even if unwinding did not reach it */
    uint64_t user_complete;   /* stacks with a complete user part */
} UprofRunLinux;

/** UprofRunWaits: facts of a run that also walked the tasks of its guest */
typedef struct {
    uint64_t walks;      /* walks of all tasks; 0: the run counted no waits */
    uint64_t tasks;      /* that these walks have found, all together */
    uint64_t incomplete; /* walks that may lack tasks */
    uint64_t time_ns;    /* the time that is counted, which is between walks */
    uint64_t total_us;   /* that tasks waited in this time, all together */
    uint64_t unknown_us; /* of that, before their stacks could be found: they ran again too soon */
} UprofRunWaits;

/** UprofRun: the facts. Strings are owned and may be %NULL. */
typedef struct {
    /* The program, the domain and the methods */
    char *program; /* "virt-uprof VERSION", which recorded the run */
    char *domain;  /* name of the domain: any bytes except newline */
    char *uuid;
    char *driver; /* "QEMU", "Xen" */
    char *type;   /* "kvm", "qemu", "xen" */
    char *arch;
    char *labels; /* of the domain's metadata: see profile-xml.h */
    char *access; /* "monitor", "direct", "xen", "replay" */
    char *why;    /* why no better access method is used */
    char *unwind; /* "auto", "cfi", "fp" */
    uint64_t vcpus;
    uint64_t vcpus_sampled; /* of these, the vCPUs that the user chose; 0: all */

    /* The user's settings */
    uint64_t started_utc_ns;
    uint64_t rate_mhz;  /* samples per second of each vCPU, in millihertz */
    uint64_t asked_ns;  /* duration; 0: until stopped */
    uint64_t max_depth; /* frames of a stack */
    bool per_vcpu;      /* show each vCPU separately */
    bool pids;          /* show processes with their numbers */
    bool cgroups;       /* show the cgroup of each process */
    bool native;        /* show the frames of interpreters, too */
    bool idle;          /* show halted vCPUs */
    bool idle_stacks;   /* show halted vCPUs by their last stack */
    bool no_pause;      /* the guest was not stopped */

    /* The course of the run */
    char *ended_by; /* "duration", "samples", "signal", "gone", "limit", "error" */
    uint64_t duration_ns;
    /* the rate was divided by this number to stay within the budget; at least 1 */
    uint64_t divisor;
    uint64_t late, busy, skipped, stuck; /* ticks without a sample: see UprofSamplerCounts */
    uint64_t held_ns; /* sum of all holds of one vCPU, for the vCPU with the largest sum */
    uint64_t cpu_ns;  /* processor time of the profiler */

    /* Quality; a replay computes these members again */
    uint64_t samples;                        /* all samples, of running and halted vCPUs */
    uint64_t running, idles;                 /* samples of running vCPUs; of halted vCPUs */
    uint64_t torn;                           /* samples with a stale snapshot: see snapshot.h */
    uint64_t unfiltered;                     /* samples before a filter was applied; 0: no filter */
    uint64_t complete, truncated, unknown;   /* stacks */
    uint64_t frames, named;                  /* all frames; frames that have a name */
    uint64_t by_orc, by_cfi, by_code, by_fp; /* frames by the method that found them */
    uint64_t calls_checked, calls_agreed;    /* return addresses: see uprof_unwind_check_calls() */
    uint64_t one_frame;                      /* stacks of a single frame */
    UprofHistogram hold, stopped;            /* lengths of holds; times that vCPUs stood still */
    UprofRunLinux kernel;
    UprofRunWaits waits;
    bool is_waits; /* the profile beside these facts has the microseconds of waits, not samples */

    GPtrArray *images; /* (element-type UprofRunImage): owned */
    GPtrArray *files;  /* (element-type utf8): owned: files that the run wrote */
    char *trigger;     /* why `watch` has written the profile; %NULL for all other commands */

    /* Only for a closed day */
    GArray *slices; /* (element-type uint32_t): owned: seconds of the day at which runs began */
    char *profile_sha256; /* of the file with its stacks */
} UprofRun;

/** UprofRunKind: type of a member: char *, uint64_t or bool */
typedef enum { UPROF_RUN_TEXT, UPROF_RUN_UINT, UPROF_RUN_BOOL } UprofRunKind;

/** UprofRunWhen: when a member is known, which decides the record of a capture that has it */
typedef enum {
    UPROF_RUN_AT_START = 1, /* before the first sample */
    UPROF_RUN_AT_END = 2,   /* after the last sample */
    /* Before the first sample, but it may change, as the access method does if it fails */
    UPROF_RUN_AT_BOTH = UPROF_RUN_AT_START | UPROF_RUN_AT_END,
} UprofRunWhen;

/** UprofRunField: a member of UprofRun that captures have */
typedef struct {
    const char *key; /* in a capture */
    UprofRunKind kind;
    size_t offset; /* in UprofRun */
    UprofRunWhen when;
} UprofRunField;

extern const UprofRunField uprof_run_fields[];
extern const size_t uprof_run_n_fields;

UprofRun *uprof_run_new(void);
void uprof_run_free(UprofRun *run);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofRun, uprof_run_free)

/**
 * uprof_run_add_image:
 * @label, @path, @build_id, @digest: copied; all except @label may be %NULL
 *
 * Returns: (transfer none): the new image
 */
UprofRunImage *uprof_run_add_image(UprofRun *run, const char *label, const char *path,
                                   const char *build_id, const char *digest);

/**
 * uprof_run_leave_module_out: forgets the build-ids of all modules called @label
 *
 * Call it for a module beyond %UPROF_RUN_MODULES_MAX. The run does not have that module, so @label
 * does not identify one module any more.
 */
void uprof_run_leave_module_out(UprofRun *run, const char *label);

/** uprof_run_image_is_called: has the image this label? @name: without brackets, such as "app" */
bool uprof_run_image_is_called(const UprofRunImage *image, UprofSlice name);

/**
 * uprof_run_module_id:
 * @name: of a module, such as "libc.so.6"
 *
 * Returns: (nullable) (transfer none): its build-id; %NULL if it is not known, or if several
 * modules have that name
 */
const char *uprof_run_module_id(const UprofRun *run, UprofSlice name);

/**
 * uprof_run_merge: adds the facts of another run
 * @is_first: @run is new and empty
 *
 * Counts are added. Members that differ and are not counts become unknown. Equal images are
 * merged into one. Slices are not added.
 */
void uprof_run_merge(UprofRun *run, const UprofRun *other, bool is_first);

/** uprof_run_add_counts: adds only the counts, times and histograms of another run */
void uprof_run_add_counts(UprofRun *run, const UprofRun *other);

/** uprof_run_clear_counts: sets the counts, times and histograms to 0 */
void uprof_run_clear_counts(UprofRun *run);

/** uprof_run_got_mhz: Returns: samples per second of each vCPU, in millihertz */
uint64_t uprof_run_got_mhz(const UprofRun *run);

/**
 * uprof_run_held_ns:
 *
 * Returns: the sum of all holds of the vCPU that was held longest; for a run that was killed before
 *   it could store this sum, the sum of all holds
 */
uint64_t uprof_run_held_ns(const UprofRun *run);

/** uprof_permille: Returns: @part of @whole in tenths of a percent, rounded; 0 if @whole is 0 */
uint64_t uprof_permille(uint64_t part, uint64_t whole);
