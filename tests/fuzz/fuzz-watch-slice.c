/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A slice of `watch`. If bit 0 of the first byte is set, all other bytes are the slice. Otherwise
 * they are the facts, a NUL and the stacks, and the target compresses them. Each input is read as a
 * slice and as the facts of a profile, and what was read is rendered.
 */
#include "fuzz.h"

#include "uprof/output.h"
#include "../../src/live/watch-slice-priv.h"

enum { IS_RAW = 1 };

static void
check_profile(UprofLoad *load)
{
    g_assert(uprof_load_finish(load));
    GString *text = uprof_output_render(&uprof_format_folded, load->profile, load->run);
    g_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
    g_string_free(text, TRUE);
    text = uprof_output_render(&uprof_format_meta, load->profile, load->run);
    g_assert(g_utf8_validate(text->str, (gssize)text->len, NULL));
    g_string_free(text, TRUE);
}

void
fuzz_input(const uint8_t *data, size_t size)
{
    g_autoptr(GPtrArray) no_files = g_ptr_array_new();
    const UprofSymbolSettings symbols = { .files = no_files };
    const UprofLoadSettings settings = { .replay.symbols = &symbols };
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, &settings);
    g_autoptr(GError) bad_facts = NULL, bad_slice = NULL;

    if (size == 0)
        return;
    const UprofSlice rest = { data + 1, size - 1 };
    g_autoptr(GString) packed = uprof_output_compress(rest);
    const UprofSlice slice = data[0] & IS_RAW ? rest : (UprofSlice){ packed->str, packed->len };
    const bool has_facts = uprof_watch_slice_set_facts(load, slice, &bad_facts);
    check_answer(has_facts, bad_facts);
    const bool has_samples = uprof_watch_slice_add(load, slice, &bad_slice);
    check_answer(has_samples, bad_slice);
    check_profile(load);
}
