/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * history-rows.h - what the store has of each domain: its days and its rounds
 */
#pragma once

#include "uprof/catalog.h"

/** UprofHistoryRow: a day or a round of a domain. Strings are owned. */
typedef struct {
    char *name;      /* of the domain, safe to print */
    char *uuid;      /* (nullable): %NULL if only failures are known */
    int64_t start_s; /* since 1970; of a day its 00:00 UTC */
    bool is_day;     /* a day, not a round */
    unsigned n_rounds, n_failed;
    uint64_t duration_ns;
    uint64_t samples, running; /* of all rounds */
    /* of running vCPUs; a sample weighs as many ticks as it stands for, so that this is more than
     * @running if the rate was lowered */
    uint64_t weight;
    char *hottest;         /* (nullable): the function with the most weight of its own */
    uint64_t hottest_self; /* the part of @weight that is its own */
    uint64_t bytes;        /* on the disk */
    char *failure;         /* (nullable): why a round made no profile; safe to print */
} UprofHistoryRow;

/** UprofHistoryQuery: which rows; all pointers are borrowed */
typedef struct {
    const UprofCatalog *catalog;
    const char *domain; /* (nullable): name or UUID; %NULL: all domains */
    int64_t since_s;    /* since 1970 */
    int64_t until_s;    /* since 1970; rows that begin before */
    const UprofNotices *notices;
} UprofHistoryQuery;

/**
 * uprof_history_days: lists the days, the oldest first, and the domains of each by name
 * @code: (inout): gets an error if a profile is damaged, or if there is no such domain
 *
 * Sends a warning for each error.
 *
 * Returns: (transfer full): of UprofHistoryRow
 */
GPtrArray *uprof_history_days(const UprofHistoryQuery *query, UprofErrorCode *code);

/**
 * uprof_history_rounds: the same for the rounds that are still stored on their own, and for those
 *   that made no profile
 */
GPtrArray *uprof_history_rounds(const UprofHistoryQuery *query, UprofErrorCode *code);
