/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Applies <uprof:profile> of a domain's metadata. Every user who may edit the domain can set this
 * element, so rates are limited, and the caller opens symbol files only in folders that root chose.
 */
#include "uprof/config.h"

#include "settings-priv.h"
#include "uprof/error.h"
#include "uprof/settings.h"
#include "uprof/text.h"

#include <string.h>

enum { METADATA_DURATION_MAX_S = 3600 };

static bool
fail_value(GError **error, const char *attribute, const char *value, const char *form)
{
    g_autofree char *quoted = uprof_text_quote(value);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                "metadata: %s='%s' is not %s; the profile element is ignored", attribute, quoted,
                form);
    return false;
}

static bool
take_unwind(UprofSettings *settings, const char *value)
{
    static const char *const methods[] = { "auto", "fp", "cfi" };

    for (size_t i = 0; i < G_N_ELEMENTS(methods); i++) {
        if (strcmp(value, methods[i]) != 0)
            continue;
        if (!settings->given.unwind)
            settings->unwind = methods[i];
        return true;
    }
    return false;
}

/* A periodic run needs the attribute: it samples only domains that are enabled. */
static bool
take_enabled(const UprofMetadata *metadata, bool *enabled, GError **error)
{
    const char *said = metadata->enabled ? metadata->enabled : "";

    *enabled = strcmp(said, "yes") == 0;
    return *enabled || strcmp(said, "no") == 0 || fail_value(error, "enabled", said, "yes or no");
}

static uint64_t
limit_value(uint64_t value, uint64_t limit)
{
    return limit > 0 ? MIN(value, limit) : value;
}

bool
uprof_settings_take_metadata(UprofSettings *settings, const UprofMetadata *metadata,
                             const UprofConfig *limits, GPtrArray *symbols, GError **error)
{
    UprofSettings taken = *settings;
    uint64_t value;

    if (metadata->bad) {
        g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                    "metadata: %s; the profile element is ignored", metadata->bad);
        return false;
    }
    if (!metadata->present)
        return true;
    if (limits && !take_enabled(metadata, &taken.enabled, error))
        return false;
    if (metadata->rate) {
        if (!uprof_settings_parse_rate(metadata->rate, &value) ||
            value > UPROF_METADATA_RATE_MAX_HZ * UINT64_C(1000))
            return fail_value(error, "rate", metadata->rate, "1 to 1000");
        if (limits && !taken.given.rate)
            taken.rate_mhz = limit_value(value, limits->limit_rate_mhz);
    }
    if (metadata->duration) {
        if (!uprof_settings_parse_duration(metadata->duration, &value) || value == 0 ||
            value > METADATA_DURATION_MAX_S * UINT64_C(1000000000))
            return fail_value(error, "duration", metadata->duration, "a duration of up to 1h");
        if (limits && !taken.given.duration)
            taken.duration_ns = limit_value(value, limits->limit_duration_ns);
    }
    if (metadata->budget) {
        if (!uprof_settings_parse_budget(metadata->budget, &value))
            return fail_value(error, "budget", metadata->budget, UPROF_BUDGET_FORM);
        if (limits && !taken.given.budget)
            taken.budget_ppm = limit_value(value, limits->limit_budget_ppm);
    }
    if (metadata->unwind && !take_unwind(&taken, metadata->unwind))
        return fail_value(error, "method", metadata->unwind, "auto, cfi or fp");
    *settings = taken;
    for (guint i = 0; symbols && metadata->symbols && i < metadata->symbols->len; i++)
        g_ptr_array_add(symbols, g_strdup(g_ptr_array_index(metadata->symbols, i)));
    return true;
}

void
uprof_settings_take_config(UprofSettings *settings, const UprofConfig *config)
{
    if (!settings->given.rate)
        settings->rate_mhz = config->rate_mhz;
    if (!settings->given.duration)
        settings->duration_ns = config->duration_ns;
    if (!settings->given.budget)
        settings->budget_ppm = config->budget_ppm;
}

bool
uprof_settings_is_enabled(const UprofConfig *config, const char *name,
                          const UprofMetadata *metadata, GError **error)
{
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    if (!uprof_settings_take_metadata(&settings, metadata, config, NULL, error))
        return false;
    return metadata->present ? settings.enabled : uprof_config_has_domain(config, name);
}
