/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * plan-priv.h - a vCPU's last copy, to be made again
 *
 * Most stacks of a vCPU lie in the pages of the one before. Then where each page is,
 * which entries say so, and the spans to read for both are known as they are: what is
 * left to do in a hold is one read and a comparison. It is as safe as a prediction
 * (predict-priv.h), which it is made of: the entries are read behind the data, and if
 * one says something else, the plan is dropped and the copy made in the long way.
 */
#pragma once

#include "predict-priv.h"

/**
 * UprofPlan:
 * @space: see uprof_x86_space()
 * @first: guest-virtual address of the first page
 * @n_pages: of 4096 bytes; 0: there is no plan
 * @runs: the @n_runs pieces of guest-physical memory that they lie in
 * @spans: the data's, one for each, and behind them the @n_checks of the entries
 * @steps: the @n_steps entries, as they were
 * @bytes: the same, read again
 */
typedef struct {
    uint64_t space;
    uint64_t first;
    unsigned n_pages;
    unsigned n_runs;
    unsigned n_checks;
    unsigned n_steps;
    unsigned entry_bytes;
    struct {
        uint64_t gpa;
        uint64_t len;
    } runs[UPROF_COPY_PAGES_MAX];
    UprofSpan spans[UPROF_COPY_PAGES_MAX + UPROF_PREDICT_SPANS_MAX];
    UprofStep steps[UPROF_PREDICT_SPANS_MAX];
    uint8_t bytes[UPROF_PREDICT_SPANS_MAX * 8];
} UprofPlan;

/**
 * uprof_plan_keep:
 * @predict: behind a copy, all of which was predicted, and before its check
 * @gva, @len: what was copied
 * @spans: the @n that it was copied from, all of it
 *
 * Drops the plan if not all was predicted.
 */
void uprof_plan_keep(UprofPlan *plan, UprofPredict *predict, uint64_t space, uint64_t gva,
                     size_t len, const UprofSpan *spans, unsigned n);

/**
 * uprof_plan_copy:
 * @into: @len bytes, undefined if it fails
 *
 * Returns: whether @len bytes from @gva on were copied as planned; if not, nothing is known
 */
bool uprof_plan_copy(UprofPlan *plan, UprofGuest *guest, UprofLane lane, uint64_t space,
                     uint64_t gva, void *into, size_t len);

/** uprof_plan_drop: there is no plan any more */
void uprof_plan_drop(UprofPlan *plan);
