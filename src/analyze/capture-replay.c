/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/capture-replay.h"

#include "uprof/capture.h"
#include "uprof/scan.h"
#include "uprof/task-record.h"
#include "uprof/text.h"

#include <string.h>

/* ---- Symbols ---- */

/* Was @image at another address than its file in the recording? @base: (out): this address */
static bool
is_moved_image(const UprofRunImage *image, uint64_t *base)
{
    return image->base && uprof_slice_to_uint((UprofSlice){ image->base, strlen(image->base) }, 16,
                                              0, UINT64_MAX, base);
}

/* Returns: (nullable): why the file that the capture names cannot be used now; a literal */
static const char *
find_obstacle(const UprofRunImage *image, const UprofRun *run, const UprofSymConfig *config)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofSym) trial = uprof_sym_new(uprof_arch_find(run->arch), names);
    UprofSymSource source = { 0 };

    uprof_sym_configure(trial, config);
    if (!uprof_sym_add_file(trial, image->path, false, NULL))
        return "cannot be read here";
    uprof_sym_source(trial, 0, &source);
    return g_strcmp0(source.digest, image->digest) == 0
               ? NULL
               : "(or their debug file) have changed since the recording";
}

/*
 * Adds the symbol files that the capture names, if they are still the same files.
 *
 * @images: of UprofRunImage
 * @wrong: (nullable): the path of a file that is known to be wrong
 */
static void
add_recorded_symbols(UprofCaptureReplay *replay, const GPtrArray *images, const char *wrong,
                     const UprofReplaySettings *settings)
{
    const UprofSymConfig *config = &settings->symbols->config;
    UprofSym *sym = replay->pipeline->sym;

    for (guint i = 0; i < images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(images, i);
        uint64_t base;
        if (!image->path || g_strcmp0(image->path, wrong) == 0)
            continue;
        const char *obstacle = find_obstacle(image, replay->run, config);
        if (obstacle) {
            g_autofree char *shown = uprof_text_quote(image->path);
            uprof_notice(settings->notices, UPROF_NOTICE_HINT, "symbols '%s' %s; give them with -s",
                         shown, obstacle);
            continue;
        }
        const bool is_moved = is_moved_image(image, &base);
        uprof_sym_add_file_at(sym, image->path, is_moved ? &base : NULL, false, NULL);
    }
}

static bool
add_symbols(UprofCaptureReplay *replay, const UprofReplaySettings *settings, GError **error)
{
    UprofSym *sym = replay->pipeline->sym;

    const bool ok = uprof_symbol_settings_apply(settings->symbols, sym, error);
    uprof_sym_set_domain(sym, replay->run->uuid);
    if (!ok)
        return false;
    replay->n_given = uprof_sym_n_sources(sym);
    if (replay->n_given == 0)
        add_recorded_symbols(replay, replay->run->images, NULL, settings);
    return true;
}

/* If a file of the user is not what the guest ran, the files that the capture names are used. */
static void
replace_mismatched(UprofCaptureReplay *replay, const UprofRun *recorded,
                   const UprofReplaySettings *settings)
{
    const char *path = uprof_pipeline_find_mismatch(replay->pipeline, replay->n_given);
    UprofSym *sym = replay->pipeline->sym;

    if (!path)
        return;
    const unsigned n_before = uprof_sym_n_sources(sym);
    g_autofree char *wrong = uprof_text_quote(path);
    replay->n_given = 0;
    add_recorded_symbols(replay, recorded->images, path, settings);
    uprof_notice(
        settings->notices, UPROF_NOTICE_WARNING, "'%s' is not what the guest ran; ignored%s", wrong,
        uprof_sym_n_sources(sym) > n_before ? ", taking the files that the capture names" : "");
    uprof_pipeline_add_images(replay->pipeline, NULL);
}

/* ---- The replay ---- */

/* Applies the settings, which override those of the recording. */
static void
apply_settings(UprofRun *run, const UprofReplaySettings *settings)
{
    run->per_vcpu |= settings->per_vcpu;
    run->pids |= settings->pids;
    run->cgroups |= settings->cgroups;
    run->native |= settings->native;
    run->idle |= settings->idle;
    run->idle_stacks |= settings->idle_stacks;
    if (settings->max_depth > 0)
        run->max_depth = settings->max_depth;
    if (settings->unwind) {
        g_free(run->unwind);
        run->unwind = g_strdup(settings->unwind);
    }
    if (!run->domain)
        run->domain = g_strdup("");
}

static bool
open_capture(UprofCaptureReplay *replay, const char *path, const UprofReplaySettings *settings,
             GError **error)
{
    const UprofTarget target = { .path = path };

    replay->guest = uprof_guest_open(&uprof_replay_ops, &target, error);
    if (!replay->guest)
        return false;
    replay->run = uprof_replay_run(replay->guest);
    apply_settings(replay->run, settings);
    replay->pipeline = uprof_pipeline_new(replay->guest, replay->run, NULL);
    if (settings->wants_tasks)
        uprof_linux_want_tasks(replay->pipeline->kernel);
    if (settings->annotate)
        replay->places = uprof_hot_places_new(settings->annotate, replay->guest);
    replay->pipeline->places = replay->places;
    return add_symbols(replay, settings, error);
}

/* Analyzes snapshots up to the first malformed one. Returns: false with the error of that one */
static bool
analyze_snapshots(UprofCaptureReplay *replay, const UprofRun *recorded,
                  const UprofReplaySettings *settings, GError **error)
{
    g_autofree UprofSnapshot *snapshot = g_new0(UprofSnapshot, 1);
    UprofAnswer answer;

    while ((answer = uprof_guest_next(replay->guest, snapshot, error)) == UPROF_OK) {
        uprof_pipeline_take(replay->pipeline, snapshot, NULL);
        replay->time_ns = snapshot->time_ns;
        replay->reset = snapshot->reset;
        replace_mismatched(replay, recorded, settings);
    }
    return answer != UPROF_FAILED;
}

/* Without a list, as in an older capture, the rings of tasks are followed in the pages. */
static bool
take_tasks(UprofCaptureReplay *replay, GError **error)
{
    const UprofSlice tasks = uprof_replay_tasks(replay->guest);

    if (tasks.len == 0)
        return true;
    replay->pipeline->tasks = uprof_task_record_parse(tasks, error);
    return replay->pipeline->tasks != NULL;
}

bool
uprof_capture_replay_accepts(UprofSlice head)
{
    const size_t len = strlen(UPROF_CAPTURE_MAGIC);

    return head.len >= len && memcmp(head.data, UPROF_CAPTURE_MAGIC, len) == 0;
}

bool
uprof_capture_replay_is_complete(const UprofCaptureReplay *replay)
{
    return uprof_replay_is_complete(replay->guest);
}

void
uprof_capture_replay_free(UprofCaptureReplay *replay)
{
    if (!replay)
        return;
    uprof_pipeline_free(replay->pipeline);
    uprof_hot_places_free(replay->places);
    uprof_guest_close(replay->guest);
    g_free(replay);
}

UprofCaptureReplay *
uprof_capture_replay_new(const char *path, const UprofReplaySettings *settings,
                         UprofErrorCode *code)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofCaptureReplay) replay = g_new0(UprofCaptureReplay, 1);
    g_autoptr(UprofRun) recorded = uprof_run_new();

    *code = UPROF_ERROR_NONE;
    if (!open_capture(replay, path, settings, &error)) {
        *code = uprof_notice_error(settings->notices, error);
        return NULL;
    }
    if (settings->keeps_times)
        uprof_profile_keep_times(replay->pipeline->profile);
    GPtrArray *images = replay->run->images;
    replay->run->images = recorded->images;
    recorded->images = images;
    uprof_pipeline_begin(replay->pipeline, NULL);
    /* after an error, the snapshots before the error count */
    if (!analyze_snapshots(replay, recorded, settings, &error) ||
        (settings->wants_tasks && !take_tasks(replay, &error)))
        *code = uprof_notice_error(settings->notices, error);
    uprof_pipeline_end(replay->pipeline, UPROF_SYM_RESOLVE_MS);
    if (replay->run->samples > 0 && !uprof_capture_replay_is_complete(replay)) {
        g_autofree char *shown = uprof_text_quote(replay->run->domain);
        uprof_notice(settings->notices, UPROF_NOTICE_HINT,
                     "%s: the capture is cut off, as if the recording was killed; its complete "
                     "samples count",
                     shown);
    }
    return g_steal_pointer(&replay);
}
