/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-text.h - the text that `top` shows: domains, a table, and on a screen the keys
 */
#pragma once

#include "uprof/hot-rows.h"
#include "uprof/output.h"
#include "uprof/top-choice.h"
#include "uprof/top-domain.h"

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
