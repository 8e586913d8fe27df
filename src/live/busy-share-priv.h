/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * busy-share-priv.h - the numbers that a share of busy time is computed from
 */
#pragma once

#include "uprof/busy-share.h"
#include "uprof/session.h"

/** UprofBusyCounts: of a run until now, but @ran */
typedef struct {
    uint64_t elapsed_ns;
    uint64_t missed;   /* ticks; of all vCPUs at once if @is_whole */
    uint64_t rate_mhz; /* ticks of each vCPU */
    unsigned n_vcpus;  /* not 0 */
    bool is_whole;     /* the guest is held as a whole */
    uint64_t ran;      /* of the last step: the weight of samples of running vCPUs */
} UprofBusyCounts;

/** uprof_busy_share_add: ends a step with these numbers */
void uprof_busy_share_add(UprofBusyShare *share, const UprofBusyCounts *counts);

/** uprof_busy_share_step: ends a step; @ran: samples of running vCPUs in it */
void uprof_busy_share_step(UprofBusyShare *share, const UprofSession *session, uint64_t ran);
