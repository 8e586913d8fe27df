/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "budget-priv.h"

#include <glib.h>

enum {
    PPM = 1000 * 1000,
    PERIOD_HOLDS = 16, /* between reviews */
    FORGET_PARTS = 4,  /* a review takes a quarter off the weight of all earlier holds */
};

uint64_t
uprof_budget_divide(uint64_t hold_ns, uint64_t interval_ns, uint64_t share_ppm)
{
    const uint64_t wanted_ppm = hold_ns * PPM / interval_ns;

    return MAX((wanted_ppm + share_ppm - 1) / share_ppm, 1);
}

void
uprof_budget_set_stride(UprofBudget *budget, uint64_t stride)
{
    budget->stride = CLAMP(stride, 1, (uint64_t)G_MAXUINT16);
}

/* Half the stride doubles the share. So the stride is halved only below half the budget. */
static uint64_t
fit_stride(const UprofBudget *budget, uint64_t held_ppm)
{
    if (held_ppm > budget->share_ppm)
        return (budget->stride * held_ppm + budget->share_ppm - 1) / budget->share_ppm;
    if (budget->stride > 1 && held_ppm * 2 < budget->share_ppm)
        return budget->stride / 2;
    return budget->stride;
}

uint64_t
uprof_budget_review(UprofBudget *budget, uint64_t held_ns, uint64_t now_ns)
{
    budget->held_ns += held_ns;
    if (++budget->n_holds < PERIOD_HOLDS)
        return budget->stride;
    budget->elapsed_ns += MAX(now_ns - budget->period_ns, 1);
    uprof_budget_set_stride(budget, fit_stride(budget, budget->held_ns * PPM / budget->elapsed_ns));
    budget->period_ns = now_ns;
    budget->held_ns -= budget->held_ns / FORGET_PARTS;
    budget->elapsed_ns -= budget->elapsed_ns / FORGET_PARTS;
    budget->n_holds = 0;
    return budget->stride;
}
