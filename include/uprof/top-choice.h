/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-choice.h - what the user of `top` has chosen to see, and the keys that change it
 */
#pragma once

#include "uprof/processes.h"

enum { UPROF_TOP_PATTERN_MAX = 64 }; /* bytes that a row must contain */

/** UprofTopChoice: what the user has chosen to see */
typedef struct {
    UprofRowsBy by;
    bool by_total;    /* sorts functions by total, not by self */
    bool keeps_all;   /* rows do not fade */
    bool is_paused;   /* the screen stays until a key is pressed; samples are still counted */
    bool has_cgroups; /* there are rows of cgroups to choose */
    bool shows_help;
    bool reads_pattern;                      /* keys are added to @pattern */
    char pattern[UPROF_TOP_PATTERN_MAX + 1]; /* only rows with this text; in lower case */
} UprofTopChoice;

/**
 * uprof_top_choice_take_key: changes the choice by one key
 *
 * Returns: true if the caller must clear the table
 */
bool uprof_top_choice_take_key(UprofTopChoice *choice, char key);
