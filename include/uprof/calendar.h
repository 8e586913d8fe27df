/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calendar.h - samples of many days by the hour of the day, for a picture
 *
 * A slot is an hour of a day in local time. If the clocks go back, the hour that comes twice is one
 * slot; if they go forward, a slot is empty. Call tzset() before the process loses its rights.
 */
#pragma once

#include "uprof/profile.h"

enum {
    UPROF_CALENDAR_HOURS = 24, /* slots of a day */
    UPROF_CALENDAR_DAYS_MAX = 366,
};

/** UprofSlot: what is known of an hour */
typedef struct {
    uint64_t samples;         /* of all vCPUs */
    uint64_t running;         /* of these, samples of running vCPUs */
    const UprofName *hottest; /* (nullable): borrowed: most samples of its own */
    uint64_t hottest_self;    /* these samples */
    uint32_t n_failed;        /* rounds without a profile */
    bool is_joined;           /* only the sum of this slot and the slot before is known */
} UprofSlot;

/** UprofCalendar: slots, and the stacks of all of them */
typedef struct {
    GPtrArray *days;       /* of char, owned: "2026-11-20", one after the other */
    GArray *slots;         /* of UprofSlot, owned: %UPROF_CALENDAR_HOURS of each day */
    UprofProfile *profile; /* owned: the time of a stack is its slot, UprofTick.time_ns */
    UprofRun *run;         /* owned: the caller fills in the facts */
    uint32_t first_day;    /* as GDate counts */
} UprofCalendar;

/**
 * uprof_calendar_new: makes empty slots
 * @names: borrowed; outlives the calendar
 * @domain: becomes the root of all stacks
 * @first_s, @last_s: since 1970: times of the first and of the last day; of more than
 *   %UPROF_CALENDAR_DAYS_MAX days, the last ones count
 */
UprofCalendar *
uprof_calendar_new(UprofNames *names, const char *domain, int64_t first_s, int64_t last_s);
void uprof_calendar_free(UprofCalendar *calendar);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCalendar, uprof_calendar_free)

/** uprof_calendar_find: Returns: index of the slot of @at_s; -1 if the calendar has no such day */
int uprof_calendar_find(const UprofCalendar *calendar, int64_t at_s);

/**
 * uprof_calendar_add: adds samples
 * @first, @last: slots among which the samples are divided; more than one are joined
 * @stacks: with names of the same table; its root does not count
 */
void uprof_calendar_add(UprofCalendar *calendar, unsigned first, unsigned last,
                        const UprofProfile *stacks, uint64_t samples, uint64_t running);

/** uprof_calendar_fail: counts a round without a profile; a time outside of the days is ignored */
void uprof_calendar_fail(UprofCalendar *calendar, int64_t at_s);
