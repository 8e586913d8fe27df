/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * output-request.h - a file that a run writes for each domain
 */
#pragma once

#include "uprof/output.h"

/** UprofOutputRequest: a file to write for each domain */
typedef struct {
    char *path;                /* owned; %d, %u, %t and %% are replaced; "-" is stdout */
    const UprofFormat *format; /* borrowed */
    bool is_unused_name;       /* if the file exists, a number is added before the suffix */
    bool is_waits;             /* has the waits of tasks, not the samples: see waits.h */
    /* (nullable): borrowed: the @parent of uprof_file_open_own(), which then opens the file */
    const int *parent;
} UprofOutputRequest;

/** uprof_output_request_add: adds a request to a list of uprof_output_request_list() */
void uprof_output_request_add(GPtrArray *list, const char *path, const UprofFormat *format,
                              bool is_unused_name);

/**
 * uprof_output_request_add_waits: for each file of the list that cannot also have the waits of
 * tasks, but whose format can show them, adds a file beside it: "web-1.waits.svg" beside
 * "web-1.svg"
 *
 * Returns: false with %UPROF_ERROR_USAGE if no file of the list will have waits, or if a name is
 * there twice
 */
bool uprof_output_request_add_waits(GPtrArray *list, GError **error);

/** uprof_output_request_list: Returns: (transfer full): an empty list, which owns its requests */
GPtrArray *uprof_output_request_list(void);

/**
 * uprof_output_request_path:
 * @name, @uuid: of the domain
 * @time: UTC
 *
 * Returns: (transfer full): the path with the safe domain name for %d, the UUID for %u, @time for
 * %t, and a percent sign for %%
 */
char *uprof_output_request_path(const UprofOutputRequest *request, const char *name,
                                const char *uuid, const char *time);

/**
 * uprof_output_request_names_domain: does the path contain %d or %u? "%%d" does not count: it is a
 * percent sign and a letter.
 */
bool uprof_output_request_names_domain(const char *path);
