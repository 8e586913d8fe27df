/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * report: a capture again, on any machine, with its own symbol files or others.
 * Needs no rights and no hypervisor.
 */
#include "commands-priv.h"

#include "access-priv.h"
#include "exit-priv.h"
#include "pipeline-priv.h"
#include "summary-priv.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Symbol files that the capture names: the same files, or none. */
static void
add_recorded_symbols(UprofSym *sym, const UprofRun *run, bool quiet)
{
    for (guint i = 0; i < run->images->len; i++) {
        const UprofRunImage *image = g_ptr_array_index(run->images, i);
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofNames) names = uprof_names_new();
        g_autoptr(UprofSym) trial = uprof_sym_new(uprof_arch_find(run->arch), names);
        UprofSymSource source = { 0 };
        if (!image->path)
            continue;
        g_autofree char *shown = uprof_text_quote(image->path);
        if (uprof_sym_add_file(trial, image->path, false, &error))
            uprof_sym_source(trial, 0, &source);
        if (error || g_strcmp0(source.digest, image->digest) != 0) {
            if (!quiet)
                uprof_say("virt-uprof: symbols '%s' %s; give them with -s", shown,
                          error ? "cannot be read here" : "have changed since the recording");
            continue;
        }
        uprof_sym_add_file(sym, image->path, false, NULL);
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

static int
write_one(const UprofWanted *wanted, UprofPipeline *pipeline)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofFile) file = uprof_file_open(wanted->path, wanted->format->is_secret, &error);
    GString *text;

    if (!file)
        return uprof_say_error(error);
    text = uprof_output_render(wanted->format, pipeline->profile, pipeline->run);
    bool ok = uprof_file_write(file, text->str, text->len, &error);
    const bool is_closed = !ok && uprof_file_is_closed(file);
    g_string_free(text, TRUE);
    ok = ok && uprof_file_commit(g_steal_pointer(&file), &error);
    if (!ok && !is_closed)
        uprof_say_error(error);
    return ok ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

static int
write_outputs(UprofOptions *options, UprofPipeline *pipeline)
{
    int code = UPROF_EXIT_OK;

    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        if (strcmp(wanted->path, "-") != 0)
            g_ptr_array_add(pipeline->run->files, g_path_get_basename(wanted->path));
    }
    for (guint i = 0; i < options->outputs->len; i++)
        code = uprof_exit_worse(code, write_one(g_ptr_array_index(options->outputs, i), pipeline));
    if (options->json || (options->format && options->outputs->len == 0)) {
        UprofWanted wanted = { .path = (char *)"-",
                               .format = options->json ? &uprof_format_meta : options->format };
        return uprof_exit_worse(code, write_one(&wanted, pipeline));
    }
    if (options->outputs->len > 0)
        return code;
    GString *table = uprof_table_render(pipeline->profile, options->rows);
    fputs(table->str, stdout);
    g_string_free(table, TRUE);
    return fflush(stdout) == 0 ? code : UPROF_EXIT_FAILED;
}

static int
report_file(const char *path, UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    const UprofTarget target = { .path = path };
    g_autoptr(UprofGuest) guest = uprof_guest_open(uprof_access_find("replay"), &target, &error);

    if (!guest)
        return uprof_say_error(error);
    UprofRun *run = uprof_replay_run(guest);
    run->per_vcpu |= options->settings.per_vcpu;
    run->idle |= options->settings.idle;
    if (options->given_depth)
        run->max_depth = options->settings.max_depth;
    if (!run->domain)
        run->domain = g_strdup("");
    g_autofree char *shown = uprof_text_quote(run->domain);
    g_autoptr(UprofPipeline) pipeline = uprof_pipeline_new(guest, run, NULL);
    for (guint i = 0; i < options->symbols->len; i++)
        if (!uprof_sym_add_file(pipeline->sym, g_ptr_array_index(options->symbols, i), true,
                                &error))
            return uprof_say_error(error);
    if (options->symbols->len == 0)
        add_recorded_symbols(pipeline->sym, run, options->quiet);
    uprof_pipeline_begin(pipeline, NULL);
    int code = UPROF_EXIT_OK;
    if (!replay(guest, pipeline, &error))
        code = uprof_say_error(error); /* what was whole before it counts */
    uprof_pipeline_end(pipeline);
    if (run->samples == 0) {
        g_autofree char *name = uprof_text_quote(path);
        uprof_say("virt-uprof: '%s' holds no sample", name);
        return uprof_exit_worse(code, UPROF_EXIT_USELESS);
    }
    if (!options->quiet && !uprof_replay_is_whole(guest))
        uprof_say("virt-uprof: %s: the capture was cut off, as of a run that was killed; what is "
                  "whole of it counts",
                  shown);
    if (!options->quiet)
        uprof_summary_say_end(run, shown);
    return uprof_exit_worse(code, write_outputs(options, pipeline));
}

int
uprof_report_run(UprofOptions *options)
{
    UprofExitTally tally = { 0 };

    if (options->words->len > 1 && options->outputs->len > 0) {
        uprof_say("virt-uprof: several captures cannot share one output; report them one by one");
        return UPROF_EXIT_USAGE;
    }
    for (guint i = 0; i < options->words->len; i++)
        uprof_exit_count(&tally, report_file(g_ptr_array_index(options->words, i), options));
    return tally.code;
}
