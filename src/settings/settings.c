/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "settings-priv.h"

#include "uprof/clock.h"
#include "uprof/scan.h"
#include "uprof/sorted.h"

#include <string.h>

enum {
    RATE_DEFAULT_HZ = 99, /* not 100: guests' timers would be in step with it */
    DURATION_DEFAULT_S = 10,
    DURATION_PLACES = 9, /* decimals of a duration */
    MAX_PAUSE_DEFAULT_MS = 50,
    VCPU_MAX = 4095,
};

/* clang-format off */
static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    { "",   UPROF_NS_PER_S },
    { "ms", UPROF_NS_PER_MS },
    { "s",  UPROF_NS_PER_S },
    { "m",  60 * UPROF_NS_PER_S },
    { "h",  3600 * UPROF_NS_PER_S },
    { "d",  24 * 3600 * UPROF_NS_PER_S },
};
/* clang-format on */

void
uprof_settings_init(UprofSettings *settings)
{
    *settings = (UprofSettings){
        .rate_mhz = RATE_DEFAULT_HZ * 1000,
        .duration_ns = DURATION_DEFAULT_S * UPROF_NS_PER_S,
        .max_pause_ns = MAX_PAUSE_DEFAULT_MS * UPROF_NS_PER_MS,
        .max_depth = UPROF_DEPTH_DEFAULT,
        .unwind = "auto",
    };
}

void
uprof_settings_clear(UprofSettings *settings)
{
    g_clear_pointer(&settings->vcpus, g_array_unref);
}

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

static UprofSlice
cut_slice(UprofSlice slice, size_t from, size_t to)
{
    return (UprofSlice){ (const char *)slice.data + from, to - from };
}

/* Parses "12.5", with up to @n_decimals decimals, into an integer in units of 10^-@n_decimals. */
static bool
parse_decimal(const char *text, unsigned n_decimals, uint64_t max, uint64_t *value)
{
    const UprofSlice all = slice_of(text);
    size_t point = all.len;
    uint64_t whole, part = 0, scale = 1;

    for (unsigned i = 0; i < n_decimals; i++)
        scale *= 10;
    const bool has_point = uprof_slice_find(all, ".", &point);
    if (!uprof_slice_to_uint(cut_slice(all, 0, point), 10, 0, max, &whole))
        return false;
    if (has_point) {
        const UprofSlice digits = cut_slice(all, point + 1, all.len);
        if (digits.len > n_decimals || !uprof_slice_to_uint(digits, 10, 0, UINT64_MAX, &part))
            return false;
        for (size_t i = digits.len; i < n_decimals; i++)
            part *= 10;
    }
    if (whole * scale + part > max * scale)
        return false;
    *value = whole * scale + part;
    return true;
}

bool
uprof_settings_parse_rate(const char *text, uint64_t *rate_mhz)
{
    uint64_t mhz;

    if (!parse_decimal(text, 3, UPROF_RATE_MAX_HZ, &mhz) || mhz < 1000)
        return false;
    *rate_mhz = mhz;
    return true;
}

bool
uprof_settings_parse_duration(const char *text, uint64_t *duration_ns)
{
    const size_t digits = strspn(text, "0123456789.");
    g_autofree char *number = g_strndup(text, digits);
    uint64_t billionths;

    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        if (strcmp(text + digits, units[i].name) != 0)
            continue;
        const uint64_t max = UPROF_DURATION_MAX_S * UPROF_NS_PER_S / units[i].ns;
        if (!parse_decimal(number, DURATION_PLACES, max, &billionths))
            return false;
        const uint64_t ns =
            (uint64_t)((unsigned __int128)billionths * units[i].ns / UPROF_NS_PER_S);
        /* 0 has a meaning of its own: until stopped */
        if (ns == 0 && billionths > 0)
            return false;
        *duration_ns = ns;
        return true;
    }
    return false;
}

bool
uprof_settings_parse_budget(const char *text, uint64_t *budget_ppm)
{
    uint64_t ppm; /* The fourth decimal of a percent is a millionth. */

    if (!parse_decimal(text, 4, 100, &ppm) || ppm < 1000)
        return false;
    *budget_ppm = ppm;
    return true;
}

bool
uprof_settings_parse_chance(const char *text, uint64_t *chance_ppm)
{
    return parse_decimal(text, 6, 1, chance_ppm);
}

static bool
add_vcpus(GArray *vcpus, UprofSlice range)
{
    uint64_t first, last;
    size_t dash = range.len;

    const bool has_dash = uprof_slice_find(range, "-", &dash);
    if (!uprof_slice_to_uint(cut_slice(range, 0, dash), 10, 0, VCPU_MAX, &first))
        return false;
    last = first;
    if (has_dash &&
        !uprof_slice_to_uint(cut_slice(range, dash + 1, range.len), 10, first, VCPU_MAX, &last))
        return false;
    for (uint64_t i = first; i <= last; i++) {
        const uint32_t vcpu = (uint32_t)i;
        g_array_append_val(vcpus, vcpu);
    }
    return true;
}

bool
uprof_settings_parse_vcpus(const char *text, GArray **vcpus)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    UprofSlice rest = slice_of(text);

    for (bool more = true; more;) {
        size_t comma = rest.len;
        more = uprof_slice_find(rest, ",", &comma);
        if (!add_vcpus(found, cut_slice(rest, 0, comma)) || found->len > 16 * VCPU_MAX)
            return false;
        if (more)
            rest = cut_slice(rest, comma + 1, rest.len);
    }
    g_array_sort(found, uprof_compare_u32);
    for (guint i = 1; i < found->len;) {
        if (g_array_index(found, uint32_t, i) == g_array_index(found, uint32_t, i - 1))
            g_array_remove_index(found, i);
        else
            i++;
    }
    g_clear_pointer(vcpus, g_array_unref);
    *vcpus = g_steal_pointer(&found);
    return true;
}

bool
uprof_settings_has_vcpu(const UprofSettings *settings, unsigned vcpu)
{
    const GArray *vcpus = settings->vcpus;

    for (guint i = 0; vcpus && i < vcpus->len; i++)
        if (g_array_index(vcpus, uint32_t, i) == vcpu)
            return true;
    return !vcpus;
}
