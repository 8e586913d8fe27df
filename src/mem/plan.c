/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "plan-priv.h"

#include <string.h>

static unsigned
count_pages(uint64_t gva, size_t len)
{
    return (unsigned)((gva % UPROF_PAGE_BYTES + len + UPROF_PAGE_BYTES - 1) / UPROF_PAGE_BYTES);
}

void
uprof_plan_drop(UprofPlan *plan)
{
    plan->n_pages = 0;
}

/* The entries to check, and the spans to read them by, behind room for the data's. */
static void
keep_checks(UprofPlan *plan, UprofPredict *predict)
{
    UprofSpan *spans = plan->spans + plan->n_runs;
    const UprofStep *steps = uprof_predict_steps(predict, &plan->n_steps, &plan->entry_bytes);
    size_t at = 0;

    memcpy(plan->steps, steps, plan->n_steps * sizeof(steps[0]));
    plan->n_checks = uprof_predict_spans(predict, spans);
    for (unsigned i = 0; i < plan->n_checks; i++) {
        spans[i].into = plan->bytes + at;
        at += spans[i].len;
    }
    g_assert(at == (size_t)plan->n_steps * plan->entry_bytes);
}

void
uprof_plan_keep(UprofPlan *plan, UprofPredict *predict, uint64_t space, uint64_t gva, size_t len,
                const UprofSpan *spans, unsigned n)
{
    const unsigned n_pages = count_pages(gva, len);
    uint64_t kept = 0;

    uprof_plan_drop(plan);
    if (len == 0 || n_pages > UPROF_COPY_PAGES_MAX || n > n_pages || !uprof_predict_is_all(predict))
        return;
    for (unsigned i = 0; i < n; i++) {
        const uint64_t gpa = spans[i].gpa - spans[i].gpa % UPROF_PAGE_BYTES;
        if (spans[i].missing)
            return;
        plan->runs[i].gpa = gpa;
        plan->runs[i].len = (uint64_t)count_pages(spans[i].gpa, spans[i].len) * UPROF_PAGE_BYTES;
        kept += plan->runs[i].len;
    }
    if (kept != (uint64_t)n_pages * UPROF_PAGE_BYTES)
        return;
    plan->n_runs = n;
    plan->space = space;
    plan->first = gva - gva % UPROF_PAGE_BYTES;
    plan->n_pages = n_pages;
    keep_checks(plan, predict);
}

static void
aim(UprofPlan *plan, uint64_t gva, uint8_t *into, size_t len)
{
    uint64_t offset = gva % UPROF_PAGE_BYTES;

    for (unsigned i = 0; i < plan->n_runs; i++) {
        const size_t part = MIN((size_t)(plan->runs[i].len - offset), len);
        plan->spans[i] = (UprofSpan){
            .gpa = plan->runs[i].gpa + offset,
            .into = into,
            .len = (uint32_t)part,
        };
        into += part;
        len -= part;
        offset = 0;
    }
}

/* Whether all was read, and every entry says what it said. */
static bool
holds_true(const UprofPlan *plan)
{
    for (unsigned i = 0; i < plan->n_runs + plan->n_checks; i++)
        if (plan->spans[i].missing)
            return false;
    for (unsigned i = 0; i < plan->n_steps; i++)
        if (!uprof_predict_is_same(&plan->steps[i], plan->bytes + (size_t)i * plan->entry_bytes,
                                   plan->entry_bytes))
            return false;
    return true;
}

bool
uprof_plan_copy(UprofPlan *plan, UprofGuest *guest, UprofLane lane, uint64_t space, uint64_t gva,
                void *into, size_t len)
{
    if (plan->n_pages == 0 || plan->space != space || plan->first != gva - gva % UPROF_PAGE_BYTES ||
        plan->n_pages != count_pages(gva, len))
        return false;
    aim(plan, gva, into, len);
    uprof_guest_read(guest, lane, plan->spans, plan->n_runs + plan->n_checks);
    if (holds_true(plan))
        return true;
    uprof_plan_drop(plan);
    return false;
}
