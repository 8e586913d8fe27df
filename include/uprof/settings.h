/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * settings.h - the settings of a run, with units
 *
 * Values come as text from the command line and from domain metadata. A value outside its range is
 * refused. The command line takes precedence over metadata, and metadata over the defaults.
 */
#pragma once

#include "uprof/config.h"
#include "uprof/domain-xml.h"

enum {
    UPROF_MAX_PAUSE_MAX_MS = 1000,
    UPROF_PAUSE_DEFAULT_MS = 1000,
    /* of @pause_ns: with all retries of a release, shorter than the guardian waits */
    UPROF_PAUSE_MAX_MS = 10 * 1000,
};

/* Forms of values, for messages */
#define UPROF_RATE_FORM "1 to 20000 (per second)"
#define UPROF_DURATION_FORM "a time such as 10s, 500ms, 1.5h or 2d, up to 30d; 0: until stopped"
#define UPROF_BUDGET_FORM "0.1 to 100 (percent)"
#define UPROF_VCPUS_FORM "numbers and ranges, such as 0,2-3"

/** UprofGiven: members of UprofSettings that are not defaults */
typedef struct {
    bool rate, duration, budget, unwind;
} UprofGiven;

/** UprofSettings: initialize with uprof_settings_init() */
typedef struct {
    uint64_t rate_mhz;     /* samples per second of each vCPU, in millihertz */
    uint64_t duration_ns;  /* 0: until stopped */
    uint64_t budget_ppm;   /* share of time that a vCPU may be held, in millionths; 0: the default
                            * of the access method */
    uint64_t max_pause_ns; /* a longer hold stops copying */
    uint64_t pause_ns;     /* the longest time for which the whole guest is held while its tasks are
                            * read; 0: it runs */
    unsigned max_depth;    /* frames of a stack */
    GArray *vcpus;         /* (nullable) (element-type uint32_t): sorted, unique; %NULL: all */
    bool per_vcpu;         /* show each vCPU separately */
    bool pids;             /* show processes with their numbers */
    bool cgroups;          /* show the cgroup of each process */
    bool native;           /* show the frames of interpreters, too */
    bool idle;             /* show halted vCPUs */
    bool idle_stacks;      /* show halted vCPUs by their last stack */
    bool waits;            /* count where tasks of a Linux guest wait, too */
    bool no_pause;         /* read without a hold */
    const char *unwind;    /* "auto", "cfi" or "fp" */
    bool enabled;          /* metadata allows periodic runs */
    UprofGiven given;
} UprofSettings;

/** uprof_settings_init: sets the defaults */
void uprof_settings_init(UprofSettings *settings);
void uprof_settings_clear(UprofSettings *settings);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofSettings, uprof_settings_clear)

/** uprof_settings_has_vcpu: do the settings include this vCPU? */
bool uprof_settings_has_vcpu(const UprofSettings *settings, unsigned vcpu);

/*
 * uprof_settings_parse_rate .. _vcpus:
 * @text: of an option or attribute
 *
 * Returns: false, output untouched, if @text does not have the form above
 */
bool uprof_settings_parse_rate(const char *text, uint64_t *rate_mhz);
bool uprof_settings_parse_duration(const char *text, uint64_t *duration_ns);
bool uprof_settings_parse_budget(const char *text, uint64_t *budget_ppm);
bool uprof_settings_parse_vcpus(const char *text, GArray **vcpus);

/* uprof_settings_format_rate .. _budget: Returns: (transfer full): as uprof_settings_parse_* read
 * it */
char *uprof_settings_format_rate(uint64_t rate_mhz);
char *uprof_settings_format_duration(uint64_t duration_ns);
char *uprof_settings_format_budget(uint64_t budget_ppm);

/**
 * uprof_settings_take_metadata: sets the members that the command line did not give
 * @limits: (nullable): for a periodic run: upper limits of rate, duration and budget; the
 *   metadata must then say whether it is enabled. %NULL for a run by hand, to which rate, duration
 *   and budget of the metadata do not apply: whoever may edit the domain must not shorten it
 * @symbols: (nullable) (element-type utf8): the paths of symbol files are added
 *
 * Other users than root can write metadata, so rate and duration are always limited. One
 * bad value makes the complete element invalid.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA that names the attribute
 */
bool uprof_settings_take_metadata(UprofSettings *settings, const UprofMetadata *metadata,
                                  const UprofConfig *limits, GPtrArray *symbols, GError **error);

/**
 * uprof_settings_take_config: sets rate, duration and budget as configured, unless the command line
 * has set them. Metadata overrides the configuration, and the command line overrides both.
 */
void uprof_settings_take_config(UprofSettings *settings, const UprofConfig *config);

/**
 * uprof_settings_is_enabled: does a round of `collect` sample the domain called @name?
 *
 * Returns: false without an error if it does not; with %UPROF_ERROR_BAD_DATA if its metadata is bad
 */
bool uprof_settings_is_enabled(const UprofConfig *config, const char *name,
                               const UprofMetadata *metadata, GError **error);

/**
 * uprof_settings_open_symbols: opens a symbol file that metadata names
 * @folders: of char: the folders in which such files may lie
 * @path: any bytes
 *
 * No link below these folders is followed, so that only users who may write to the folders decide
 * which file is read.
 *
 * Returns: a descriptor of a regular file for reading, which the caller must close; -1 with
 *   %UPROF_ERROR_BAD_DATA or %UPROF_ERROR_NO_FILE, which quotes @path
 */
int uprof_settings_open_symbols(const GPtrArray *folders, const char *path, GError **error);

/**
 * uprof_settings_check_symbols: would uprof_settings_open_symbols() open the file now?
 *
 * For checks only: the file may change until it is read.
 */
bool uprof_settings_check_symbols(const UprofConfig *config, const char *path, GError **error);
