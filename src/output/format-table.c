/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* All formats. A new format is a row here and a file of its own. */
#include "uprof/output.h"

#include <string.h>

static const UprofFormat capture_format = {
    .name = "capture",
    .suffixes = { ".capture" },
    .is_binary = true,
    .is_capture = true,
    .is_secret = true,
};

static const UprofFormat *const formats[] = {
    &uprof_format_folded, &uprof_format_folded_gz,  &uprof_format_svg,
    &uprof_format_pprof,  &uprof_format_speedscope, &uprof_format_perf,
    &uprof_format_meta,   &capture_format,          &uprof_format_functions,
};

/* Names that other profilers use. */
static const struct {
    const char *name;
    const UprofFormat *format;
} aliases[] = {
    { "flamegraph", &uprof_format_svg },
    { "json", &uprof_format_speedscope },
};

const UprofFormat *
uprof_format_by_name(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(aliases); i++)
        if (strcmp(aliases[i].name, name) == 0)
            return aliases[i].format;
    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        if (strcmp(formats[i]->name, name) == 0)
            return formats[i];
    return NULL;
}

const UprofFormat *
uprof_format_by_path(const char *path)
{
    const UprofFormat *found = NULL;
    size_t longest = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++) {
        for (const char *const *suffix = formats[i]->suffixes; *suffix; suffix++) {
            if (strlen(*suffix) > longest && g_str_has_suffix(path, *suffix)) {
                longest = strlen(*suffix);
                found = formats[i];
            }
        }
    }
    return found;
}

/* Returns: (transfer full): the names or endings of the formats that users can ask for */
static char *
join_words(bool are_endings)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        if (!formats[i]->is_of_store)
            g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "",
                                   are_endings ? formats[i]->suffixes[0] : formats[i]->name);
    return g_string_free(text, FALSE);
}

char *
uprof_format_names(void)
{
    return join_words(false);
}

char *
uprof_format_endings(void)
{
    return join_words(true);
}
