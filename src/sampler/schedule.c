/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/schedule.h"

#include "uprof/clock.h"

enum { JITTER_PARTS = 4 }; /* a tick moves by up to this part of an interval, either way */

void
uprof_schedule_init(UprofSchedule *schedule, uint64_t start_ns, uint64_t rate_mhz, uint64_t seed)
{
    *schedule = (UprofSchedule){
        .start_ns = start_ns,
        .interval_ns = UPROF_NS_PER_S * 1000 / rate_mhz,
        .state = seed | 1, /* xorshift never leaves 0 */
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

uint64_t
uprof_schedule_take(UprofSchedule *schedule, uint64_t now_ns, uint64_t stride, uint64_t *missed)
{
    const uint64_t interval_ns = schedule->interval_ns;
    const uint64_t jitter_ns = interval_ns / JITTER_PARTS;

    *missed = 0;
    /* a tick is missed when even its latest place has passed */
    if (now_ns > schedule->start_ns + schedule->next * interval_ns + jitter_ns) {
        const uint64_t ticks = (now_ns - jitter_ns - schedule->start_ns) / interval_ns + 1;
        *missed = (ticks - schedule->next + stride - 1) / stride;
        schedule->next += *missed * stride;
    }
    const uint64_t middle_ns = schedule->start_ns + schedule->next * interval_ns;
    const uint64_t move_ns = jitter_ns > 0 ? next_random(&schedule->state) % (2 * jitter_ns) : 0;

    schedule->next += stride;
    return middle_ns + move_ns - jitter_ns;
}
