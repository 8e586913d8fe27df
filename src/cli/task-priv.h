/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-priv.h - the steps of a round that talk to libvirt
 *
 * Each runs in a helper's process (helper-priv.h), and answers with texts.
 */
#pragma once

#include "options-priv.h"
#include "order-priv.h"

/**
 * uprof_task_heal: lets go what dead runs have left, and says so
 * @data: UprofOptions
 *
 * Returns: exit code
 */
int uprof_task_heal(int fd, void *data);

/**
 * UprofLook: one connection is looked at
 * @options: borrowed: with words, the domains that were named; without, those that
 *   metadata or configuration wants
 * @uri: (nullable): borrowed
 */
typedef struct {
    UprofOptions *options;
    const char *uri;
} UprofLook;

/** uprof_task_look: @data: UprofLook. Returns: exit code */
int uprof_task_look(int fd, void *data);

/**
 * UprofLookResult:
 * @candidates: of UprofCandidate *: domains that are wanted
 * @warnings, @troubles, @missing, @errors: of char *: lines; @troubles of domains of which
 *   it is not known whether they are wanted, @missing of those that were named and are not there
 */
typedef struct {
    GPtrArray *candidates;
    GPtrArray *warnings;
    GPtrArray *troubles;
    GPtrArray *missing;
    GPtrArray *errors;
} UprofLookResult;

/**
 * uprof_task_read_look: adds one connection's
 * @texts: of uprof_task_look()
 * @uri: (nullable): of its candidates
 */
void uprof_task_read_look(const GPtrArray *texts, const char *uri, UprofLookResult *result);

/**
 * UprofTask: one domain is sampled
 * @base: borrowed: of its files, without ending
 */
typedef struct {
    UprofOptions *options;
    const UprofCandidate *candidate;
    const char *base;
} UprofTask;

/** uprof_task_sample: @data: UprofTask. Returns: exit code */
int uprof_task_sample(int fd, void *data);

/**
 * UprofTaskResult:
 * @reason: (nullable): the last thing that was said
 * @lines: of char: what was said before it
 */
typedef struct {
    uint64_t samples;
    uint64_t duration_ns;
    uint64_t held_ns;
    char *reason;
    GPtrArray *lines;
} UprofTaskResult;

void uprof_task_result_clear(UprofTaskResult *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofTaskResult, uprof_task_result_clear)

/** uprof_task_read_sample: @texts: of uprof_task_sample(); @result: (out): zeros where it is cut */
void uprof_task_read_sample(const GPtrArray *texts, UprofTaskResult *result);
