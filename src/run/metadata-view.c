/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/metadata-view.h"

#include "uprof/text.h"

#include <string.h>

static void
append_row(GString *out, const char *label, const char *value, const char *unit, const char *source)
{
    g_autofree char *clean = uprof_text_quote(value);
    g_autofree char *both = g_strconcat(clean, unit, NULL);

    g_string_append_printf(out, "  %-9s %-10s %s\n", label, both, source);
}

/*
 * Appends a setting and its source.
 *
 * @is_said: the metadata has this setting
 * @is_as_said: @now is the value of the metadata; false if a limit has replaced the value
 * @now: (transfer full): the value that a round uses
 * @is_built_in: the configuration does not change the default
 */
static void
append_value(GString *out, const char *label, const char *unit, bool is_said, bool is_as_said,
             char *now, bool is_built_in)
{
    g_autofree char *text = now;
    const char *source = is_built_in ? "built in" : "configuration";

    if (is_said)
        source = is_as_said ? "metadata" : "limited by <limits> of the configuration";
    append_row(out, label, text, unit, source);
}

static void
append_settings(GString *out, const UprofMetadataView *view, const UprofMetadata *metadata,
                const UprofSettings *settings)
{
    const UprofConfig *config = view->config;
    g_autoptr(UprofConfig) built_in = uprof_config_new();
    uint64_t rate = 0, duration = 0, budget = 0;

    const bool has_rate = metadata->rate && uprof_settings_parse_rate(metadata->rate, &rate);
    const bool has_duration =
        metadata->duration && uprof_settings_parse_duration(metadata->duration, &duration);
    const bool has_budget =
        metadata->budget && uprof_settings_parse_budget(metadata->budget, &budget);
    append_value(out, "rate", " Hz", has_rate, rate == settings->rate_mhz,
                 uprof_settings_format_rate(settings->rate_mhz),
                 config->rate_mhz == built_in->rate_mhz);
    append_value(out, "duration", "", has_duration, duration == settings->duration_ns,
                 uprof_settings_format_duration(settings->duration_ns),
                 config->duration_ns == built_in->duration_ns);
    append_value(out, "budget", " %", has_budget, budget == settings->budget_ppm,
                 uprof_settings_format_budget(settings->budget_ppm),
                 config->budget_ppm == built_in->budget_ppm);
    append_row(out, "unwind", settings->unwind, "", metadata->unwind ? "metadata" : "built in");
    for (guint i = 0; i < metadata->symbols->len; i++) {
        const char *path = g_ptr_array_index(metadata->symbols, i);
        g_autoptr(GError) error = NULL;
        const bool ok = g_strcmp0(path, view->domain->xml->kernel) == 0 ||
                        !view->domain->is_local ||
                        uprof_settings_check_symbols(view->config, path, &error);
        append_row(out, "symbols", path, "", ok ? "metadata" : error->message);
    }
    if (metadata->symbols->len == 0 && view->domain->xml->kernel)
        append_row(out, "symbols", view->domain->xml->kernel, "", "the domain's kernel");
}

/* @settings: (out): those of a round, which the caller must clear */
static bool
find_settings(const UprofMetadataView *view, const UprofMetadata *metadata, UprofSettings *settings,
              GError **error)
{
    const UprofConfig *config = view->config;

    uprof_settings_init(settings);
    settings->rate_mhz = config->rate_mhz;
    settings->duration_ns = config->duration_ns;
    settings->budget_ppm = config->budget_ppm;
    return uprof_settings_take_metadata(settings, metadata, config, NULL, error);
}

static void
append_element(GString *out, const UprofMetadataView *view, const char *scope,
               const UprofMetadata *metadata)
{
    const UprofConfig *config = view->config;
    const char *name = view->domain->name;
    g_auto(UprofSettings) settings;
    g_autoptr(GError) error = NULL;
    g_autofree char *shown = uprof_text_quote(name);
    const char *source = "metadata";

    const bool ok = find_settings(view, metadata, &settings, &error);
    g_string_append_printf(out, "%s (%s)%s:\n", shown, view->domain->uuid, scope);
    if (!ok) {
        g_string_append_printf(out, "  %s\n", error->message);
        settings.enabled = false;
    } else if (!metadata->present) {
        settings.enabled = uprof_config_has_domain(config, name);
        source = settings.enabled ? "<collect domains> of the configuration" : "nothing enables it";
    }
    append_row(out, "enabled", settings.enabled ? "yes" : "no", "", source);
    append_settings(out, view, metadata, &settings);
    if (metadata->unknown)
        append_row(out, "unknown", metadata->unknown, "", "metadata; it is ignored");
}

/* @xml: (out): %NULL if the domain has no such scope. Returns: false if libvirt failed */
static bool
read_scope(const UprofMetadataView *view, UprofMetadataScope scope, char **xml, GError **error)
{
    return !uprof_host_has_metadata_scope(view->host, view->domain, scope) ||
           uprof_host_get_metadata(view->host, view->domain, scope, xml, error);
}

/* @metadata: (out): the caller must clear it */
static void
parse_element(const char *xml, UprofMetadata *metadata)
{
    g_autoptr(GError) bad = NULL;

    uprof_metadata_init(metadata);
    if (*xml && !uprof_metadata_parse((UprofSlice){ xml, strlen(xml) }, metadata, &bad))
        metadata->bad = g_strdup(bad->message);
}

static void
append_scope(GString *out, const UprofMetadataView *view, const char *scope, const char *xml)
{
    g_auto(UprofMetadata) metadata;

    parse_element(xml, &metadata);
    append_element(out, view, scope, &metadata);
}

bool
uprof_metadata_view_append(GString *out, const UprofMetadataView *view, GError **error)
{
    g_autofree char *live = NULL;
    g_autofree char *config = NULL;

    if (!read_scope(view, UPROF_METADATA_LIVE, &live, error) ||
        !read_scope(view, UPROF_METADATA_CONFIG, &config, error))
        return false;
    const bool differ = live && config && strcmp(live, config) != 0;
    if (live)
        append_scope(out, view, differ ? " while it runs" : "", live);
    if (config && (differ || !live))
        append_scope(out, view, differ ? " after its next start" : "", config);
    return true;
}

bool
uprof_metadata_view_settings(const UprofMetadataView *view, UprofSettings *settings, GError **error)
{
    g_autofree char *xml = NULL;
    g_auto(UprofMetadata) metadata;

    uprof_metadata_init(&metadata);
    uprof_settings_init(settings);
    if (!read_scope(view, UPROF_METADATA_LIVE, &xml, error) ||
        (!xml && !read_scope(view, UPROF_METADATA_CONFIG, &xml, error)))
        return false;
    uprof_metadata_clear(&metadata);
    parse_element(xml ? xml : "", &metadata);
    return find_settings(view, &metadata, settings, error);
}
