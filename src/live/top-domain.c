/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/top-domain.h"

#include "busy-share-priv.h"
#include "top-round-priv.h"

static bool
has_processes(const UprofSession *session)
{
    return g_atomic_pointer_get(uprof_worker_links(session->worker)) != NULL;
}

void
uprof_top_domain_measure(UprofTopDomain *domain, const UprofSession *session, unsigned call,
                         UprofHotRows *rows, unsigned i)
{
    g_autoptr(GByteArray) reply = NULL;
    UprofSamplerCounts counts;
    const uint64_t n_samples =
        uprof_worker_call(session->worker, call, (UprofSlice){ 0 }, &reply, NULL)
            ? uprof_top_round_add(reply, rows, i)
            : 0;

    uprof_sampler_counts(session->sampler, &counts);
    domain->shown = session->shown;
    uprof_busy_share_step(&domain->share, session, n_samples);
    domain->most_held_ns = counts.most_held_ns;
    domain->elapsed_ns = counts.elapsed_ns;
    domain->rate_mhz = session->settings.rate_mhz;
    domain->has_processes = has_processes(session);
    domain->is_ended = counts.end != UPROF_SAMPLER_RUNNING;
}
