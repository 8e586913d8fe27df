/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-domain.h - a domain of `top`, and the numbers of its last round
 */
#pragma once

#include "uprof/busy-share.h"
#include "uprof/hot-rows.h"
#include "uprof/session.h"

/** UprofTopDomain: a domain and its last round */
typedef struct {
    const char *shown; /* the domain's name, clean; borrowed */
    UprofBusyShare share;
    uint64_t most_held_ns; /* of the vCPU that was held longest, since the start ... */
    uint64_t elapsed_ns;   /* ... in this time */
    uint64_t rate_mhz;     /* samples per second of each vCPU that were asked for, in millihertz */
    bool has_processes;    /* the guest is Linux, and its processes are known */
    bool is_ended;
} UprofTopDomain;

/**
 * uprof_top_domain_measure: asks the worker for the round that ends now
 * @call: of uprof_top_round_make(), in the calls of the run
 * @rows: get the round, unless the worker has failed, which the end of the run says
 * @i: the number of the domain in @rows
 */
void uprof_top_domain_measure(UprofTopDomain *domain, const UprofSession *session, unsigned call,
                              UprofHotRows *rows, unsigned i);
