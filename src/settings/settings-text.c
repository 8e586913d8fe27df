/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/clock.h"
#include "uprof/settings.h"

/* @value: in units of 10^-@digits. Returns: (transfer full): without trailing zeros */
static char *
format_decimal(uint64_t value, unsigned digits)
{
    uint64_t scale = 1;

    for (; digits > 0 && value % 10 == 0; digits--)
        value /= 10;
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    return digits == 0 ? g_strdup_printf("%" G_GUINT64_FORMAT, value)
                       : g_strdup_printf("%" G_GUINT64_FORMAT ".%0*" G_GUINT64_FORMAT,
                                         value / scale, (int)digits, value % scale);
}

char *
uprof_settings_format_rate(uint64_t rate_mhz)
{
    return format_decimal(rate_mhz, 3);
}

char *
uprof_settings_format_duration(uint64_t duration_ns)
{
    const uint64_t ms = duration_ns / UPROF_NS_PER_MS;

    return ms % 1000 == 0 ? g_strdup_printf("%" G_GUINT64_FORMAT "s", ms / 1000)
                          : g_strdup_printf("%" G_GUINT64_FORMAT "ms", ms);
}

char *
uprof_settings_format_budget(uint64_t budget_ppm)
{
    return format_decimal(budget_ppm, 4);
}
