/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/metadata-change.h"

#include "uprof/symbol-settings.h"
#include "uprof/text.h"

#include <string.h>

/* libvirt keeps metadata in the running domain and in its persistent definition. */
static const UprofMetadataScope scopes[] = { UPROF_METADATA_LIVE, UPROF_METADATA_CONFIG };

/* The domain and the change. All pointers are borrowed. */
typedef struct {
    const UprofMetadataChange *change;
    UprofHost *host;
    const UprofDomain *domain;
    UprofConfig *config;
} Target;

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* Checks the element as a round would, including the limits of the configuration. */
static bool
check_element(const Target *target, const char *xml, GError **error)
{
    g_auto(UprofSettings) settings;
    g_auto(UprofMetadata) metadata;

    uprof_settings_init(&settings);
    uprof_metadata_init(&metadata);
    return uprof_metadata_parse(slice_of(xml), &metadata, error) &&
           uprof_settings_take_metadata(&settings, &metadata, target->config, NULL, error);
}

bool
uprof_metadata_change_is_empty(const UprofMetadataChange *change)
{
    const UprofGiven *given = &change->settings->given;

    return !given->rate && !given->duration && !given->budget && !given->unwind &&
           change->symbols->len == 0;
}

/* Returns: (transfer full) (nullable): the paths of -s, after checking them for metadata */
static GPtrArray *
list_symbols(const Target *target, GError **error)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < target->change->symbols->len; i++) {
        const UprofSymbolFile *file = g_ptr_array_index(target->change->symbols, i);
        g_autofree char *path = g_canonicalize_filename(file->path, NULL);
        g_autofree char *quoted = uprof_text_quote(path);
        if (file->is_moved || !g_utf8_validate(path, -1, NULL)) {
            g_set_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA,
                        "symbols '%s': metadata needs a path in UTF-8 without @BASE", quoted);
            return NULL;
        }
        /* The file of a remote domain is on the domain's host and cannot be checked here. */
        if (target->domain->is_local && g_strcmp0(path, target->domain->xml->kernel) != 0 &&
            !uprof_settings_check_symbols(target->config, path, error))
            return NULL;
        g_ptr_array_add(paths, g_steal_pointer(&path));
    }
    return g_steal_pointer(&paths);
}

/* Returns: (transfer full) (nullable): the new element for @scope */
static char *
edit_element(const Target *target, UprofMetadataScope scope, GError **error)
{
    const UprofSettings *settings = target->change->settings;
    g_autofree char *rate = uprof_settings_format_rate(settings->rate_mhz);
    g_autofree char *duration = uprof_settings_format_duration(settings->duration_ns);
    g_autofree char *budget = uprof_settings_format_budget(settings->budget_ppm);
    g_autofree char *before = NULL;
    g_autoptr(GPtrArray) symbols = list_symbols(target, error);
    UprofMetadataEdit edit = {
        .enabled = target->change->enabled,
        .rate = settings->given.rate ? rate : NULL,
        .duration = settings->given.duration ? duration : NULL,
        .budget = settings->given.budget ? budget : NULL,
        .unwind = settings->given.unwind ? settings->unwind : NULL,
    };

    if (!symbols || !uprof_host_get_metadata(target->host, target->domain, scope, &before, error))
        return NULL;
    /* The attribute is required. A pattern of the configuration may have enabled the domain. */
    if (!edit.enabled && !*before)
        edit.enabled = uprof_config_has_domain(target->config, target->domain->name) ? "yes" : "no";
    if (symbols->len > 0)
        edit.symbols = symbols;
    g_autofree char *after = uprof_metadata_edit(slice_of(before), &edit, error);
    return after && check_element(target, after, error) ? g_steal_pointer(&after) : NULL;
}

bool
uprof_metadata_change_write(const UprofMetadataChange *change, UprofHost *host,
                            const UprofDomain *domain, UprofConfig *config, GError **error)
{
    const Target of_domain = { change, host, domain, config };
    const Target *target = &of_domain;
    char *elements[G_N_ELEMENTS(scopes)] = { NULL };
    bool ok = true, any = false;

    for (size_t i = 0; i < G_N_ELEMENTS(scopes) && ok; i++) {
        if (!uprof_host_has_metadata_scope(target->host, target->domain, scopes[i]))
            continue;
        any = true;
        elements[i] = edit_element(target, scopes[i], error);
        ok = elements[i];
    }
    for (size_t i = 0; i < G_N_ELEMENTS(scopes) && ok; i++)
        ok = !elements[i] ||
             uprof_host_set_metadata(target->host, target->domain, scopes[i], elements[i], error);
    for (size_t i = 0; i < G_N_ELEMENTS(scopes); i++)
        g_free(elements[i]);
    if (ok && !any)
        g_set_error_literal(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND,
                            "the domain does not exist any more");
    return ok && any;
}
