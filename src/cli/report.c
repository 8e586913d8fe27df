/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * report.c - the command report: shows profiles as tables, as pictures or in other formats
 *
 * Several profiles become one. The command needs no rights and no hypervisor, so it works on any
 * machine.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "load-options-priv.h"
#include "read-command-priv.h"
#include "terminal-priv.h"
#include "uprof/missing-function.h"
#include "uprof/run-lines.h"
#include "uprof/processes.h"
#include "uprof/text.h"
#include "uprof/vcpu-tables.h"

#include <string.h>
#include <unistd.h>

enum { DEFAULT_ROWS = 15 };

/* ---- Files ---- */

static bool
check_terminal(const UprofWanted *wanted)
{
    if (!wanted->format->is_binary || strcmp(wanted->path, "-") != 0 || !isatty(STDOUT_FILENO))
        return true;
    uprof_say("virt-uprof: format '%s' is binary and not written to a terminal; use -o FILE",
              wanted->format->name);
    return false;
}

/* Writes output @i of the command line. */
static UprofErrorCode
write_file(const UprofReadCommand *command, guint i, const UprofLoad *load)
{
    const UprofWanted *wanted = g_ptr_array_index(command->options->outputs, i);
    g_autoptr(GError) error = NULL;

    if (!uprof_load_check_output(load, &command->targets[i], &error))
        return uprof_say_error(error);
    if (!check_terminal(wanted))
        return UPROF_ERROR_FAILED;
    uprof_output_write(wanted->format, load->profile, load->run, uprof_confined_output(i), &error);
    return uprof_read_command_finish(command, i, error);
}

static UprofErrorCode
write_files(const UprofReadCommand *command, const UprofLoad *load)
{
    const GPtrArray *outputs = command->options->outputs;
    UprofErrorCode code = UPROF_ERROR_NONE;

    for (guint i = 0; i < outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(outputs, i);
        if (strcmp(wanted->path, "-") != 0)
            g_ptr_array_add(load->run->files, g_path_get_basename(wanted->path));
    }
    for (guint i = 0; i < outputs->len; i++)
        code = uprof_error_merge(code, write_file(command, i, load));
    return code;
}

static UprofErrorCode
write_stdout(const UprofOptions *options, const UprofLoad *load)
{
    const UprofWanted wanted = { .path = (char *)"-", .format = options->format };
    g_autoptr(GError) error = NULL;

    if (!check_terminal(&wanted))
        return UPROF_ERROR_FAILED;
    g_autoptr(UprofFile) file = uprof_file_open(wanted.path, false, &error);
    if (uprof_output_write(options->format, load->profile, load->run, file, &error))
        return UPROF_ERROR_NONE;
    if (!uprof_file_is_closed(file))
        uprof_say_error(error);
    return UPROF_ERROR_FAILED;
}

/* ---- Tables ---- */

static UprofErrorCode
print_vcpus(const UprofLoad *load, const UprofTableStyle *style)
{
    GString *text = uprof_vcpu_tables_render(load->profile, style);

    if (text->len > 0)
        return uprof_terminal_print(text);
    g_string_free(text, TRUE);
    const char *missing = uprof_processes_missing(load->profile, UPROF_BY_VCPU);
    uprof_say("virt-uprof: %s", missing ? missing
                                        : "cannot show vCPUs: the profiles are of several domains; "
                                          "report them one by one");
    return UPROF_ERROR_EMPTY;
}

static UprofErrorCode
say_missing(char *why)
{
    uprof_say("virt-uprof: %s", why);
    g_free(why);
    return UPROF_ERROR_EMPTY;
}

static UprofErrorCode
print_annotation(const UprofOptions *options, const UprofLoad *load)
{
    const UprofTableStyle style =
        uprof_terminal_style(options->rows > 0 ? options->rows : DEFAULT_ROWS);
    g_autofree char *name = uprof_text_quote(options->annotate);

    if (!load->annotation || load->annotation->functions->len == 0)
        return say_missing(uprof_load_explain_instructions(load, options->annotate));
    return uprof_terminal_print(options->json
                                    ? uprof_json_annotation(load->annotation, name, load->run)
                                    : uprof_annotation_render(load->annotation, name, &style));
}

static UprofErrorCode
print_tables(const UprofOptions *options, const UprofLoad *load)
{
    UprofTableStyle style = uprof_terminal_style(options->rows > 0 ? options->rows : DEFAULT_ROWS);
    g_autoptr(UprofFocus) focus =
        options->focus ? uprof_focus_new(load->profile, options->focus) : NULL;
    const char *missing = uprof_processes_missing(load->profile, options->by);

    if (options->annotate)
        return print_annotation(options, load);
    if (options->focus && !focus)
        return say_missing(uprof_load_explain_function(load, options->focus));
    if (missing && !(options->by == UPROF_BY_PROCESS && load->run->kernel.has_tasks)) {
        uprof_say("virt-uprof: %s", missing);
        return UPROF_ERROR_EMPTY;
    }
    if (options->json)
        return uprof_terminal_print(
            uprof_json_report(load->profile, load->run, focus, options->by));
    if (focus)
        return uprof_terminal_print(uprof_table_render_focus(focus, &style));
    style.by = options->by;
    if (options->settings.per_vcpu)
        return print_vcpus(load, &style);
    return uprof_terminal_print(uprof_table_render(load->profile, &style));
}

/* ---- The command ---- */

static UprofErrorCode
write_outputs(const UprofReadCommand *command, const UprofLoad *load)
{
    const UprofOptions *options = command->options;
    const UprofErrorCode code = write_files(command, load);

    if (options->outputs->len > 0 && !options->json && !uprof_read_command_shows(options))
        return code;
    if (options->format && options->outputs->len == 0 && !options->json)
        return write_stdout(options, load);
    return uprof_error_merge(code, print_tables(options, load));
}

/* Does an output need the times of samples? Only a capture has them, if it is the only input. */
static bool
wants_times(const UprofOptions *options)
{
    if (options->words->len != 1)
        return false;
    for (guint i = 0; i < options->outputs->len; i++)
        if (((const UprofWanted *)g_ptr_array_index(options->outputs, i))->format->is_timed)
            return true;
    return options->format && options->format->is_timed;
}

static UprofErrorCode
add_profiles(UprofLoad *load, const UprofReadCommand *command)
{
    const UprofOptions *options = command->options;
    UprofErrorCode code = UPROF_ERROR_NONE;

    if (options->words->len == 0)
        return uprof_load_options_add_stored(command->catalog, load, NULL, options->since_s,
                                             options->until_s);
    for (guint i = 0; i < options->words->len; i++) {
        const char *word = g_ptr_array_index(options->words, i);
        const UprofErrorCode added =
            options->is_stored ? uprof_load_options_add_stored(command->catalog, load, word,
                                                               options->since_s, options->until_s)
                               : uprof_load_add_file(load, word);
        code = uprof_error_merge(code, added);
    }
    return code;
}

static void
say_summary(const UprofOptions *options, const UprofLoad *load)
{
    g_autofree char *shown = uprof_text_quote(load->run->domain);
    const UprofRunLinesHow how = { .is_verbose = options->verbose };

    /* only captures and the store count frames; if nothing ran, the table is empty */
    if (!options->quiet && (load->run->frames > 0 || load->run->running == 0))
        uprof_say_lines(uprof_run_lines_end(load->run, shown, &how));
}

static UprofErrorCode
run_report(const UprofReadCommand *command)
{
    const UprofOptions *options = command->options;
    UprofLoadOptions load_options;
    g_autoptr(UprofNames) names = uprof_names_new();

    uprof_load_options_init(&load_options, options);
    load_options.settings.replay.keeps_times = wants_times(options);
    g_autoptr(UprofLoad) load = uprof_load_new(names, &load_options.settings);
    const UprofErrorCode code = add_profiles(load, command);
    if (load->n_files == 0)
        return code;
    if (load->is_partial && !options->quiet)
        uprof_say("virt-uprof: not all of the input could be read: showing the rest: "
                  "%" G_GUINT64_FORMAT " sample%s",
                  load->run->samples, load->run->samples == 1 ? "" : "s");
    if (options->lines && load->run->frames == 0)
        uprof_say(
            "virt-uprof: --lines needs a capture: other profiles have no addresses to look up");
    const bool had_samples = load->run->samples > 0;
    if (!uprof_load_finish(load))
        return uprof_error_merge(code, UPROF_ERROR_FAILED);
    g_autofree char *domain = uprof_text_quote(load->run->domain);
    uprof_say_lines(uprof_run_lines_untimed(load->profile, domain));
    if (load->run->samples == 0) {
        g_autofree char *name = uprof_text_quote(
            options->words->len > 0 ? g_ptr_array_index(options->words, 0) : "the store");
        uprof_say("virt-uprof: '%s' has no sample%s", name,
                  had_samples ? " left after --include and --exclude" : "");
        return uprof_error_merge(code, UPROF_ERROR_EMPTY);
    }
    say_summary(options, load);
    return uprof_error_merge(code, write_outputs(command, load));
}

int
uprof_report_run(UprofOptions *options)
{
    return uprof_read_command_run(options, options->is_stored, run_report);
}
