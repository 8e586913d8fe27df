/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * settings.h - what a run is to do, with units
 *
 * Values come as text from the command line and from domain metadata; each is
 * parsed here, whole and within its range, or refused. The command line wins
 * over metadata, metadata over what is built in.
 */
#pragma once

#include "uprof/config.h"
#include "uprof/xml.h"

enum {
    UPROF_RATE_MAX_HZ = 20000,
    UPROF_DURATION_MAX_S = 30 * 24 * 3600,
    UPROF_MAX_PAUSE_MAX_S = 10,
    UPROF_METADATA_RATE_MAX_HZ = 1000,
};

/** What each value may be, for messages */
#define UPROF_RATE_FORM "1 to 20000 (per second)"
#define UPROF_DURATION_FORM "a number with ms, s, m or h, such as 10s or 500ms; 0: until stopped"
#define UPROF_BUDGET_FORM "0.1 to 100 (percent)"
#define UPROF_CHANCE_FORM "0 to 1, such as 0.2"
#define UPROF_VCPUS_FORM "numbers and ranges, such as 0,2-3"

/** UprofGiven: which members were set by somebody */
typedef struct {
    bool rate, duration, budget, unwind;
} UprofGiven;

/**
 * UprofSettings:
 * @rate_mhz: samples per second and vCPU, in millihertz
 * @duration_ns: 0: until stopped
 * @budget_ppm: share of time that a vCPU may be held, in millionths; 0: what is usual for the access
 * @max_pause_ns: a hold that old copies nothing more
 * @vcpus: (nullable): uint32_t numbers, sorted, each once; %NULL: all
 */
typedef struct {
    uint64_t rate_mhz;
    uint64_t duration_ns;
    uint64_t budget_ppm;
    uint64_t max_pause_ns;
    unsigned max_depth;
    GArray *vcpus;
    bool per_vcpu;
    bool pids;        /* processes are shown with their numbers */
    bool idle;        /* halted vCPUs are shown ... */
    bool idle_stacks; /* ... by their last stack */
    bool no_pause;
    const char *unwind; /* "auto", "cfi", "fp" */
    bool enabled;       /* metadata wants periodic runs */
    UprofGiven given;
} UprofSettings;

/** uprof_settings_init: what is built in */
void uprof_settings_init(UprofSettings *settings);
void uprof_settings_clear(UprofSettings *settings);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofSettings, uprof_settings_clear)

/** uprof_settings_has_vcpu: Returns: whether that vCPU is to be sampled */
bool uprof_settings_has_vcpu(const UprofSettings *settings, unsigned vcpu);

/*
 * uprof_settings_parse_rate .. _vcpus:
 * @text: of one option or attribute
 *
 * Returns: false, output untouched, if it is not of the form above
 */
bool uprof_settings_parse_rate(const char *text, uint64_t *rate_mhz);
bool uprof_settings_parse_duration(const char *text, uint64_t *duration_ns);
bool uprof_settings_parse_budget(const char *text, uint64_t *budget_ppm);
bool uprof_settings_parse_chance(const char *text, uint64_t *chance_ppm);
bool uprof_settings_parse_vcpus(const char *text, GArray **vcpus);

/**
 * uprof_settings_take_metadata:
 * @settings: (inout): what the command line did not give is taken from @metadata
 * @limits: (nullable): of periodic runs, beyond which rate, duration and budget do
 *   not go, and for which it must say whether it is enabled
 * @symbols: (nullable): gets the paths of symbol files (char *)
 *
 * Metadata is not root's word: rate and duration are limited in any case. A bad
 * value makes the whole element count as absent.
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA that names the attribute
 */
bool uprof_settings_take_metadata(UprofSettings *settings, const UprofMetadata *metadata,
                                  const UprofConfig *limits, GPtrArray *symbols, GError **error);

/**
 * uprof_settings_open_symbols:
 * @config: with the folders that symbol files of metadata may lie in
 * @path: that metadata names; any bytes
 *
 * Opens it without following a link below the folder, so that nobody but who may
 * write there chooses what is opened.
 *
 * Returns: a descriptor of a regular file, to read from, the caller's; -1 with
 *   %UPROF_ERROR_BAD_DATA, or %UPROF_ERROR_NO_FILE, that quotes @path
 */
int uprof_settings_open_symbols(const UprofConfig *config, const char *path, GError **error);

/**
 * uprof_settings_check_symbols: Returns: whether uprof_settings_open_symbols() opens it now; what
 *   is to be read later is to be opened then
 */
bool uprof_settings_check_symbols(const UprofConfig *config, const char *path, GError **error);
