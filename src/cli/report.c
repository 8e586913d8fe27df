/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * report: profiles again, on any machine: as tables, as pictures, in other
 * formats, several as one. Needs no rights and no hypervisor.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "history-priv.h"
#include "summary-priv.h"
#include "terminal-priv.h"
#include "uprof/processes.h"
#include "uprof/text.h"

#include <string.h>
#include <unistd.h>

enum { ROWS_USUAL = 15 };

/* ---- Files ---- */

static int
write_one(const UprofWanted *wanted, const UprofLoad *load)
{
    g_autoptr(GError) error = NULL;

    if (!uprof_load_may_write(load, wanted->path))
        return UPROF_EXIT_FAILED;
    if (wanted->format->is_binary && strcmp(wanted->path, "-") == 0 && isatty(STDOUT_FILENO)) {
        uprof_say("virt-uprof: format '%s' is nothing for a terminal", wanted->format->name);
        return UPROF_EXIT_FAILED;
    }
    g_autoptr(UprofFile) file = uprof_file_open(wanted->path, wanted->format->is_secret, &error);
    if (!file)
        return uprof_say_error(error);
    bool ok = uprof_output_write(wanted->format, load->profile, load->run, file, &error);
    const bool is_closed = !ok && uprof_file_is_closed(file);
    ok = ok && uprof_file_commit(g_steal_pointer(&file), &error);
    if (!ok && !is_closed)
        uprof_say_error(error);
    return ok ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

static int
write_files(const UprofOptions *options, const UprofLoad *load)
{
    int code = UPROF_EXIT_OK;

    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        if (strcmp(wanted->path, "-") != 0)
            g_ptr_array_add(load->run->files, g_path_get_basename(wanted->path));
    }
    for (guint i = 0; i < options->outputs->len; i++)
        code = uprof_exit_worse(code, write_one(g_ptr_array_index(options->outputs, i), load));
    return code;
}

/* ---- Tables ---- */

typedef struct {
    const UprofLoad *load;
    GPtrArray *profiles;  /* by vCPU: UprofProfile, or NULL */
    uint64_t n_elsewhere; /* samples that do not say on which one */
} Split;

static void
add_to_vcpu(const UprofName *const *frames, unsigned n, uint64_t weight, void *data)
{
    Split *split = data;
    uint32_t vcpu;

    if (n < 3 || !uprof_profile_level_is_vcpu(frames[1], &vcpu)) {
        split->n_elsewhere += weight;
        return;
    }
    if (vcpu >= split->profiles->len)
        g_ptr_array_set_size(split->profiles, (gint)vcpu + 1);
    gpointer *profile = &split->profiles->pdata[vcpu];
    if (!*profile)
        *profile = uprof_profile_new(split->load->names, frames[1], false);
    uprof_profile_add(*profile, frames + 2, n - 2, weight);
}

static void
free_profile(gpointer profile)
{
    uprof_profile_free(profile);
}

/* A table for each vCPU, with its share of all samples. */
static int
print_vcpus(const UprofLoad *load, const UprofTableStyle *style)
{
    g_autoptr(GPtrArray) profiles = g_ptr_array_new_with_free_func(free_profile);
    Split split = { .load = load, .profiles = profiles };
    GString *text = g_string_new(NULL);

    if (uprof_profile_root(load->profile))
        uprof_profile_walk(load->profile, add_to_vcpu, &split);
    for (guint i = 0; i < profiles->len; i++) {
        const UprofProfile *profile = g_ptr_array_index(profiles, i);
        if (!profile)
            continue;
        const uint64_t weight = uprof_profile_total(profile);
        g_autofree char *share = uprof_format_percent(weight, uprof_profile_total(load->profile));
        g_string_append_printf(text, "%svcpu%u: %" G_GUINT64_FORMAT " samples, %s %% of all\n",
                               text->len > 0 ? "\n" : "", i, weight, share);
        GString *table = uprof_table_render(profile, style);
        g_string_append_len(text, table->str, (gssize)table->len);
        g_string_free(table, TRUE);
    }
    if (text->len > 0 && split.n_elsewhere > 0) {
        g_autofree char *share =
            uprof_format_percent(split.n_elsewhere, uprof_profile_total(load->profile));
        g_string_append_printf(
            text, "\nof no vCPU that is known: %" G_GUINT64_FORMAT " samples, %s %% of all\n",
            split.n_elsewhere, share);
    }
    if (text->len > 0)
        return uprof_terminal_print(text);
    g_string_free(text, TRUE);
    uprof_say("virt-uprof: these stacks do not say on which vCPU they ran; captures do, and what "
              "was written with --per-vcpu");
    return UPROF_EXIT_USELESS;
}

static int
print_tables(const UprofOptions *options, const UprofLoad *load)
{
    UprofTableStyle style = uprof_terminal_style(options->rows > 0 ? options->rows : ROWS_USUAL);
    g_autoptr(UprofFocus) focus =
        options->focus ? uprof_focus_new(load->profile, options->focus) : NULL;

    if (options->focus && !focus) {
        g_autofree char *shown = uprof_text_quote(options->focus);
        uprof_say("virt-uprof: no stack has a function '%s'; names: virt-uprof report -n 1000000",
                  shown);
        return UPROF_EXIT_USELESS;
    }
    if (options->by_process && !load->run->kernel.has_tasks &&
        !uprof_processes_are_in(load->profile)) {
        uprof_say("virt-uprof: these stacks do not say which process ran; those of Linux guests "
                  "do");
        return UPROF_EXIT_USELESS;
    }
    if (options->json)
        return uprof_terminal_print(
            uprof_json_report(load->profile, load->run, focus, options->by_process));
    if (focus)
        return uprof_terminal_print(uprof_table_render_focus(focus, &style));
    style.by_process = options->by_process;
    if (options->settings.per_vcpu)
        return print_vcpus(load, &style);
    return uprof_terminal_print(uprof_table_render(load->profile, &style));
}

static int
write_outputs(const UprofOptions *options, const UprofLoad *load)
{
    const UprofWanted on_stdout = { .path = (char *)"-", .format = options->format };
    const int code = write_files(options, load);

    if (options->outputs->len > 0 && !options->json)
        return code;
    if (options->format && options->outputs->len == 0 && !options->json)
        return write_one(&on_stdout, load);
    return uprof_exit_worse(code, print_tables(options, load));
}

/* Whether anything that is to be written tells when stacks were seen. */
static bool
wants_times(const UprofOptions *options)
{
    for (guint i = 0; i < options->outputs->len; i++)
        if (((const UprofWanted *)g_ptr_array_index(options->outputs, i))->format->is_timed)
            return true;
    return options->format && options->format->is_timed;
}

static int
add_word(UprofLoad *load, const char *word, const UprofOptions *options)
{
    return options->is_stored
               ? uprof_history_add(load, word, options->since_s, options->until_s, options)
               : uprof_load_add(load, word, options);
}

int
uprof_report_run(UprofOptions *options)
{
    const GPtrArray *paths = options->words;
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) load = uprof_load_new(names, paths->len == 1 && wants_times(options));
    int code = UPROF_EXIT_OK;

    for (guint i = 0; i < paths->len; i++)
        code = uprof_exit_worse(code, add_word(load, g_ptr_array_index(paths, i), options));
    if (load->n_files == 0)
        return code;
    const bool had_samples = load->run->samples > 0;
    const int refused = uprof_load_finish(load, options, false);
    if (refused != UPROF_EXIT_OK)
        return uprof_exit_worse(code, refused);
    if (load->run->samples == 0) {
        g_autofree char *name = uprof_text_quote(g_ptr_array_index(paths, 0));
        uprof_say("virt-uprof: '%s' holds no sample%s", name,
                  had_samples ? " that --include and --exclude let pass" : "");
        return uprof_exit_worse(code, UPROF_EXIT_USELESS);
    }
    if (!options->quiet && load->run->frames > 0) {
        g_autofree char *shown = uprof_text_quote(load->run->domain);
        uprof_summary_say_end(load->run, shown);
    }
    return uprof_exit_worse(code, write_outputs(options, load));
}
