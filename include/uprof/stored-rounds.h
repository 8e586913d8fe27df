/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * stored-rounds.h - reads the profiles of single rounds, one after the other, in processes without
 * rights
 */
#pragma once

#include "uprof/catalog.h"

/** UprofStoredRound: one round; strings are borrowed from the list */
typedef struct {
    const char *stem;   /* its name without an ending; no other round of the store has it */
    const char *folder; /* that has its files */
    int64_t start_s;    /* since 1970 */
} UprofStoredRound;

/**
 * uprof_stored_rounds_folder_name: Returns: (transfer full) (nullable): the name of the domain, by
 *   the name of its folder; %NULL if that is cut
 */
char *uprof_stored_rounds_folder_name(const UprofStoredRound *round);

/**
 * uprof_stored_rounds_name:
 * @run: the facts of @round
 *
 * Returns: (transfer full): the exact name of the domain, any bytes; facts have "?" for characters
 *   that cannot be printed. The name in the facts if the folder's name is cut.
 */
char *uprof_stored_rounds_name(const UprofStoredRound *round, const UprofRun *run);

/** UprofRoundState: the result of reading a round */
typedef enum {
    UPROF_ROUND_READ,
    UPROF_ROUND_UNWANTED,
    UPROF_ROUND_GONE, /* it was deleted meanwhile */
    UPROF_ROUND_DAMAGED,
    UPROF_ROUND_FAILED, /* it can be read later, perhaps */
} UprofRoundState;

/**
 * UprofRoundWork: what to do with each round; all pointers are borrowed
 *
 * The functions run in a process, which sees the data as it was at the start.
 */
typedef struct {
    /* Is the round wanted? @run: its facts. The stacks of other rounds are not read. */
    bool (*wants)(const UprofStoredRound *round, const UprofRun *run, void *data);
    /* @content: (inout): empty; gets the reply to the program */
    void (*use)(const UprofStoredRound *round, const UprofProfile *profile, UprofRun *run,
                GByteArray *content, void *data);
    void *data; /* passed to both */
} UprofRoundWork;

typedef struct _UprofStoredRounds UprofStoredRounds;

/**
 * uprof_stored_rounds_new: lists the rounds of the store as it is now, the oldest first
 * @catalog: borrowed; outlives the list
 */
UprofStoredRounds *uprof_stored_rounds_new(const UprofCatalog *catalog);
void uprof_stored_rounds_free(UprofStoredRounds *rounds);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofStoredRounds, uprof_stored_rounds_free)

/** uprof_stored_rounds_list: Returns: (transfer none): of UprofStoredRound */
const GArray *uprof_stored_rounds_list(const UprofStoredRounds *rounds);

/**
 * uprof_stored_rounds_start: starts the process that makes a process for each round
 * @work: borrowed until the next call, or until the list is freed
 *
 * The program must have one thread, and no connection. A process of an earlier call ends.
 */
bool
uprof_stored_rounds_start(UprofStoredRounds *rounds, const UprofRoundWork *work, GError **error);

/**
 * uprof_stored_rounds_read:
 * @i: index in the list
 * @content: (inout): gets what the work has replied, with any bytes
 * @error: why the round cannot be read
 */
UprofRoundState
uprof_stored_rounds_read(UprofStoredRounds *rounds, guint i, GByteArray *content, GError **error);
