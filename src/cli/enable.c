/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * enable.c - the commands enable, disable and configure: a domain's metadata for periodic runs
 *
 * `virsh metadata` can do the same. The commands keep elements and attributes that others added.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/domid.h"
#include "uprof/error.h"
#include "uprof/metadata-change.h"
#include "uprof/metadata-view.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

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
say_enabled(const UprofMetadataView *view, const char *shown, bool is_enabled, GError **error)
{
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    if (!is_enabled) {
        uprof_say("%s: disabled", shown);
        return true;
    }
    if (!uprof_metadata_view_settings(view, &settings, error))
        return false;
    g_autofree char *rate = uprof_settings_format_rate(settings.rate_mhz);
    g_autofree char *duration = uprof_settings_format_duration(settings.duration_ns);
    uprof_say("%s: enabled: %s at %s Hz in each round", shown, duration, rate);
    if (!has_timer())
        uprof_say("no timer starts rounds; for one every ten minutes:\n"
                  "  systemctl enable --now virt-uprof-collect.timer virt-uprof-prune.timer\n"
                  "for one now:\n  virt-uprof collect");
    return true;
}

static bool
show_settings(const UprofMetadataView *view, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const bool ok = uprof_metadata_view_append(out, view, error);

    fputs(out->str, stdout);
    return ok;
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
    g_autoptr(UprofDomain) domain = uprof_domid_find_definition(host, word, &error);
    g_autofree char *shown = NULL;

    if (!domain)
        return uprof_notice_error(&notices, error);
    shown = uprof_text_quote(domain->name);
    const UprofMetadataView view = { host, domain, options->config };
    const UprofMetadataChange change = list_changes(options, enabled);
    const bool writes = enabled || !uprof_metadata_change_is_empty(&change);
    const bool shows = !writes || (!enabled && !options->quiet);
    const bool ok =
        (!writes || uprof_metadata_change_write(&change, host, domain, options->config, &error)) &&
        (!shows || show_settings(&view, &error)) &&
        (!enabled || options->quiet ||
         say_enabled(&view, shown, strcmp(enabled, "yes") == 0, &error));
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
        return uprof_exit_say_error(error);
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, reads, &error);
    if (!host)
        return uprof_exit_say_error(error);
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
