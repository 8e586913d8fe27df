/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "schedule-priv.h"

#include "uprof/clock.h"

void
uprof_schedule_init(UprofSchedule *schedule, uint64_t start_ns, uint64_t rate_mhz, uint64_t seed)
{
    *schedule = (UprofSchedule){
        .start_ns = start_ns,
        .interval_ns = UPROF_NS_PER_S * 1000 / rate_mhz,
        /* "| 1": xorshift never leaves 0. The product keeps neighboring seeds different. */
        .random_state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
    };
}

/* xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators") */
static uint64_t
next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/*
 * A tick may be anywhere in its stride. With a smaller range, work that the guest repeats at
 * the rate of sampling would be sampled in some of its phases only.
 */
uint64_t
uprof_schedule_take(UprofSchedule *schedule, uint64_t now_ns, uint64_t stride, uint64_t *missed)
{
    const uint64_t interval_ns = schedule->interval_ns;
    const uint64_t span_ns = stride * interval_ns;
    const uint64_t grid_ns = schedule->start_ns + schedule->next * interval_ns;
    uint64_t from_ns = grid_ns - MIN(interval_ns / 2, grid_ns);

    *missed = now_ns > from_ns ? (now_ns - from_ns) / span_ns : 0;
    from_ns += *missed * span_ns;
    schedule->next += (*missed + 1) * stride;
    return from_ns + next_random(&schedule->random_state) % span_ns;
}
