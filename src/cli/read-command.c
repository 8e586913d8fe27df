/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "read-command-priv.h"

#include "exit-priv.h"
#include "uprof/config.h"
#include "uprof/text.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    UprofReadCommand command;
    UprofErrorCode (*run)(const UprofReadCommand *command);
} Work;

static UprofErrorCode
run_command(void *data)
{
    const Work *work = data;

    return uprof_error_merge(work->command.code, work->run(&work->command));
}

static UprofFileRules *
make_rules(const UprofOptions *options)
{
    const UprofSymbolSettings symbols = uprof_options_symbols(options);
    UprofFileRules *rules = uprof_file_rules_new();

    for (guint i = 0; i < options->words->len; i++) {
        const char *word = g_ptr_array_index(options->words, i);
        g_autofree char *sidecar = uprof_load_sidecar_path(word);
        uprof_file_rules_add_input(rules, word);
        if (sidecar)
            uprof_file_rules_add_input(rules, sidecar);
    }
    uprof_file_rules_add_settings(rules, &symbols);
    uprof_file_rules_allow_recorded(rules);
    return rules;
}

static void
free_file(gpointer file)
{
    uprof_file_abort(file);
}

/* Returns: (transfer full) (nullable): of UprofFile; %NULL with an error */
static GPtrArray *
open_outputs(const UprofOptions *options, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(free_file);

    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        UprofFile *file =
            uprof_file_open(wanted->path, wanted->format && wanted->format->is_secret, error);
        if (!file)
            return NULL;
        g_ptr_array_add(files, file);
    }
    return g_steal_pointer(&files);
}

/* Returns: (transfer full) (nullable): %NULL with an error */
static UprofStore *
open_store(const UprofOptions *options, GError **error)
{
    g_autoptr(UprofConfig) config =
        options->store ? NULL : uprof_config_load(options->config_path, error);

    if (!options->store && !config)
        return NULL;
    return uprof_store_open(options->store ? options->store : config->store, false, error);
}

/* Lists the store, and allows to read its files. */
static UprofCatalog *
list_store(UprofStore *store, UprofFileRules *rules, const UprofNotices *notices,
           UprofErrorCode *code)
{
    UprofCatalog *catalog = uprof_catalog_new(store, notices, code);
    g_autoptr(GPtrArray) folders = uprof_catalog_paths(catalog);

    for (guint i = 0; i < folders->len; i++)
        uprof_file_rules_add_folder(rules, g_ptr_array_index(folders, i));
    return catalog;
}

static int
run_work(Work *work, const UprofFileRules *rules, const UprofNotices *notices)
{
    const UprofOptions *options = work->command.options;
    g_autoptr(GError) error = NULL;

    for (guint i = 0; i < options->words->len; i++)
        work->command.are_files[i] =
            g_file_test(g_ptr_array_index(options->words, i), G_FILE_TEST_EXISTS);
    for (guint i = 0; i < options->outputs->len; i++)
        uprof_load_target_init(&work->command.targets[i],
                               ((UprofWanted *)g_ptr_array_index(options->outputs, i))->path);
    g_autoptr(GPtrArray) outputs = open_outputs(options, &error);
    if (!outputs)
        return uprof_exit_say_error(error);
    const UprofConfinedPlan confined = {
        .run = run_command,
        .data = work,
        .rules = rules,
        .outputs = outputs,
        .symbols_max = (uint64_t)options->memory_mib << 20,
        .notices = notices,
    };
    const UprofErrorCode code = uprof_confined_command_run(&confined, &error);
    return error ? uprof_exit_say_error(error) : uprof_exit_of_code(code);
}

int
uprof_read_command_run(UprofOptions *options, bool reads_store,
                       UprofErrorCode (*run)(const UprofReadCommand *command))
{
    g_autofree UprofLoadTarget *targets = g_new0(UprofLoadTarget, options->outputs->len + 1);
    g_autofree bool *are_files = g_new0(bool, options->words->len + 1);
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(UprofFileRules) rules = make_rules(options);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStore) store = reads_store ? open_store(options, &error) : NULL;
    g_autoptr(UprofCatalog) catalog = NULL;
    Work work = { { .options = options, .targets = targets, .are_files = are_files }, run };

    if (error)
        return uprof_exit_say_error(error);
    if (store)
        catalog = list_store(store, rules, &notices, &work.command.code);
    work.command.catalog = catalog;
    return run_work(&work, rules, &notices);
}

bool
uprof_read_command_shows(const UprofOptions *options)
{
    for (guint i = 0; i < options->outputs->len; i++)
        if (strcmp(((UprofWanted *)g_ptr_array_index(options->outputs, i))->path, "-") == 0)
            return false;
    return isatty(STDOUT_FILENO);
}

UprofErrorCode
uprof_read_command_finish(const UprofReadCommand *command, unsigned i, const GError *error)
{
    const UprofWanted *wanted = g_ptr_array_index(command->options->outputs, i);
    g_autofree char *path = uprof_text_quote(wanted->path);
    UprofFile *file = uprof_confined_output(i);
    g_autoptr(GError) failure = NULL;

    if (!error && uprof_confined_commit(i, &failure)) {
        if (!command->options->quiet && strcmp(wanted->path, "-") != 0)
            uprof_say("wrote %s%s", path,
                      command->targets[i].exists && !command->targets[i].is_stream ? " (replaced)"
                                                                                   : "");
        return UPROF_ERROR_NONE;
    }
    if (!(error && uprof_file_is_closed(file)))
        uprof_say_error(error ? error : failure);
    return UPROF_ERROR_FAILED;
}
