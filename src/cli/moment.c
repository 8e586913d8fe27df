/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "moment-priv.h"

#include "store-priv.h"
#include "uprof/clock.h"
#include "uprof/scan.h"

#include <string.h>

enum { DAY_LEN = 10, AGO_MAX = 1000 * 1000 };

int64_t
uprof_moment_now(void)
{
    return (int64_t)(uprof_clock_utc_ns() / UPROF_NS_PER_S);
}

bool
uprof_moment_parse_day(const char *text, int64_t now_s, int64_t *day_s)
{
    const int64_t today_s = uprof_store_day_of(now_s);

    if (strcmp(text, "today") == 0) {
        *day_s = today_s;
        return true;
    }
    if (strcmp(text, "yesterday") == 0) {
        *day_s = today_s - UPROF_STORE_DAY_S;
        return true;
    }
    return uprof_store_read_day(text, strlen(text), day_s);
}

/* 12h */
static bool
parse_ago(const char *text, int64_t now_s, int64_t *at_s)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = { { 'd', UPROF_STORE_DAY_S }, { 'h', 60 * 60 }, { 'm', 60 } };
    const char *digits = text[0] == '-' ? text + 1 : text;
    const size_t len = strlen(digits);
    uint64_t number;

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        if (len < 2 || digits[len - 1] != units[i].unit ||
            !uprof_slice_to_uint((UprofSlice){ digits, len - 1 }, 10, 0, AGO_MAX, &number))
            continue;
        *at_s = now_s - (int64_t)number * units[i].seconds;
        return true;
    }
    return false;
}

/* Of "09:15" and "09:15:30", with or without a "Z". */
static bool
parse_clock(const char *text, int64_t *seconds)
{
    static const uint64_t maxima[] = { 23, 59, 59 };
    const size_t whole = strlen(text);
    const size_t len = whole > 0 && text[whole - 1] == 'Z' ? whole - 1 : whole;
    int64_t sum = 0;
    uint64_t part;

    if (len != strlen("09:15") && len != strlen("09:15:30"))
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(maxima); i++) {
        part = 0;
        if (i * 3 < len &&
            ((i > 0 && text[i * 3 - 1] != ':') ||
             !uprof_slice_to_uint((UprofSlice){ text + i * 3, 2 }, 10, 0, maxima[i], &part)))
            return false;
        sum = sum * 60 + (int64_t)part;
    }
    *seconds = sum;
    return true;
}

bool
uprof_moment_parse(const char *text, int64_t now_s, int64_t *at_s)
{
    int64_t day_s, seconds;

    if (uprof_moment_parse_day(text, now_s, at_s) || parse_ago(text, now_s, at_s))
        return true;
    if (strlen(text) <= DAY_LEN || text[DAY_LEN] != 'T' ||
        !uprof_store_read_day(text, DAY_LEN, &day_s) || !parse_clock(text + DAY_LEN + 1, &seconds))
        return false;
    *at_s = day_s + seconds;
    return true;
}
