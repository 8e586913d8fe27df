/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/time-text.h"

#include "uprof/clock.h"
#include "uprof/scan.h"

#include <string.h>

enum { AGO_MAX = 1000 * 1000, YEAR_MIN = 1970 };

int64_t
uprof_time_day_start(int64_t at_s)
{
    return at_s - ((at_s % UPROF_DAY_S) + UPROF_DAY_S) % UPROF_DAY_S;
}

char *
uprof_time_format_date(int64_t at_s)
{
    char *text = uprof_clock_format_utc((uint64_t)MAX(at_s, 0) * UPROF_NS_PER_S, FALSE);

    text[strlen("2026-11-20")] = '\0';
    return text;
}

/* @layout: letters of "YMDhms" stand for digits of year to second, other bytes for themselves */
static bool
parse_layout(UprofSlice text, const char *layout, int64_t *at_s)
{
    static const char letters[] = "YMDhms";
    enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, N_PARTS };
    const char *bytes = text.data;
    int parts[N_PARTS] = { 0 };

    if (text.len != strlen(layout))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        const char *letter = strchr(letters, layout[i]);
        if (letter ? !g_ascii_isdigit(bytes[i]) : bytes[i] != layout[i])
            return false;
        if (letter)
            parts[letter - letters] = parts[letter - letters] * 10 + (bytes[i] - '0');
    }
    if (parts[YEAR] < YEAR_MIN)
        return false;
    g_autoptr(GDateTime) time = g_date_time_new_utc(parts[YEAR], parts[MONTH], parts[DAY],
                                                    parts[HOUR], parts[MINUTE], parts[SECOND]);
    if (!time)
        return false;
    *at_s = g_date_time_to_unix(time);
    return true;
}

bool
uprof_time_parse_date(UprofSlice text, int64_t *day_s)
{
    return parse_layout(text, "YYYY-MM-DD", day_s);
}

bool
uprof_time_parse_stamp(UprofSlice text, int64_t *at_s)
{
    return parse_layout(text, "YYYYMMDD", at_s) || parse_layout(text, "YYYYMMDDThhmmssZ", at_s);
}

/* Parses a time before now, such as "12h". */
static bool
parse_ago(const char *text, int64_t now_s, int64_t *at_s)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = { { 'd', UPROF_DAY_S }, { 'h', 60 * 60 }, { 'm', 60 } };
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

bool
uprof_time_parse_day(const char *text, int64_t now_s, int64_t *day_s)
{
    const int64_t today_s = uprof_time_day_start(now_s);

    if (strcmp(text, "today") == 0) {
        *day_s = today_s;
        return true;
    }
    if (strcmp(text, "yesterday") == 0) {
        *day_s = today_s - UPROF_DAY_S;
        return true;
    }
    if (g_str_has_suffix(text, "d") && parse_ago(text, now_s, day_s)) {
        *day_s = uprof_time_day_start(*day_s);
        return true;
    }
    return uprof_time_parse_date((UprofSlice){ text, strlen(text) }, day_s);
}

bool
uprof_time_parse(const char *text, int64_t now_s, int64_t *at_s)
{
    static const char *const layouts[] = {
        "YYYY-MM-DDThh:mm",
        "YYYY-MM-DDThh:mmZ",
        "YYYY-MM-DDThh:mm:ss",
        "YYYY-MM-DDThh:mm:ssZ",
    };
    const UprofSlice slice = { text, strlen(text) };

    if (parse_ago(text, now_s, at_s) || uprof_time_parse_day(text, now_s, at_s))
        return true;
    for (size_t i = 0; i < G_N_ELEMENTS(layouts); i++)
        if (parse_layout(slice, layouts[i], at_s))
            return true;
    return false;
}
