/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/busy-share.h"

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
uprof_busy_share_step(UprofBusyShare *share, const UprofSession *session, uint64_t ran)
{
    UprofSamplerCounts counts;

    uprof_sampler_counts(session->sampler, &counts);
    const uint64_t n_vcpus = count_vcpus(session);
    /* if the guest is held as a whole, a missed tick is one of all vCPUs */
    const uint64_t each = session->guest->grain == UPROF_GRAIN_VCPU ? 1 : n_vcpus;
    const uint64_t missed = counts.late + counts.busy + counts.skipped + counts.stuck;
    const uint64_t new_missed = missed > share->missed ? (missed - share->missed) * each : 0;
    const uint64_t new_ns =
        counts.elapsed_ns > share->elapsed_ns ? counts.elapsed_ns - share->elapsed_ns : 0;
    const uint64_t divisor = counts.divisor * MAX(session->counts_before.divisor, 1);
    const uint64_t rate_mhz = session->run->rate_mhz / MAX(divisor, 1);
    /* in parts of a tick: at a low rate a step has less than one */
    const unsigned __int128 due_parts =
        (unsigned __int128)new_ns * rate_mhz * n_vcpus + share->rest_parts;
    const uint64_t due = (uint64_t)(due_parts / PARTS_PER_TICK);

    share->rest_parts = (uint64_t)(due_parts % PARTS_PER_TICK);
    share->n_vcpus = (unsigned)n_vcpus;
    share->ran = ran;
    share->ticks = MAX(due > new_missed ? due - new_missed : 0, ran);
    share->missed = missed;
    share->elapsed_ns = counts.elapsed_ns;
    share->sampled_ns =
        due > 0 ? (uint64_t)((unsigned __int128)new_ns * MIN(share->ticks, due) / due) : new_ns;
}
