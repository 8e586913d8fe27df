/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output.h - the table of formats
 *
 * A format is a file of its own in src/output and a row here. It asks the
 * profile for its stacks, or for its ticks in the order of time, and appends to
 * a sink. Every name arrives clean (text.h); a writer only escapes for its own
 * syntax. The same profile gives the same bytes. Captures are written while
 * sampling, not here, and have a row so that their name and ending are known.
 */
#pragma once

#include "uprof/change.h"
#include "uprof/file.h"
#include "uprof/focus.h"
#include "uprof/profile.h"

typedef struct _UprofFormat UprofFormat;

/**
 * UprofSink: where a writer appends to
 * @text: what was appended and not drained yet
 * @file: (nullable): what it drains into, borrowed; %NULL: all stays in @text
 * @error: (nullable): why nothing can be written any more
 */
typedef struct {
    GString *text;
    UprofFile *file;
    GError *error;
} UprofSink;

/** uprof_sink_drain: to be called now and then by whoever may append much */
void uprof_sink_drain(UprofSink *sink);

/**
 * UprofFormat:
 * @name: as in --format NAME
 * @suffixes: endings of file names, NULL-terminated; the longest match of all formats wins
 * @is_binary: nothing for a terminal
 * @is_capture: written while sampling
 * @is_secret: mode 0600
 * @is_timed: tells when stacks were seen: wants uprof_profile_keep_times()
 * @write: all of the profile
 */
struct _UprofFormat {
    const char *name;
    const char *suffixes[3];
    bool is_binary;
    bool is_capture;
    bool is_secret;
    bool is_timed;
    void (*write)(const UprofProfile *profile, const UprofRun *run, UprofSink *sink);
};

extern const UprofFormat uprof_format_folded;
extern const UprofFormat uprof_format_folded_gz;
extern const UprofFormat uprof_format_svg;
extern const UprofFormat uprof_format_pprof;
extern const UprofFormat uprof_format_speedscope;
extern const UprofFormat uprof_format_perf;
extern const UprofFormat uprof_format_meta;

/** uprof_format_by_name: Returns: (nullable): the format called @name */
const UprofFormat *uprof_format_by_name(const char *name);

/** uprof_format_by_path: Returns: (nullable): the format whose ending @path has */
const UprofFormat *uprof_format_by_path(const char *path);

/** uprof_format_names: Returns: (transfer full): all names, for messages */
char *uprof_format_names(void);

/** uprof_format_endings: Returns: (transfer full): of each the usual ending, for messages */
char *uprof_format_endings(void);

/**
 * uprof_output_render:
 *
 * Returns: (transfer full): the profile in that format; empty if that cannot hold it
 */
GString *
uprof_output_render(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run);

/** uprof_output_write: the same into @file. Returns: false with %UPROF_ERROR_FAILED */
bool uprof_output_write(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run,
                        UprofFile *file, GError **error);

/**
 * uprof_svg_compare:
 * @both: of uprof_tree_compare()
 *
 * Returns: (transfer full): a differential flame graph: the layout of the new
 *   profile, red what has grown, blue what has shrunk
 */
GString *uprof_svg_compare(const UprofTree *both, const UprofRun *old, const UprofRun *new);

/**
 * UprofTableStyle: how a table is to look
 * @rows: at most so many functions
 * @width: columns that there are; names are cut to fit. 0: any number
 * @bars: of the shares
 * @colors, @unicode: what a terminal can do
 * @by_process: rows are not functions but processes (processes.h)
 */
typedef struct {
    unsigned rows;
    unsigned width;
    bool bars;
    bool colors;
    bool unicode;
    bool by_process;
} UprofTableStyle;

/**
 * uprof_table_render:
 *
 * Returns: (transfer full): functions by self weight, or processes by all of theirs, as text
 *   for people
 */
GString *uprof_table_render(const UprofProfile *profile, const UprofTableStyle *style);

/** uprof_table_append: @rows: of UprofProfileRow, of @total in all */
void
uprof_table_append(GString *out, const UprofTableStyle *style, const GArray *rows, uint64_t total);

/** uprof_table_render_focus: Returns: (transfer full): who called a function, and whom it called */
GString *uprof_table_render_focus(const UprofFocus *focus, const UprofTableStyle *style);

/**
 * uprof_table_render_changes:
 * @with_noise: also what chance may explain
 *
 * Returns: (transfer full): functions of a comparison, the largest change first
 */
GString *
uprof_table_render_changes(const UprofTree *both, const UprofTableStyle *style, bool with_noise);

/**
 * uprof_json_report:
 * @focus: (nullable)
 * @by_process: processes too (processes.h)
 *
 * Returns: (transfer full): the sidecar, and in it every function with its weights
 */
GString *uprof_json_report(const UprofProfile *profile, const UprofRun *run,
                           const UprofFocus *focus, bool by_process);

/** uprof_json_changes: Returns: (transfer full): facts of both runs, every function on both sides */
GString *uprof_json_changes(const UprofTree *both, const UprofRun *old, const UprofRun *new);
