/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * predict-priv.h - page-table walks, remembered from one copy to the next
 *
 * A stack lies today where it lay a moment ago. So a copy reads its data from
 * where earlier walks led, and in the same read, behind the data, the entries
 * that these walks went by. If they say what they said, the data is right; if
 * not, the copy is done once more by walks of its own. Nothing is believed
 * that was not read again, so nothing has to be told when a guest changes its
 * tables, is reset, or lies.
 *
 * Knows neither guests nor what entries mean. Of fixed size, and allocates
 * nothing but itself.
 */
#pragma once

#include "mem-priv.h"

enum { UPROF_PREDICT_SPANS_MAX = UPROF_COPY_PAGES_MAX * UPROF_WALK_STEPS_MAX };

typedef struct _UprofPredict UprofPredict;

/** uprof_predict_new: end it with uprof_predict_free() */
UprofPredict *uprof_predict_new(void);
void uprof_predict_free(UprofPredict *predict);

/** uprof_predict_forget: drops all walks */
void uprof_predict_forget(UprofPredict *predict);

/** uprof_predict_begin: begins a copy: from here on nothing is used, and nothing walked */
void uprof_predict_begin(UprofPredict *predict);

/**
 * uprof_predict_find:
 * @space: see uprof_x86_space()
 * @gva: an address in the page
 * @walk: (out): untouched if there is none
 *
 * Asked at most %UPROF_COPY_PAGES_MAX times before the next
 * uprof_predict_check(). A walk of an earlier copy has then to be checked.
 *
 * Returns: whether the page's walk is remembered
 */
bool uprof_predict_find(UprofPredict *predict, uint64_t space, uint64_t gva, UprofWalk *walk);

/** uprof_predict_keep: @walk: just walked; a copy of it takes the place of an older one */
void uprof_predict_keep(UprofPredict *predict, uint64_t space, uint64_t gva, const UprofWalk *walk);

/**
 * uprof_predict_spans:
 * @spans: (out): room for %UPROF_PREDICT_SPANS_MAX
 *
 * What to read behind the data: each entry that has to be checked, once;
 * neighbors in a table are one span.
 *
 * Returns: how many spans
 */
unsigned uprof_predict_spans(UprofPredict *predict, UprofSpan *spans);

/**
 * uprof_predict_steps: Returns: the @n entries that uprof_predict_spans() is about, of
 *   @entry_bytes each, in the same order; (transfer none), good until the next copy begins
 */
const UprofStep *
uprof_predict_steps(const UprofPredict *predict, unsigned *n, unsigned *entry_bytes);

/** uprof_predict_is_all: Returns: whether this copy has walked nothing itself */
bool uprof_predict_is_all(const UprofPredict *predict);

/** uprof_predict_is_same: Returns: whether the entry in @bytes says what @step says */
bool uprof_predict_is_same(const UprofStep *step, const uint8_t *bytes, unsigned entry_bytes);

/**
 * uprof_predict_check:
 * @spans: as uprof_predict_spans() left them, and read
 *
 * Returns: whether every entry says what it said. If not, the walks are
 *   dropped, and until the next copy begins only its own are found: what is
 *   done again then needs no check.
 */
bool uprof_predict_check(UprofPredict *predict, const UprofSpan *spans, unsigned n);
