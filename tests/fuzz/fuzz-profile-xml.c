/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../src/settings/settings-priv.h"
#include "../../src/parse/profile-xml-priv.h"
#include "fuzz.h"

#include <string.h>

#include "uprof/profile-xml.h"
#include "uprof/settings.h"

enum { NS_PER_S = 1000 * 1000 * 1000, LIMIT_S = 30 };

static const char symbols_file[] = "/a&b<c>\"d'";

/* The edited element is readable and has the new values; the other values are unchanged. */
static void
check_edit(UprofSlice text, const UprofMetadata *before)
{
    g_autoptr(GPtrArray) symbols = g_ptr_array_new();
    const UprofMetadataEdit edit = { .enabled = "no", .unwind = "fp", .symbols = symbols };
    g_auto(UprofMetadata) after;

    g_ptr_array_add(symbols, (gpointer)symbols_file);
    uprof_metadata_init(&after);
    g_autofree char *edited = uprof_metadata_edit(text, &edit, NULL);
    g_assert(edited);
    if (strlen(edited) > UPROF_METADATA_BYTES_MAX)
        return; /* the edit writes entities, so the text may get too long to be read */
    g_assert(uprof_metadata_parse((UprofSlice){ edited, strlen(edited) }, &after, NULL));
    if (before->bad)
        return;
    g_assert(after.present);
    g_assert(strcmp(after.enabled, "no") == 0 && strcmp(after.unwind, "fp") == 0);
    g_assert(after.symbols->len == 1);
    g_assert(strcmp(g_ptr_array_index(after.symbols, 0), symbols_file) == 0);
    g_assert(g_strcmp0(after.rate, before->rate) == 0);
    g_assert(g_strcmp0(after.duration, before->duration) == 0);
    g_assert(g_strcmp0(after.budget, before->budget) == 0);
}

/* Metadata cannot exceed the limits: users who may edit a domain may not change the limits. */
static void
check_settings(const UprofMetadata *metadata, bool is_periodic)
{
    const UprofConfig limits = {
        .limit_rate_mhz = 100 * 1000,
        .limit_duration_ns = LIMIT_S * (uint64_t)NS_PER_S,
        .limit_budget_ppm = 1000,
    };
    g_autoptr(GPtrArray) symbols = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    g_auto(UprofSettings) settings;

    uprof_settings_init(&settings);
    const bool ok = uprof_settings_take_metadata(&settings, metadata, is_periodic ? &limits : NULL,
                                                 symbols, &error);
    check_answer(ok, error);
    g_assert(ok || symbols->len == 0);
    g_assert(symbols->len <= UPROF_METADATA_SYMBOLS_MAX);
    if (!ok || !metadata->present)
        return;
    g_assert(settings.rate_mhz <= UPROF_METADATA_RATE_MAX_HZ * UINT64_C(1000));
    g_assert(settings.duration_ns > 0 && settings.duration_ns <= 3600 * (uint64_t)NS_PER_S);
    if (metadata->rate && is_periodic)
        g_assert(settings.rate_mhz <= limits.limit_rate_mhz);
    if (metadata->duration && is_periodic)
        g_assert(settings.duration_ns <= limits.limit_duration_ns);
    if (metadata->budget && is_periodic)
        g_assert(settings.budget_ppm <= limits.limit_budget_ppm);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    const UprofSlice text = { data, size };
    g_autoptr(GError) error = NULL;
    g_auto(UprofMetadata) metadata;

    uprof_metadata_init(&metadata);
    const bool ok = uprof_metadata_parse(text, &metadata, &error);
    check_answer(ok, error);
    g_assert(metadata.symbols->len <= UPROF_METADATA_SYMBOLS_MAX);
    g_assert(!(metadata.present && metadata.bad));
    g_assert(ok == (metadata.present || metadata.bad));
    check_settings(&metadata, false);
    check_settings(&metadata, true);
    if (ok)
        check_edit(text, &metadata);
}
