/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "fuzz.h"

#include <string.h>

#include "uprof/profile-xml.h"

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
        return; /* written entities make the text longer */
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
    if (ok)
        check_edit(text, &metadata);
}
