/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * busy-share.h - how busy a domain was in each step of a run
 *
 * The sampler reports idle ticks late, when the vCPU runs again. So the ticks of a step are
 * computed from its length: all ticks that were due, without missed ones.
 */
#pragma once

#include <stdint.h>

/** UprofBusyShare: all zeros before the first step */
typedef struct {
    uint64_t elapsed_ns, missed; /* of the run until now */
    uint64_t rest_parts;         /* of a tick that was not complete at the end of the last step */
    uint64_t sampled_ns;         /* of the last step: without the time of missed ticks */
    unsigned n_vcpus;            /* that the run samples; not 0 after a step */
    uint64_t ticks, ran; /* of the last step: all but missed ones; of these, with a running vCPU */
} UprofBusyShare;
