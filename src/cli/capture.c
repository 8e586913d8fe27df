/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "capture-priv.h"

#include "access-priv.h"
#include "exit-priv.h"
#include "summary-priv.h"
#include "uprof/scan.h"
#include "uprof/text.h"

#include <string.h>

/* Symbol files that the capture names: the same files, or none. */
static void
add_recorded_symbols(UprofSym *sym, const UprofRun *run, const UprofSymConfig *config, bool quiet)
{
    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofNames) names = uprof_names_new();
        g_autoptr(UprofSym) trial = uprof_sym_new(uprof_arch_find(run->arch), names);
        UprofSymSource source = { 0 };
        if (!image->path)
            continue;
        uprof_sym_configure(trial, config);
        g_autofree char *shown = uprof_text_quote(image->path);
        uint64_t base = 0;
        const bool is_moved =
            image->base && uprof_slice_to_uint((UprofSlice){ image->base, strlen(image->base) }, 16,
                                               0, UINT64_MAX, &base);
        if (uprof_sym_add_file(trial, image->path, false, &error))
            uprof_sym_source(trial, 0, &source);
        if (error || g_strcmp0(source.digest, image->digest) != 0) {
            if (!quiet)
                uprof_say("virt-uprof: symbols '%s' %s; give them with -s", shown,
                          error ? "cannot be read here"
                                : "(or their debug file) have changed since the recording");
            continue;
        }
        uprof_sym_add_file_at(sym, image->path, is_moved ? &base : NULL, false, NULL);
    }
}

static bool
replay(UprofGuest *guest, UprofPipeline *pipeline, GError **error)
{
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    UprofAnswer answer;

    while ((answer = uprof_guest_next(guest, snapshot, error)) == UPROF_OK)
        uprof_pipeline_take(pipeline, snapshot, NULL);
    return answer != UPROF_FAILED;
}

/* What the command line says of stacks outranks what the recording was told. */
static void
apply_options(UprofRun *run, const UprofOptions *options)
{
    run->per_vcpu |= options->settings.per_vcpu;
    run->pids |= options->settings.pids;
    run->idle |= options->settings.idle;
    run->idle_stacks |= options->settings.idle_stacks;
    if (options->given_depth)
        run->max_depth = options->settings.max_depth;
    if (options->settings.given.unwind) {
        g_free(run->unwind);
        run->unwind = g_strdup(options->settings.unwind);
    }
    if (!run->domain)
        run->domain = g_strdup("");
}

static bool
add_symbols(UprofCaptureRead *read, const UprofOptions *options, GError **error)
{
    const UprofSymConfig config = uprof_options_sym_config(options);
    UprofSym *sym = read->pipeline->sym;

    uprof_sym_configure(sym, &config);
    if (!uprof_options_add_symbols(options, sym, error))
        return false;
    if (options->symbols->len == 0)
        add_recorded_symbols(sym, read->run, &config, options->quiet);
    return true;
}

void
uprof_capture_read_free(UprofCaptureRead *read)
{
    if (!read)
        return;
    uprof_pipeline_free(read->pipeline);
    uprof_guest_close(read->guest);
    g_free(read);
}

UprofCaptureRead *
uprof_capture_read(const char *path, const UprofOptions *options, bool keeps_times, int *code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofCaptureRead) read = g_new0(UprofCaptureRead, 1);
    const UprofTarget target = { .path = path };

    *code = UPROF_EXIT_OK;
    read->guest = uprof_guest_open(uprof_access_find("replay"), &target, &error);
    if (read->guest) {
        read->run = uprof_replay_run(read->guest);
        apply_options(read->run, options);
        read->pipeline = uprof_pipeline_new(read->guest, read->run, NULL);
    }
    if (!read->guest || !add_symbols(read, options, &error)) {
        *code = uprof_say_error(error);
        return NULL;
    }
    if (keeps_times)
        uprof_profile_keep_times(read->pipeline->profile);
    uprof_pipeline_begin(read->pipeline, NULL);
    if (!replay(read->guest, read->pipeline, &error))
        *code = uprof_say_error(error); /* what was whole before it counts */
    uprof_pipeline_end(read->pipeline);
    g_autofree char *shown = uprof_text_quote(read->run->domain);
    if (!options->quiet && read->run->samples > 0 && !uprof_replay_is_whole(read->guest)) {
        uprof_say("virt-uprof: %s: the capture was cut off, as of a run that was killed; what is "
                  "whole of it counts",
                  shown);
    }
    return g_steal_pointer(&read);
}
