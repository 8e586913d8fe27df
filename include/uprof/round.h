/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * round.h - one round of `collect`: samples the enabled domains one after another
 *
 * The process of the round has no connection and one thread. Helper processes with a time limit
 * (src/round/task.c) talk to libvirt. If a daemon hangs or a helper crashes, the round loses only
 * one step.
 */
#pragma once

#include "uprof/session.h"

/** UprofOutcome: the result of a domain's turn in a round */
typedef enum {
    UPROF_OUTCOME_DONE,    /* the slice is stored */
    UPROF_OUTCOME_SKIPPED, /* nothing failed: the domain was paused, for example */
    UPROF_OUTCOME_FAILED,
} UprofOutcome;

/** UprofCandidate: a domain that a round may sample */
typedef struct {
    char *name;           /* owned; any bytes but newline */
    char *uuid;           /* owned */
    char *uri;            /* (nullable): owned; the connection; %NULL: libvirt's default */
    int64_t last_s;       /* when the last turn began, since 1970; 0: never */
    uint64_t duration_ns; /* for how long to sample the domain */
    char *obstacle;       /* (nullable): owned; why the domain cannot be sampled now */
    bool is_fault;        /* @obstacle is an error in the domain's metadata */
    guint32 tie_breaker;  /* random; orders domains of equal @last_s; uprof_order_sort() sets it */
} UprofCandidate;

/** UprofTaskResult: the report of the task that sampled one domain */
typedef struct {
    uint64_t samples;
    uint64_t duration_ns;
    uint64_t held_ns; /* all holds of the vCPU that was held longest: see uprof_run_held_ns() */
    char *reason;     /* (nullable): owned; the last message */
    GPtrArray *lines; /* owned; of char: the messages before @reason */
} UprofTaskResult;

/** UprofRoundObserver: functions that show what happens to each domain; none may be %NULL */
typedef struct {
    /* Called before a domain is sampled. Its turn is number @i of @n, counted from 1. */
    void (*began)(const UprofCandidate *candidate, unsigned i, unsigned n, void *data);
    /* Called at the end of a turn. @facts: (nullable): only if the domain's task was started */
    void (*ended)(const UprofCandidate *candidate, UprofOutcome outcome, const char *reason,
                  const UprofTaskResult *facts, void *data);
    /* Called with @dry_run, for each domain that the round would sample. */
    void (*would_sample)(const UprofCandidate *candidate, void *data);
    void *data; /* borrowed; passed to all functions */
} UprofRoundObserver;

/** UprofRoundSettings: one round; all pointers are borrowed */
typedef struct {
    UprofSessionSettings session; /* its @config must not be %NULL; its @uri is ignored */
    const GPtrArray *uris;        /* of char: connections; empty: libvirt's default */
    const GPtrArray *words;       /* of char: domains to sample; empty: all enabled domains */
    const char *store;            /* path of the store */
    bool dry_run;                 /* samples nothing and writes nothing */
    const UprofRoundObserver *observer;
} UprofRoundSettings;

/** UprofRoundResult: the results of a round */
typedef struct {
    unsigned n_done, n_failed, n_skipped; /* domains, by outcome */
    unsigned n_late;                      /* domains for which no time was left */
    unsigned n_lost;                      /* connections and recoveries that gave no answer */
    unsigned n_missing;                   /* answers that a domain of @words does not exist */
    UprofErrorCode worst;                 /* LEFT_HELD outranks the counts; else NONE */
} UprofRoundResult;

/**
 * uprof_round_run: runs one round, and sends a notice for each error
 * @result: (out)
 *
 * Returns: NONE if the round took place; LOCKED if another round is running; or another code if
 *   the round could not begin
 */
UprofErrorCode uprof_round_run(const UprofRoundSettings *settings, UprofRoundResult *result);
