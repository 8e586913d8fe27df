/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * enable, disable, configure: what a domain's metadata says of periodic runs.
 * The same can be done with virsh metadata; what somebody else has put there is
 * kept.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "uprof/error.h"
#include "uprof/host.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>

static const UprofMetadataPlace places[] = { UPROF_METADATA_LIVE, UPROF_METADATA_CONFIG };

typedef struct {
    const UprofOptions *options;
    UprofHost *host;
    const UprofDomain *domain;
    char *shown;
} Mark;

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* Whether it means something; its limits, too, are asked for. */
static bool
check_element(const Mark *mark, const char *xml, GError **error)
{
    g_auto(UprofSettings) settings;
    g_auto(UprofMetadata) metadata;

    uprof_settings_init(&settings);
    uprof_metadata_init(&metadata);
    return uprof_metadata_parse(slice_of(xml), &metadata, error) &&
           uprof_settings_take_metadata(&settings, &metadata, mark->options->config, NULL, error);
}

/* ---- Writing ---- */

/* @value in units of 10^-@digits, without zeros at its end */
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

static char *
format_rate(uint64_t rate_mhz)
{
    return format_decimal(rate_mhz, 3);
}

static char *
format_duration(uint64_t duration_ns)
{
    const uint64_t ms = duration_ns / 1000000;

    return ms % 1000 == 0 ? g_strdup_printf("%" G_GUINT64_FORMAT "s", ms / 1000)
                          : g_strdup_printf("%" G_GUINT64_FORMAT "ms", ms);
}

static char *
format_budget(uint64_t budget_ppm)
{
    return format_decimal(budget_ppm, 4);
}

static bool
is_changing(const UprofOptions *options)
{
    const UprofGiven *given = &options->settings.given;

    return given->rate || given->duration || given->budget || given->unwind ||
           options->symbols->len > 0;
}

/* Returns: (transfer full) (nullable): the paths of -s, as metadata may have them */
static GPtrArray *
list_symbols(const Mark *mark, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < mark->options->symbols->len; i++) {
        const UprofSymbolFile *file = g_ptr_array_index(mark->options->symbols, i);
        g_autofree char *path = g_canonicalize_filename(file->path, NULL);
        g_autofree char *quoted = uprof_text_quote(path);
        if (file->is_moved || !g_utf8_validate(path, -1, NULL)) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                        "symbols '%s': metadata takes a path, in UTF-8, without @BASE", quoted);
            return NULL;
        }
        /* on another host it is looked for there, in time */
        if (mark->domain->is_local && g_strcmp0(path, mark->domain->xml->kernel) != 0 &&
            !uprof_settings_check_symbols(mark->options->config, path, error))
            return NULL;
        g_ptr_array_add(paths, g_steal_pointer(&path));
    }
    return g_steal_pointer(&paths);
}

/* Returns: (transfer full) (nullable): the element as it is to be in @place */
static char *
edit(const Mark *mark, UprofMetadataPlace place, const char *enabled, GError **error)
{
    const UprofSettings *settings = &mark->options->settings;
    g_autofree char *rate = format_rate(settings->rate_mhz);
    g_autofree char *duration = format_duration(settings->duration_ns);
    g_autofree char *budget = format_budget(settings->budget_ppm);
    g_autofree char *before = NULL;
    g_autoptr(GPtrArray) symbols = list_symbols(mark, error);
    UprofMetadataEdit change = {
        .enabled = enabled,
        .rate = settings->given.rate ? rate : NULL,
        .duration = settings->given.duration ? duration : NULL,
        .budget = settings->given.budget ? budget : NULL,
        .unwind = settings->given.unwind ? settings->unwind : NULL,
    };

    if (!symbols || !uprof_host_get_metadata(mark->host, mark->domain, place, &before, error))
        return NULL;
    if (!enabled && !*before)
        change.enabled = "no"; /* it must say; nobody has asked for it yet */
    if (symbols->len > 0)
        change.symbols = symbols;
    g_autofree char *after = uprof_metadata_edit(slice_of(before), &change, error);
    return after && check_element(mark, after, error) ? g_steal_pointer(&after) : NULL;
}

static bool
write_all(const Mark *mark, const char *enabled, GError **error)
{
    char *elements[G_N_ELEMENTS(places)] = { NULL };
    bool ok = true, any = false;

    for (size_t i = 0; i < G_N_ELEMENTS(places) && ok; i++) {
        if (!uprof_host_has_metadata_place(mark->host, mark->domain, places[i]))
            continue;
        any = true;
        elements[i] = edit(mark, places[i], enabled, error);
        ok = elements[i];
    }
    for (size_t i = 0; i < G_N_ELEMENTS(places) && ok; i++)
        ok = !elements[i] ||
             uprof_host_set_metadata(mark->host, mark->domain, places[i], elements[i], error);
    for (size_t i = 0; i < G_N_ELEMENTS(places); i++)
        g_free(elements[i]);
    if (ok && !any)
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND, "it is gone");
    return ok && any;
}

/* ---- Showing ---- */

static void
show_row(const char *label, const char *value, const char *unit, const char *source)
{
    g_autofree char *clean = uprof_text_quote(value);
    g_autofree char *both = g_strconcat(clean, unit, NULL);

    printf("  %-9s %-10s %s\n", label, both, source);
}

/* Takes @now. */
static void
show_value(const char *label, const char *unit, bool is_said, bool is_as_said, char *now,
           bool is_built_in)
{
    g_autofree char *text = now;
    const char *source = is_built_in ? "built in" : "configuration";

    if (is_said)
        source =
            is_as_said ? "metadata" : "metadata asks for more than <limits> of the configuration";
    show_row(label, text, unit, source);
}

static void
show_settings(const Mark *mark, const UprofMetadata *metadata, const UprofSettings *settings)
{
    const UprofConfig *config = mark->options->config;
    g_autoptr(UprofConfig) built_in = uprof_config_new();
    uint64_t rate = 0, duration = 0, budget = 0;

    const bool has_rate = metadata->rate && uprof_settings_parse_rate(metadata->rate, &rate);
    const bool has_duration =
        metadata->duration && uprof_settings_parse_duration(metadata->duration, &duration);
    const bool has_budget =
        metadata->budget && uprof_settings_parse_budget(metadata->budget, &budget);
    show_value("rate", " Hz", has_rate, rate == settings->rate_mhz, format_rate(settings->rate_mhz),
               config->rate_mhz == built_in->rate_mhz);
    show_value("duration", "", has_duration, duration == settings->duration_ns,
               format_duration(settings->duration_ns),
               config->duration_ns == built_in->duration_ns);
    show_value("budget", " %", has_budget, budget == settings->budget_ppm,
               format_budget(settings->budget_ppm), config->budget_ppm == built_in->budget_ppm);
    show_row("unwind", settings->unwind, "", metadata->unwind ? "metadata" : "built in");
    for (guint i = 0; i < metadata->symbols->len; i++) {
        const char *path = g_ptr_array_index(metadata->symbols, i);
        g_autoptr(GError) error = NULL;
        const bool ok = g_strcmp0(path, mark->domain->xml->kernel) == 0 ||
                        !mark->domain->is_local ||
                        uprof_settings_check_symbols(mark->options->config, path, &error);
        show_row("symbols", path, "", ok ? "metadata" : error->message);
    }
    if (metadata->symbols->len == 0 && mark->domain->xml->kernel)
        show_row("symbols", mark->domain->xml->kernel, "", "the domain's kernel");
}

static void
show_element(const Mark *mark, const char *place, const UprofMetadata *metadata)
{
    const UprofConfig *config = mark->options->config;
    const char *name = mark->domain->name;
    g_auto(UprofSettings) settings;
    g_autoptr(GError) error = NULL;
    const char *source = "metadata";

    uprof_settings_init(&settings);
    settings.rate_mhz = config->rate_mhz;
    settings.duration_ns = config->duration_ns;
    settings.budget_ppm = config->budget_ppm;
    const bool ok = uprof_settings_take_metadata(&settings, metadata, config, NULL, &error);
    printf("%s (%s)%s:\n", mark->shown, mark->domain->uuid, place);
    if (!ok) {
        printf("  %s\n", error->message);
        settings.enabled = false;
    } else if (!metadata->present) {
        settings.enabled = uprof_config_has_domain(config, name);
        source = settings.enabled ? "<collect domains> of the configuration" : "nobody says so";
    }
    show_row("enabled", settings.enabled ? "yes" : "no", "", source);
    show_settings(mark, metadata, &settings);
    if (metadata->unknown)
        show_row("unknown", metadata->unknown, "", "metadata; it is ignored");
}

/* Returns: false if @xml could not be asked for; it is %NULL where there is no such place */
static bool
read_place(const Mark *mark, UprofMetadataPlace place, char **xml, GError **error)
{
    return !uprof_host_has_metadata_place(mark->host, mark->domain, place) ||
           uprof_host_get_metadata(mark->host, mark->domain, place, xml, error);
}

static void
show_place(const Mark *mark, const char *place, const char *xml)
{
    g_autoptr(GError) bad = NULL;
    g_auto(UprofMetadata) metadata;

    uprof_metadata_init(&metadata);
    if (*xml && !uprof_metadata_parse(slice_of(xml), &metadata, &bad))
        metadata.bad = g_strdup(bad->message);
    show_element(mark, place, &metadata);
}

static bool
show_all(const Mark *mark, GError **error)
{
    g_autofree char *live = NULL;
    g_autofree char *config = NULL;

    if (!read_place(mark, UPROF_METADATA_LIVE, &live, error) ||
        !read_place(mark, UPROF_METADATA_CONFIG, &config, error))
        return false;
    const bool differ = live && config && strcmp(live, config) != 0;
    if (live)
        show_place(mark, differ ? " as it runs" : "", live);
    if (config && (differ || !live))
        show_place(mark, differ ? " from its next start on" : "", config);
    return true;
}

/* ---- The commands ---- */

static int
mark_domain(UprofHost *host, const UprofOptions *options, const char *word, const char *enabled)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofDomain) domain = uprof_host_find(host, word, &error);
    g_autofree char *shown = NULL;

    if (!domain)
        return uprof_say_error(error);
    shown = uprof_text_quote(domain->name);
    const Mark mark = { .options = options, .host = host, .domain = domain, .shown = shown };
    const bool writes = enabled || is_changing(options);
    const bool ok = writes ? write_all(&mark, enabled, &error) : show_all(&mark, &error);
    if (ok && writes && enabled && !options->quiet)
        uprof_say("virt-uprof: %s: %s", shown,
                  strcmp(enabled, "yes") == 0 ? "enabled" : "disabled");
    if (!ok)
        g_prefix_error(&error, "%s: ", shown);
    return ok ? UPROF_EXIT_OK : uprof_say_error(error);
}

/* @enabled: (nullable): as it is */
static int
mark_all(UprofOptions *options, const char *enabled)
{
    const bool reads = !enabled && !is_changing(options);
    g_autoptr(GError) error = NULL;
    UprofExitTally tally = { 0 };

    options->config = uprof_config_load(options->config_path, &error);
    if (!options->config)
        return uprof_say_error(error);
    uprof_host_init();
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, reads, &error);
    if (!host)
        return uprof_say_error(error);
    for (guint i = 0; i < options->words->len; i++)
        uprof_exit_count(&tally,
                         mark_domain(host, options, g_ptr_array_index(options->words, i), enabled));
    return fflush(stdout) == 0 ? uprof_exit_of(&tally) : UPROF_EXIT_FAILED;
}

int
uprof_mark_enable(UprofOptions *options)
{
    return mark_all(options, "yes");
}

int
uprof_mark_disable(UprofOptions *options)
{
    return mark_all(options, "no");
}

int
uprof_mark_configure(UprofOptions *options)
{
    return mark_all(options, NULL);
}
