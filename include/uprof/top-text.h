/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-text.h - the text that `top` shows: domains, a table, and on a screen the keys
 */
#pragma once

#include "uprof/busy-share.h"
#include "uprof/hot-rows.h"
#include "uprof/output.h"

enum { UPROF_TOP_PATTERN_MAX = 64 }; /* bytes that a row must contain */

/** UprofTopDomain: a domain and its last round */
typedef struct {
    const char *shown; /* the domain's name, clean; borrowed */
    UprofBusyShare share;
    uint64_t most_held_ns; /* of the vCPU that was held longest, since the start ... */
    uint64_t elapsed_ns;   /* ... in this time */
    uint64_t rate_mhz;     /* samples per second of each vCPU that were asked for, in millihertz */
    bool has_processes;    /* the guest is Linux, and its processes are known */
    bool is_ended;
} UprofTopDomain;

/** UprofTopChoice: what the user has chosen to see */
typedef struct {
    UprofRowsBy by;
    bool by_total;  /* sorts functions by total, not by self */
    bool keeps_all; /* rows do not fade */
    bool is_paused; /* the screen stays until a key is pressed; samples are still counted */
    bool shows_help;
    bool reads_pattern;                      /* keys are added to @pattern */
    char pattern[UPROF_TOP_PATTERN_MAX + 1]; /* only rows with this text; in lower case */
} UprofTopChoice;

/** UprofTopView: what is shown; all pointers are borrowed */
typedef struct {
    const UprofTopChoice *choice;
    const UprofHotRows *rows;
    const GArray *domains; /* of UprofTopDomain, by the rows' numbers of domains */
    const GPtrArray
        *said; /* of char: messages; the last ones are shown at the bottom of a screen */
} UprofTopView;

/** uprof_top_text_batch: Returns: (transfer full): a round of `top --batch`; @rows_max: of the
 * table */
GString *uprof_top_text_batch(const UprofTopView *view, unsigned rows_max);

/**
 * uprof_top_text_screen:
 * @lines: of the screen
 * @style: its @rows are the most rows of the table; 0: as many as there is room for
 *
 * Returns: (transfer full): a complete screen with control sequences of ECMA-48; lines without room
 * are left out
 */
GString *
uprof_top_text_screen(const UprofTopView *view, unsigned lines, const UprofTableStyle *style);
