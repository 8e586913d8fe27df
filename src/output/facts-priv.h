/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * facts-priv.h - what is known of a run, as short texts for the head of a picture
 */
#pragma once

#include "uprof/run.h"

/** UprofFact: @label: a literal; @value: owned, clean text */
typedef struct {
    const char *label;
    char *value;
} UprofFact;

/**
 * uprof_facts_new:
 * @run: of which members that are 0 or %NULL are not known, and not told
 *
 * Returns: (transfer full): of UprofFact
 */
GArray *uprof_facts_new(const UprofRun *run);

/** uprof_facts_of_side: the same in one line: of one side of a comparison */
char *uprof_facts_of_side(const UprofRun *run);

/** uprof_facts_percent: Returns: (transfer full): "97.1 %" of @part in @whole */
char *uprof_facts_percent(uint64_t part, uint64_t whole);
