/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-rounds.h - sends stored rounds to the engines that the configuration names
 *
 * The store is the queue: a round that a destination has not acknowledged is sent again, with the
 * same bytes. Processes without rights read the store (stored-rounds.h), and a helper program
 * without rights uses the network, so this program parses neither profiles nor answers.
 */
#pragma once

#include "uprof/catalog.h"
#include "uprof/destination.h"

/** UprofPushSettings: all pointers are borrowed */
typedef struct {
    UprofStore *store;
    const GPtrArray *destinations; /* of UprofDestination */
    const GPtrArray *words;        /* of char: only these domains, by name or UUID; empty: all */
    int64_t since_s;               /* since 1970: older rounds are not sent; 0: all */
    uint64_t spread_ns;            /* waits for a random time of up to this first */
    bool is_of_run;                /* the store has one run, which is sent whatever its age */
    bool are_all;                  /* @destinations are all that are configured */
    const char *metrics_folder;    /* (nullable): as in UprofConfig */
    bool dry_run;                  /* contacts nobody, and notes nothing */
    const UprofNotices *notices;   /* (nullable) */
    /* (nullable): called in a dry run. @text: the destination and the round, safe to print */
    void (*show_round)(const char *text, void *data);
    void *data; /* passed to @show_round */
} UprofPushSettings;

/** UprofPushResult: the profiles of one destination; strings are owned */
typedef struct {
    char *name, *url;
    const char *type; /* a literal */
    unsigned n_sent;
    uint64_t bytes_sent; /* of requests */
    unsigned n_refused;  /* the engine does not take them, or their files are damaged */
    unsigned n_too_old;  /* older than the destination takes */
    unsigned n_left;     /* for the next run */
    char *why_left;      /* (nullable): safe to print */
    char *error;         /* (nullable): why nothing more is sent now; safe to print */
    UprofErrorCode code; /* of @error */
    bool is_of_run;      /* there is no next run */
} UprofPushResult;

/**
 * uprof_push_choose: finds the destinations that the user has named
 * @known: of UprofDestination
 * @targets: of char: names of these, or URLs; empty: all that are known
 *
 * Returns: (transfer full) (nullable): of UprofDestination; %NULL with %UPROF_ERROR_USAGE
 */
GPtrArray *uprof_push_choose(const GPtrArray *known, const GPtrArray *targets, GError **error);

/**
 * uprof_push_rounds: sends to one destination after the other
 *
 * @code: (inout): gets an error if the store cannot be read; a warning is sent, too
 *
 * The program must have one thread, and no connection.
 *
 * Returns: (transfer full): of UprofPushResult, a row for each destination
 */
GArray *uprof_push_rounds(const UprofPushSettings *settings, UprofErrorCode *code);

/**
 * uprof_push_code:
 * @dry_run: ignores rounds that are left
 *
 * Returns: NONE if every round that was to be sent has been sent
 */
UprofErrorCode uprof_push_code(const GArray *results, bool dry_run);

/**
 * uprof_push_describe: Returns: (transfer full): one line, such as "grafana: 20 profiles sent (1.2
 *   MB), 1 refused"
 */
char *uprof_push_describe(const UprofPushResult *result);

/** uprof_push_json: Returns: (transfer full): all results as JSON, with a line break at the end */
GString *uprof_push_json(const GArray *results);
