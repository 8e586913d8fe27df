/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "turn-order-priv.h"

#include "uprof/sorted.h"

void
uprof_candidate_free(UprofCandidate *candidate)
{
    if (!candidate)
        return;
    g_free(candidate->name);
    g_free(candidate->uuid);
    g_free(candidate->uri);
    g_free(candidate->obstacle);
    g_free(candidate);
}

static int
compare_turns(gconstpointer a, gconstpointer b)
{
    const UprofCandidate *one = *(UprofCandidate *const *)a;
    const UprofCandidate *other = *(UprofCandidate *const *)b;

    if (one->last_s != other->last_s)
        return UPROF_COMPARE(one->last_s, other->last_s);
    return UPROF_COMPARE(one->tie_breaker, other->tie_breaker);
}

void
uprof_order_sort(GPtrArray *candidates, int64_t now_s, GRand *random)
{
    for (guint i = 0; i < candidates->len; i++) {
        UprofCandidate *candidate = g_ptr_array_index(candidates, i);
        candidate->tie_breaker = g_rand_int(random);
        if (candidate->last_s > now_s)
            candidate->last_s = 0;
    }
    g_ptr_array_sort(candidates, compare_turns);
}

bool
uprof_order_is_selected(uint64_t chance_ppm, GRand *random)
{
    return (uint64_t)g_rand_int_range(random, 0, 1000 * 1000) < chance_ppm;
}

bool
uprof_order_has_time(uint64_t gone_ns, uint64_t duration_ns, uint64_t longest_ns, bool is_first)
{
    return is_first || (gone_ns < longest_ns && duration_ns <= longest_ns - gone_ns);
}
