/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output.h - the table of output formats, and tables for people and scripts
 *
 * A format is a file of its own in src/output and a row in format-table.c. It reads the stacks of a
 * profile, or its ticks in the order of time, and appends text to a sink. All names are clean
 * already (text.h), so a format only escapes them for its own syntax. The same profile gives the
 * same bytes. Captures are written during the run and not here; they have a row for their name and
 * suffix.
 */
#pragma once

#include "uprof/annotation.h"
#include "uprof/bytes.h"
#include "uprof/calendar.h"
#include "uprof/change.h"
#include "uprof/file.h"
#include "uprof/focus.h"
#include "uprof/processes.h"
#include "uprof/profile.h"

typedef struct _UprofFormat UprofFormat;

/** UprofSink: takes the text of a format */
typedef struct {
    GString *text;   /* not yet written to @file */
    UprofFile *file; /* (nullable): borrowed; %NULL keeps everything in @text */
    GError *error;   /* (nullable): owned; the first failure; nothing is written after it */
} UprofSink;

/** UprofFormat: a row of the table */
struct _UprofFormat {
    const char *name;        /* as in --format NAME */
    const char *suffixes[3]; /* of file names, NULL-terminated; the longest match counts */
    bool is_binary;          /* not for a terminal */
    bool is_capture;         /* written during the run */
    bool is_secret;          /* files have mode 0600 */
    bool is_of_store;        /* goes with stored stacks: not offered to users */
    bool is_timed;           /* needs the times of uprof_profile_keep_times() */
    void (*write)(const UprofProfile *profile, const UprofRun *run, UprofSink *sink);
    /* (nullable): writes samples and waits (waits.h) into one file */
    void (*write_both)(const UprofProfile *profile, const UprofProfile *waits, const UprofRun *run,
                       UprofSink *sink);
    bool has_waits_file; /* waits can be written to a file of their own: uprof_output_write_waits()
                          */
};

extern const UprofFormat uprof_format_folded;
extern const UprofFormat uprof_format_folded_gz;
extern const UprofFormat uprof_format_svg;
extern const UprofFormat uprof_format_pprof;
extern const UprofFormat uprof_format_speedscope;
extern const UprofFormat uprof_format_perf;
extern const UprofFormat uprof_format_meta;
extern const UprofFormat uprof_format_functions;

/** uprof_format_by_name: Returns: (nullable): the format called @name */
const UprofFormat *uprof_format_by_name(const char *name);

/** uprof_format_by_path: Returns: (nullable): the format whose suffix @path has */
const UprofFormat *uprof_format_by_path(const char *path);

/** uprof_format_names: Returns: (transfer full): all names, for messages */
char *uprof_format_names(void);

/** uprof_format_endings: Returns: (transfer full): the usual suffix of each format, for messages */
char *uprof_format_endings(void);

/**
 * uprof_output_render:
 *
 * Returns: (transfer full): the profile in @format; empty if the format cannot show it
 */
GString *
uprof_output_render(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run);

/** uprof_output_write: writes the profile in @format to @file */
bool uprof_output_write(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run,
                        UprofFile *file, GError **error);

/**
 * uprof_output_write_both:
 * @waits: (nullable): written, too, if the format has several values
 */
bool uprof_output_write_both(const UprofFormat *format, const UprofProfile *profile,
                             const UprofProfile *waits, const UprofRun *run, UprofFile *file,
                             GError **error);

/** uprof_output_write_waits: writes only the waits, in microseconds; the format has @has_waits_file
 */
bool uprof_output_write_waits(const UprofFormat *format, const UprofProfile *waits,
                              const UprofRun *run, UprofFile *file, GError **error);

/** UprofPprofForm: a profile for an engine that stores profiles of many machines */
typedef struct {
    const char *comment; /* (nullable): borrowed */
} UprofPprofForm;

/**
 * uprof_pprof_render: renders a profile with the values "samples" and "cpu", whatever else its run
 * has counted
 * @form: the only label of its samples is "vcpu", if @profile shows vCPUs
 *
 * Returns: (transfer full): a compressed pprof profile; the same profile gives the same bytes
 */
GString *
uprof_pprof_render(const UprofProfile *profile, const UprofRun *run, const UprofPprofForm *form);

/**
 * uprof_svg_compare:
 * @both: from uprof_tree_compare()
 * @old_name, @new_name: (nullable): of the profiles, as the user gave them; they are in the title
 * if the domains do not tell the profiles apart
 *
 * Returns: (transfer full): a differential flame graph with the layout of the new profile:
 *   frames that grew are red, frames that shrank are blue
 */
GString *uprof_svg_compare(const UprofTree *both, const UprofRun *old, const UprofRun *new,
                           const char *old_name, const char *new_name);

/** uprof_svg_history: Returns: (transfer full): a flame graph with a heat map of days and hours */
GString *uprof_svg_history(const UprofCalendar *calendar);

/**
 * uprof_output_compress:
 *
 * Returns: (transfer full): @text as gzip compresses it (RFC 1952); the same text gives the same
 * bytes
 */
GString *uprof_output_compress(UprofSlice text);

/** UprofTableStyle: the look of a table */
typedef struct {
    unsigned rows;  /* at most */
    unsigned width; /* columns; longer names are cut; 0: no limit */
    bool bars;      /* draw a bar for each share */
    bool colors;    /* the terminal shows colors */
    bool unicode;   /* the terminal shows UTF-8 */
    UprofRowsBy by; /* what rows are: functions, or processes or cgroups (processes.h) */
} UprofTableStyle;

/**
 * uprof_table_render:
 *
 * Returns: (transfer full): functions by self weight, or processes by total weight; empty if
 * nothing ran
 */
GString *uprof_table_render(const UprofProfile *profile, const UprofTableStyle *style);

/**
 * uprof_table_append: appends a table; @rows: (element-type UprofProfileRow); @total: weight of 100
 * percent
 */
void
uprof_table_append(GString *out, const UprofTableStyle *style, const GArray *rows, uint64_t total);

/** uprof_table_render_focus: Returns: (transfer full): the callers and callees of a function */
GString *uprof_table_render_focus(const UprofFocus *focus, const UprofTableStyle *style);

/**
 * uprof_annotation_render:
 * @name: of the function; clean
 *
 * Returns: (transfer full): a table of lines, and the instructions near samples
 */
GString *uprof_annotation_render(const UprofAnnotation *annotation, const char *name,
                                 const UprofTableStyle *style);

/**
 * uprof_json_annotation:
 * @name: of the function; clean
 *
 * Returns: (transfer full): the sidecar, extended by all lines and instructions of the function
 */
GString *
uprof_json_annotation(const UprofAnnotation *annotation, const char *name, const UprofRun *run);

/**
 * uprof_table_render_changes:
 * @with_noise: includes changes that are not significant
 *
 * Returns: (transfer full): the functions of a comparison, largest change first
 */
GString *
uprof_table_render_changes(const UprofTree *both, const UprofTableStyle *style, bool with_noise);

/**
 * uprof_json_report:
 * @focus: (nullable)
 * @by: includes processes or cgroups (processes.h)
 *
 * Returns: (transfer full): the sidecar, extended by all functions with their weights
 */
GString *uprof_json_report(const UprofProfile *profile, const UprofRun *run,
                           const UprofFocus *focus, UprofRowsBy by);

/**
 * uprof_json_changes: Returns: (transfer full): both sidecars, and all functions with both weights
 */
GString *uprof_json_changes(const UprofTree *both, const UprofRun *old, const UprofRun *new);
