/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * enable.c - the commands enable, disable and configure: a domain's metadata for periodic runs
 *
 * `virsh metadata` can do the same. The commands keep elements and attributes that others added.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/error.h"
#include "uprof/metadata-change.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

/* One domain, and the options for it. All pointers are borrowed. */
typedef struct {
    const UprofOptions *options;
    UprofHost *host;
    const UprofDomain *domain;
    char *shown; /* the domain's name, safe to print */
} Target;

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* ---- Showing ---- */

static void
show_row(const char *label, const char *value, const char *unit, const char *source)
{
    g_autofree char *clean = uprof_text_quote(value);
    g_autofree char *both = g_strconcat(clean, unit, NULL);

    printf("  %-9s %-10s %s\n", label, both, source);
}

/*
 * Shows a setting and its source.
 *
 * @is_said: the metadata has this setting
 * @is_as_said: @now is the value of the metadata; false if a limit has replaced the value
 * @now: (transfer full): the value that a round uses
 * @is_built_in: the configuration does not change the default
 */
static void
show_value(const char *label, const char *unit, bool is_said, bool is_as_said, char *now,
           bool is_built_in)
{
    g_autofree char *text = now;
    const char *source = is_built_in ? "built in" : "configuration";

    if (is_said)
        source = is_as_said ? "metadata" : "limited by <limits> of the configuration";
    show_row(label, text, unit, source);
}

static void
show_settings(const Target *target, const UprofMetadata *metadata, const UprofSettings *settings)
{
    const UprofConfig *config = target->options->config;
    g_autoptr(UprofConfig) built_in = uprof_config_new();
    uint64_t rate = 0, duration = 0, budget = 0;

    const bool has_rate = metadata->rate && uprof_settings_parse_rate(metadata->rate, &rate);
    const bool has_duration =
        metadata->duration && uprof_settings_parse_duration(metadata->duration, &duration);
    const bool has_budget =
        metadata->budget && uprof_settings_parse_budget(metadata->budget, &budget);
    show_value("rate", " Hz", has_rate, rate == settings->rate_mhz,
               uprof_settings_format_rate(settings->rate_mhz),
               config->rate_mhz == built_in->rate_mhz);
    show_value("duration", "", has_duration, duration == settings->duration_ns,
               uprof_settings_format_duration(settings->duration_ns),
               config->duration_ns == built_in->duration_ns);
    show_value("budget", " %", has_budget, budget == settings->budget_ppm,
               uprof_settings_format_budget(settings->budget_ppm),
               config->budget_ppm == built_in->budget_ppm);
    show_row("unwind", settings->unwind, "", metadata->unwind ? "metadata" : "built in");
    for (guint i = 0; i < metadata->symbols->len; i++) {
        const char *path = g_ptr_array_index(metadata->symbols, i);
        g_autoptr(GError) error = NULL;
        const bool ok = g_strcmp0(path, target->domain->xml->kernel) == 0 ||
                        !target->domain->is_local ||
                        uprof_settings_check_symbols(target->options->config, path, &error);
        show_row("symbols", path, "", ok ? "metadata" : error->message);
    }
    if (metadata->symbols->len == 0 && target->domain->xml->kernel)
        show_row("symbols", target->domain->xml->kernel, "", "the domain's kernel");
}

/* @settings: (out): those of a round, which the caller must clear */
static bool
find_settings(const Target *target, const UprofMetadata *metadata, UprofSettings *settings,
              GError **error)
{
    const UprofConfig *config = target->options->config;

    uprof_settings_init(settings);
    settings->rate_mhz = config->rate_mhz;
    settings->duration_ns = config->duration_ns;
    settings->budget_ppm = config->budget_ppm;
    return uprof_settings_take_metadata(settings, metadata, config, NULL, error);
}

static void
show_element(const Target *target, const char *scope, const UprofMetadata *metadata)
{
    const UprofConfig *config = target->options->config;
    const char *name = target->domain->name;
    g_auto(UprofSettings) settings;
    g_autoptr(GError) error = NULL;
    const char *source = "metadata";

    const bool ok = find_settings(target, metadata, &settings, &error);
    printf("%s (%s)%s:\n", target->shown, target->domain->uuid, scope);
    if (!ok) {
        printf("  %s\n", error->message);
        settings.enabled = false;
    } else if (!metadata->present) {
        settings.enabled = uprof_config_has_domain(config, name);
        source = settings.enabled ? "<collect domains> of the configuration" : "nothing enables it";
    }
    show_row("enabled", settings.enabled ? "yes" : "no", "", source);
    show_settings(target, metadata, &settings);
    if (metadata->unknown)
        show_row("unknown", metadata->unknown, "", "metadata; it is ignored");
}

/* @xml: (out): %NULL if the domain has no such scope. Returns: false if libvirt failed */
static bool
read_scope(const Target *target, UprofMetadataScope scope, char **xml, GError **error)
{
    return !uprof_host_has_metadata_scope(target->host, target->domain, scope) ||
           uprof_host_get_metadata(target->host, target->domain, scope, xml, error);
}

/* @metadata: (out): the caller must clear it */
static void
parse_element(const char *xml, UprofMetadata *metadata)
{
    g_autoptr(GError) bad = NULL;

    uprof_metadata_init(metadata);
    if (*xml && !uprof_metadata_parse(slice_of(xml), metadata, &bad))
        metadata->bad = g_strdup(bad->message);
}

static void
show_scope(const Target *target, const char *scope, const char *xml)
{
    g_auto(UprofMetadata) metadata;

    parse_element(xml, &metadata);
    show_element(target, scope, &metadata);
}

static bool
show_all(const Target *target, GError **error)
{
    g_autofree char *live = NULL;
    g_autofree char *config = NULL;

    if (!read_scope(target, UPROF_METADATA_LIVE, &live, error) ||
        !read_scope(target, UPROF_METADATA_CONFIG, &config, error))
        return false;
    const bool differ = live && config && strcmp(live, config) != 0;
    if (live)
        show_scope(target, differ ? " while it runs" : "", live);
    if (config && (differ || !live))
        show_scope(target, differ ? " after its next start" : "", config);
    return true;
}

/* ---- The commands ---- */

/* Does something start rounds? On a host without systemd that is not known. */
static bool
has_timer(void)
{
    static const char *const signs[] = {
        "/etc/systemd/system/timers.target.wants/virt-uprof-collect.timer",
        "/etc/cron.d/virt-uprof",
    };

    for (size_t i = 0; i < G_N_ELEMENTS(signs); i++)
        if (g_file_test(signs[i], G_FILE_TEST_EXISTS))
            return true;
    return !g_file_test("/run/systemd/system", G_FILE_TEST_IS_DIR);
}

/* Says what the next rounds do with the domain. */
static bool
say_enabled(const Target *target, bool is_enabled, GError **error)
{
    g_autofree char *xml = NULL;
    g_auto(UprofMetadata) metadata;
    g_auto(UprofSettings) settings;

    uprof_metadata_init(&metadata);
    uprof_settings_init(&settings);
    if (!is_enabled) {
        uprof_say("virt-uprof: %s: disabled", target->shown);
        return true;
    }
    if (!read_scope(target, UPROF_METADATA_LIVE, &xml, error) ||
        (!xml && !read_scope(target, UPROF_METADATA_CONFIG, &xml, error)))
        return false;
    uprof_metadata_clear(&metadata);
    parse_element(xml ? xml : "", &metadata);
    if (!find_settings(target, &metadata, &settings, error))
        return false;
    g_autofree char *rate = uprof_settings_format_rate(settings.rate_mhz);
    g_autofree char *duration = uprof_settings_format_duration(settings.duration_ns);
    uprof_say("virt-uprof: %s: enabled: %s at %s Hz in each round%s", target->shown, duration, rate,
              has_timer() ? ""
                          : "; no timer starts rounds: systemctl enable --now "
                            "virt-uprof-collect.timer virt-uprof-prune.timer");
    return true;
}

static UprofMetadataChange
list_changes(const UprofOptions *options, const char *enabled)
{
    return (UprofMetadataChange){ enabled, &options->settings, options->symbols };
}

static UprofErrorCode
handle_domain(UprofHost *host, const UprofOptions *options, const char *word, const char *enabled)
{
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomain) domain = uprof_host_find(host, word, &error);
    g_autofree char *shown = NULL;

    if (!domain)
        return uprof_notice_error(&notices, error);
    shown = uprof_text_quote(domain->name);
    const Target target = { .options = options, .host = host, .domain = domain, .shown = shown };
    const UprofMetadataChange change = list_changes(options, enabled);
    const bool writes = enabled || !uprof_metadata_change_is_empty(&change);
    const bool shows = !writes || (!enabled && !options->quiet);
    const bool ok =
        (!writes || uprof_metadata_change_write(&change, host, domain, options->config, &error)) &&
        (!shows || show_all(&target, &error)) &&
        (!enabled || options->quiet || say_enabled(&target, strcmp(enabled, "yes") == 0, &error));
    if (!ok)
        g_prefix_error(&error, "%s: ", shown);
    return ok ? UPROF_ERROR_NONE : uprof_notice_error(&notices, error);
}

/* @enabled: (nullable): "yes" or "no"; %NULL leaves the attribute as it is */
static int
handle_all(UprofOptions *options, const char *enabled)
{
    const UprofMetadataChange change = list_changes(options, enabled);
    const bool reads = !enabled && uprof_metadata_change_is_empty(&change);
    g_autoptr(GError) error = NULL;
    UprofErrorTally tally = { 0 };

    options->config = uprof_config_load(options->config_path, &error);
    if (!options->config)
        return uprof_say_error(error);
    uprof_host_init();
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, reads, &error);
    if (!host)
        return uprof_say_error(error);
    for (guint i = 0; i < options->words->len; i++)
        uprof_error_count(
            &tally, handle_domain(host, options, g_ptr_array_index(options->words, i), enabled));
    return fflush(stdout) == 0 ? uprof_exit_of_tally(&tally) : UPROF_EXIT_FAILED;
}

int
uprof_enable_run(UprofOptions *options)
{
    return handle_all(options, "yes");
}

int
uprof_disable_run(UprofOptions *options)
{
    return handle_all(options, "no");
}

int
uprof_configure_run(UprofOptions *options)
{
    return handle_all(options, NULL);
}
