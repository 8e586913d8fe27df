/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * turn-order-priv.h - the choice and the order of the domains in a round
 *
 * A round sorts domains by their last turn, the oldest first. The store shows the last turn: the
 * start of the newest profile, or the last failure, whichever is later. So the next round begins
 * with the domains for which this round had no time, even if a domain that always fails takes most
 * of the time.
 */
#pragma once

#include "uprof/round.h"

void uprof_candidate_free(UprofCandidate *candidate);

/**
 * uprof_order_sort: sorts by last turn, the oldest first, and equal ones at random
 * @candidates: of UprofCandidate *
 * @now_s: since 1970; a last turn after this counts as none, because the clock was set back
 */
void uprof_order_sort(GPtrArray *candidates, int64_t now_s, GRand *random);

/** uprof_order_is_selected: Returns: true with a chance of @chance_ppm in a million */
bool uprof_order_is_selected(uint64_t chance_ppm, GRand *random);

/**
 * uprof_order_has_time:
 * @gone_ns: age of the round
 * @longest_ns: maximum age of the round
 * @is_first: the first domain of a round always has time
 *
 * A domain has time if it ends within @longest_ns.
 */
bool
uprof_order_has_time(uint64_t gone_ns, uint64_t duration_ns, uint64_t longest_ns, bool is_first);
