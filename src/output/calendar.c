/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/calendar.h"

#include "uprof/clock.h"

#include <string.h>
#include <time.h>

/* Returns: the local day as GDate counts; 0 for a time that no calendar has */
static uint32_t
find_day(int64_t at_s, unsigned *hour)
{
    const time_t at = at_s;
    struct tm local;

    if (!localtime_r(&at, &local) || local.tm_year < 0 || local.tm_year > 8000)
        return 0;
    *hour = (unsigned)local.tm_hour;
    GDate date;
    g_date_clear(&date, 1);
    g_date_set_dmy(&date, (GDateDay)local.tm_mday, (GDateMonth)(local.tm_mon + 1),
                   (GDateYear)(local.tm_year + 1900));
    return g_date_get_julian(&date);
}

static char *
format_day(uint32_t day)
{
    GDate date;
    char text[32];

    g_date_clear(&date, 1);
    g_date_set_julian(&date, day);
    g_date_strftime(text, sizeof(text), "%Y-%m-%d", &date);
    return g_strdup(text);
}

UprofCalendar *
uprof_calendar_new(UprofNames *names, const char *domain, int64_t first_s, int64_t last_s)
{
    UprofCalendar *calendar = g_new0(UprofCalendar, 1);
    unsigned hour;
    const uint32_t last = MAX(find_day(last_s, &hour), 1);
    const uint32_t first = CLAMP(find_day(first_s, &hour), 1, last);
    const uint32_t n = MIN(last - first + 1, UPROF_CALENDAR_DAYS_MAX);

    calendar->first_day = last + 1 - n;
    calendar->days = g_ptr_array_new_with_free_func(g_free);
    for (uint32_t i = 0; i < n; i++)
        g_ptr_array_add(calendar->days, format_day(calendar->first_day + i));
    calendar->slots = g_array_new(FALSE, TRUE, sizeof(UprofSlot));
    g_array_set_size(calendar->slots, n * UPROF_CALENDAR_HOURS);
    calendar->profile = uprof_profile_new(
        names, uprof_names_intern(names, (UprofSlice){ domain, strlen(domain) }), true);
    uprof_profile_keep_times(calendar->profile);
    calendar->run = uprof_run_new();
    return calendar;
}

void
uprof_calendar_free(UprofCalendar *calendar)
{
    if (!calendar)
        return;
    g_ptr_array_unref(calendar->days);
    g_array_unref(calendar->slots);
    uprof_profile_free(calendar->profile);
    uprof_run_free(calendar->run);
    g_free(calendar);
}

int
uprof_calendar_find(const UprofCalendar *calendar, int64_t at_s)
{
    unsigned hour = 0;
    const uint32_t day = find_day(at_s, &hour);

    if (day < calendar->first_day || day >= calendar->first_day + calendar->days->len)
        return -1;
    return (int)((day - calendar->first_day) * UPROF_CALENDAR_HOURS + hour);
}

typedef struct {
    UprofProfile *profile;
    uint64_t time_ns;
    bool has_root;
} Copy;

static void
copy_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    const Copy *copy = data;
    const unsigned skip = copy->has_root ? 1 : 0;

    while (n > skip && weight > 0) {
        const UprofTick tick = {
            .time_ns = copy->time_ns,
            .count = 1,
            .weight = (uint32_t)MIN(weight, UINT32_MAX),
        };
        uprof_profile_add_tick(copy->profile, frames + skip, n - skip, tick, true);
        weight -= tick.weight;
    }
}

/* Returns: part @i of @n equal parts of @all; all parts together are @all */
static uint64_t
divide_samples(uint64_t all, unsigned i, unsigned n)
{
    const unsigned __int128 whole = all;

    return (uint64_t)(whole * (i + 1) / n - whole * i / n);
}

/* Returns: the name is NULL if the stacks have no function */
static UprofProfileRow
find_hottest(const UprofProfile *stacks)
{
    uint64_t halted;
    g_autoptr(GArray) rows = uprof_profile_rows(stacks, &halted);

    return rows->len > 0 ? g_array_index(rows, UprofProfileRow, 0) : (UprofProfileRow){ 0 };
}

static void
note_hottest(UprofSlot *slot, const UprofName *name, uint64_t self)
{
    if (slot->hottest && self <= slot->hottest_self)
        return;
    slot->hottest = name;
    slot->hottest_self = self;
}

void
uprof_calendar_add(UprofCalendar *calendar, unsigned first, unsigned last,
                   const UprofProfile *stacks, uint64_t samples, uint64_t running)
{
    const unsigned n = last - first + 1;
    const UprofProfileRow hottest = find_hottest(stacks);
    Copy copy = {
        .profile = calendar->profile,
        .time_ns = first * 3600 * UPROF_NS_PER_S,
        .has_root = uprof_profile_root(stacks) != NULL,
    };

    g_assert(first <= last && last < calendar->slots->len);
    for (unsigned i = 0; i < n; i++) {
        UprofSlot *slot = &g_array_index(calendar->slots, UprofSlot, first + i);
        slot->samples += divide_samples(samples, i, n);
        slot->running += divide_samples(running, i, n);
        slot->is_joined = slot->is_joined || i > 0;
        if (hottest.name)
            note_hottest(slot, hottest.name, divide_samples(hottest.self, i, n));
    }
    uprof_profile_walk(stacks, copy_stack, &copy);
}

void
uprof_calendar_fail(UprofCalendar *calendar, int64_t at_s)
{
    const int slot = uprof_calendar_find(calendar, at_s);

    if (slot >= 0)
        g_array_index(calendar->slots, UprofSlot, slot).n_failed++;
}
