/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * push-log-priv.h - which rounds a destination has, in a file of the store
 *
 *   STORE/push/grafana.log
 *     - since 1763630100
 *     web-1-20261120T091500Z sent
 *     web-1-20261120T092500Z refused 400 the engine's words
 *     web-1-20261120T093500Z later 503 the engine's words
 *
 * The first line has the time (since 1970) from which on rounds are for this destination. Each
 * answer adds a line, so that a push can be killed at any time: a round without a line is sent
 * again. The last line of a round counts. Lines of deleted rounds are removed when the file has
 * more than 1000 lines beside two for each round.
 */
#pragma once

#include "uprof/store.h"

/** UprofPushState: the state of a round at a destination */
typedef enum {
    UPROF_PUSH_STATE_NEW,      /* no line */
    UPROF_PUSH_STATE_SENT,     /* the engine has it */
    UPROF_PUSH_STATE_REFUSED,  /* the engine does not want it */
    UPROF_PUSH_STATE_TOO_OLD,  /* the engine does not take it any more */
    UPROF_PUSH_STATE_DAMAGED,  /* its files cannot be read */
    UPROF_PUSH_STATE_UNWANTED, /* the destination is not for its domain */
    UPROF_PUSH_STATE_LATER,    /* the engine could not take it yet */
} UprofPushState;

typedef struct _UprofPushLog UprofPushLog;

/**
 * uprof_push_log_open: reads the file of a destination
 * @name: of the destination: letters, digits, '_', '.' and '-'
 * @may_create: the store gets the folder; without it, nothing is written
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_FAILED, or with %UPROF_ERROR_LOCKED
 *   if another process has the folder's lock, which this one keeps until uprof_push_log_close()
 */
UprofPushLog *
uprof_push_log_open(UprofStore *store, const char *name, bool may_create, GError **error);
void uprof_push_log_close(UprofPushLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofPushLog, uprof_push_log_close)

/**
 * uprof_push_log_begin: returns the time from which on rounds are for the destination
 * @since_s: since 1970: the time, if the file has none yet
 */
int64_t uprof_push_log_begin(UprofPushLog *log, int64_t since_s, GError **error);

/**
 * uprof_push_log_state:
 * @n_later: (out) (nullable): how many runs of push have put the round off
 */
UprofPushState uprof_push_log_state(const UprofPushLog *log, const char *stem, unsigned *n_later);

/**
 * uprof_push_log_add: adds a line
 * @stem: of the store
 * @words: (nullable): why; any text
 *
 * Returns: false with %UPROF_ERROR_FAILED; the state is kept in memory in any case
 */
bool uprof_push_log_add(UprofPushLog *log, const char *stem, UprofPushState state,
                        const char *words, GError **error);

/**
 * uprof_push_log_shrink: drops the lines of rounds that the store does not have, if they are many
 * @stems: (element-type utf8): a set of all rounds of the store
 */
bool uprof_push_log_shrink(UprofPushLog *log, GHashTable *stems, GError **error);
