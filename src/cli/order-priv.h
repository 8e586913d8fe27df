/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * order-priv.h - which domains a round takes, and in which order
 *
 * There is no state but the store: a domain's last turn is when its newest profile
 * began, or when it failed to give one. A round that runs out of time is made up for
 * by the next, also if it was a domain that fails which took the time.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * UprofCandidate: a domain that a round may take
 * @name: any bytes but newline
 * @uri: of its connection; (nullable): libvirt's own
 * @last_s: when it had its last turn, since 1970; 0: never
 * @duration_ns: how long it is to be sampled
 * @obstacle: (nullable): why it is not taken
 * @is_fault: the obstacle is somebody's mistake
 */
typedef struct {
    char *name;
    char *uuid;
    char *uri;
    int64_t last_s;
    uint64_t duration_ns;
    char *obstacle;
    bool is_fault;
    guint32 lot; /* drawn in uprof_order_sort() */
} UprofCandidate;

void uprof_candidate_free(UprofCandidate *candidate);

/**
 * uprof_order_sort: whose last turn is longest ago first, what is equal at random
 * @candidates: of UprofCandidate *
 * @now_s: since 1970. What began later, by a clock that has been set back, counts as never.
 */
void uprof_order_sort(GPtrArray *candidates, int64_t now_s, GRand *random);

/** uprof_order_draws: Returns: true in @chance_ppm of a million cases */
bool uprof_order_draws(uint64_t chance_ppm, GRand *random);

/**
 * uprof_order_has_time:
 * @gone_ns: since the round began
 * @is_first: of the round, which is taken in any case
 *
 * Returns: whether a domain that takes @duration_ns is done before the round is
 *   @longest_ns old
 */
bool
uprof_order_has_time(uint64_t gone_ns, uint64_t duration_ns, uint64_t longest_ns, bool is_first);
