/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output.h - the table of formats
 *
 * A format is a file of its own in src/output: `begin`, `stack`, `end`, fed by
 * one walk of the profile, and a row here. Every name arrives clean (text.h);
 * a writer only escapes for its own syntax. The same profile gives the same
 * bytes. Captures are written while sampling, not here, and have a row so that
 * their name and ending are known.
 */
#pragma once

#include "uprof/file.h"
#include "uprof/profile.h"

typedef struct _UprofFormat UprofFormat;

/**
 * UprofFormat:
 * @name: as in --format NAME
 * @suffixes: endings of file names, NULL-terminated; the longest match of all formats wins
 * @is_binary: nothing for a terminal
 * @is_capture: written while sampling
 * @is_secret: mode 0600
 * @begin: Returns: (nullable): the writer's state
 * @stack: one stack, root first
 * @end: appends all there is to @out and frees the state
 */
struct _UprofFormat {
    const char *name;
    const char *suffixes[3];
    bool is_binary;
    bool is_capture;
    bool is_secret;
    void *(*begin)(const UprofRun *run);
    void (*stack)(void *state, const UprofName *const *frames, unsigned n, uint64_t weight);
    void (*end)(void *state, GString *out);
};

extern const UprofFormat uprof_format_folded;
extern const UprofFormat uprof_format_meta;

/** uprof_format_by_name: Returns: (nullable): the format called @name */
const UprofFormat *uprof_format_by_name(const char *name);

/** uprof_format_by_path: Returns: (nullable): the format whose ending @path has */
const UprofFormat *uprof_format_by_path(const char *path);

/** uprof_format_names: Returns: (transfer full): all names, for messages */
char *uprof_format_names(void);

/**
 * uprof_output_render:
 *
 * Returns: (transfer full): the profile in that format
 */
GString *
uprof_output_render(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run);

/**
 * uprof_table_render:
 * @n_rows: at most so many functions
 *
 * Returns: (transfer full): functions by self weight, as text for people
 */
GString *uprof_table_render(const UprofProfile *profile, unsigned n_rows);
