/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * facts-priv.h - the facts of a run as short texts, for the head of a picture
 */
#pragma once

#include "uprof/run-facts.h"

/** UprofFact: a fact and its value */
typedef struct {
    const char *label; /* a literal */
    char *value;       /* owned: clean text */
} UprofFact;

/**
 * uprof_facts_new:
 * @run: members that are 0 or %NULL are unknown and omitted
 *
 * Returns: (transfer full) (element-type UprofFact): the known facts
 */
GArray *uprof_facts_new(const UprofRun *run);

/** uprof_facts_of_side: Returns: (transfer full): facts of one side of a comparison, in one line */
char *uprof_facts_of_side(const UprofRun *run);

/** uprof_facts_percent: Returns: (transfer full): @part of @whole, such as "97.1 %" */
char *uprof_facts_percent(uint64_t part, uint64_t whole);
