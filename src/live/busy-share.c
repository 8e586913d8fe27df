/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "busy-share-priv.h"

#include "uprof/clock.h"

#define PARTS_PER_TICK (1000 * UPROF_NS_PER_S) /* a rate is in millihertz */

static unsigned
count_vcpus(const UprofSession *session)
{
    unsigned n = 0;

    for (uint64_t i = 0; i < session->run->vcpus; i++)
        n += session->wanted[i];
    return MAX(n, 1);
}

void
uprof_busy_share_add(UprofBusyShare *share, const UprofBusyCounts *counts)
{
    const uint64_t each = counts->is_whole ? counts->n_vcpus : 1;
    const uint64_t missed =
        counts->missed > share->missed ? (counts->missed - share->missed) * each : 0;
    const uint64_t step_ns =
        counts->elapsed_ns > share->elapsed_ns ? counts->elapsed_ns - share->elapsed_ns : 0;
    /* in parts of a tick: at a low rate a step has less than one */
    const unsigned __int128 due_parts =
        (unsigned __int128)step_ns * counts->rate_mhz * counts->n_vcpus + share->rest_parts;
    const uint64_t due = (uint64_t)(due_parts / PARTS_PER_TICK);

    share->rest_parts = (uint64_t)(due_parts % PARTS_PER_TICK);
    share->n_vcpus = counts->n_vcpus;
    share->ran = counts->ran;
    share->ticks = MAX(due > missed ? due - missed : 0, counts->ran);
    share->missed = counts->missed;
    share->elapsed_ns = counts->elapsed_ns;
    share->sampled_ns =
        due > 0 ? (uint64_t)((unsigned __int128)step_ns * MIN(share->ticks, due) / due) : step_ns;
}

void
uprof_busy_share_step(UprofBusyShare *share, const UprofSession *session, uint64_t ran)
{
    const uint64_t before = MAX(session->counts_before.divisor, 1);
    UprofSamplerCounts counts;

    uprof_sampler_counts(session->sampler, &counts);
    const UprofBusyCounts busy = {
        .elapsed_ns = counts.elapsed_ns,
        .missed = counts.late + counts.busy + counts.skipped + counts.stuck,
        .rate_mhz = session->run->rate_mhz / MAX(counts.divisor * before, 1),
        .n_vcpus = count_vcpus(session),
        .is_whole = session->guest->grain != UPROF_GRAIN_VCPU,
        .ran = ran,
    };
    uprof_busy_share_add(share, &busy);
}
