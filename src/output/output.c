/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/output.h"

#include <string.h>

static const UprofFormat capture_format = {
    .name = "capture",
    .suffixes = { ".capture" },
    .is_binary = true,
    .is_capture = true,
    .is_secret = true,
};

/* svg, pprof, speedscope and perf join here */
static const UprofFormat *const formats[] = {
    &uprof_format_folded,
    &uprof_format_meta,
    &capture_format,
};

const UprofFormat *
uprof_format_by_name(const char *name)
{
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

char *
uprof_format_names(void)
{
    GString *names = g_string_new(NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(formats); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "", formats[i]->name);
    return g_string_free(names, FALSE);
}

typedef struct {
    const UprofFormat *format;
    void *state;
} Render;

static void
render_stack(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    const Render *render = data;

    if (render->format->stack)
        render->format->stack(render->state, frames, n, weight);
}

GString *
uprof_output_render(const UprofFormat *format, const UprofProfile *profile, const UprofRun *run)
{
    GString *out = g_string_new(NULL);
    Render render = { format, format->begin(run) };

    uprof_profile_walk(profile, render_stack, &render);
    format->end(render.state, out);
    return out;
}
