/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * timeline-priv.h - the samples of a picture in the order of time
 *
 * Time is divided into cells of equal length. A column of the heat map has the cells of a second
 * or, in long runs, of several seconds. Each cell has the number of its samples, and the stacks of
 * its running samples. If the stacks need too many bytes, several cells share one list of stacks.
 */
#pragma once

#include "picture-priv.h"
#include "uprof/calendar.h"

enum {
    UPROF_TIMELINE_ROWS = 20, /* cells of a column of a run */
    UPROF_TIMELINE_COLUMNS_MAX = 300,
    UPROF_TIMELINE_BYTES = 300 * 1000,       /* of all lists of stacks of a run */
    UPROF_TIMELINE_DAYS_BYTES = 1000 * 1000, /* the same for a calendar */
};

/** UprofTimeCell: counted samples */
typedef struct {
    uint64_t samples; /* of all vCPUs */
    uint64_t running; /* of these, samples of running vCPUs */
} UprofTimeCell;

/** UprofTimeline: cells from the first sample on */
typedef struct {
    GArray *cells;    /* (element-type UprofTimeCell): owned; complete columns */
    uint64_t cell_ns; /* length of a cell */
    unsigned n_columns;
    unsigned n_rows;               /* cells of a column */
    const UprofCalendar *calendar; /* (nullable): borrowed: cells are its slots, columns its days */
    unsigned n_shared;             /* cells that share a list of stacks */
    uint64_t n_untimed;            /* samples without a time */
    GString *lists;                /* owned: see uprof_timeline_new() */
} UprofTimeline;

/**
 * uprof_timeline_new:
 * @picture: of @profile
 *
 * A line of @lists has the stacks of one or several cells. Each stack has a number: twice the
 * index of its last frame in the picture, plus 1 if further frames of the stack are not in the
 * picture. A line has the differences of ascending numbers, each doubled, plus 1 if a weight other
 * than 1 follows (digits-priv.h).
 *
 * Returns: (transfer full) (nullable): %NULL if the profile has no times
 */
UprofTimeline *
uprof_timeline_new(const UprofProfile *profile, const UprofRun *run, const UprofPicture *picture);

/** uprof_timeline_new_of_days: @picture: of the profile of @calendar. Returns: (transfer full) */
UprofTimeline *
uprof_timeline_new_of_days(const UprofCalendar *calendar, const UprofPicture *picture);
void uprof_timeline_free(UprofTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofTimeline, uprof_timeline_free)
