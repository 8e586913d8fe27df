/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * diff.c - the command diff: compares two profiles
 *
 * The command compares shares of running samples. So the profiles can differ in rate, duration and
 * load.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "load-options-priv.h"
#include "read-command-priv.h"
#include "terminal-priv.h"
#include "uprof/run-lines.h"
#include "uprof/clock.h"
#include "uprof/store.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

#include <string.h>

enum { DEFAULT_ROWS = 15, TRUNCATED_PERMILLE_APART = 100 };

/*
 * Parses DOMAIN@DAY, such as web-1@yesterday.
 *
 * @is_file: a file has the path @word
 */
static bool
parse_stored_day(const char *word, bool is_file, char **domain, int64_t *day_s)
{
    const char *at = strrchr(word, '@');

    if (!at || at == word || is_file || !uprof_time_parse_day(at + 1, uprof_clock_utc_s(), day_s))
        return false;
    *domain = g_strndup(word, (gsize)(at - word));
    return true;
}

/* Adds word @i: a file, or DOMAIN@DAY. Returns: an error code */
static UprofErrorCode
add_profile(UprofLoad *load, guint i, const UprofReadCommand *command)
{
    const char *word = g_ptr_array_index(command->options->words, i);
    g_autofree char *domain = NULL;
    int64_t day_s;

    if (!parse_stored_day(word, command->are_files[i], &domain, &day_s)) {
        const char *at = command->are_files[i] ? NULL : strrchr(word, '@');
        g_autofree char *shown = uprof_text_quote(word);
        if (!at)
            return uprof_load_add_file(load, word);
        uprof_say("virt-uprof: no file '%s'; a stored day is DOMAIN@DAY, where DAY is %s", shown,
                  UPROF_TIME_DAY_FORMS);
        return UPROF_ERROR_FAILED;
    }
    return uprof_load_options_add_stored(command->catalog, load, domain, day_s,
                                         day_s + UPROF_DAY_S);
}

/* Returns: false if there is nothing to compare; @code: (inout): why not */
static bool
load_side(UprofLoad *load, guint i, const UprofReadCommand *command, UprofErrorCode *code)
{
    *code = uprof_error_merge(*code, add_profile(load, i, command));
    if (load->n_files == 0)
        return false;
    if (!uprof_load_finish(load)) {
        *code = uprof_error_merge(*code, UPROF_ERROR_FAILED);
        return false;
    }
    if (load->run->running == 0) {
        g_autofree char *shown = uprof_text_quote(g_ptr_array_index(command->options->words, i));
        uprof_say("virt-uprof: '%s' has no running sample, so there is nothing to compare", shown);
        *code = uprof_error_merge(*code, UPROF_ERROR_EMPTY);
        return false;
    }
    return true;
}

static char *
describe_side(const UprofLoad *load)
{
    g_autofree char *running = uprof_format_percent(load->run->running, load->run->samples);

    return g_strdup_printf("%" G_GUINT64_FORMAT " samples, %s %% running", load->run->samples,
                           running);
}

/* Warns if the profiles were unwound differently, because this alone can cause changes. */
static void
warn_of_unwinding(const UprofRun *old, const UprofRun *new)
{
    const uint64_t was = uprof_permille(old->truncated, old->running);
    const uint64_t is = uprof_permille(new->truncated, new->running);

    if (old->unwind && new->unwind && strcmp(old->unwind, new->unwind) != 0)
        uprof_say("virt-uprof: stacks were unwound by different methods (%s, %s): changes may come "
                  "from that",
                  old->unwind, new->unwind);
    if (MAX(was, is) - MIN(was, is) > TRUNCATED_PERMILLE_APART)
        uprof_say("virt-uprof: one profile has far more truncated stacks (%u %%, %u %%): changes "
                  "may come from that",
                  (unsigned)(was / 10), (unsigned)(is / 10));
}

static GString *
draw_picture(const UprofReadCommand *command, const UprofTree *both, const UprofLoad *old,
             const UprofLoad *new)
{
    char *const *words = (char *const *)command->options->words->pdata;

    return uprof_svg_compare(both, old->run, new->run, words[0], words[1]);
}

/* Writes output @i of the command line. */
static UprofErrorCode
write_picture(const UprofReadCommand *command, guint i, const UprofTree *both, const UprofLoad *old,
              const UprofLoad *new)
{
    const UprofLoadTarget *target = &command->targets[i];
    g_autoptr(GError) error = NULL;

    if (!uprof_load_check_output(old, target, &error) ||
        !uprof_load_check_output(new, target, &error))
        return uprof_say_error(error);
    GString *picture = draw_picture(command, both, old, new);
    uprof_file_write(uprof_confined_output(i), picture->str, picture->len, &error);
    g_string_free(picture, TRUE);
    return uprof_read_command_finish(command, i, error);
}

static UprofErrorCode
print_table(const UprofOptions *options, const UprofTree *both, const UprofLoad *old,
            const UprofLoad *new)
{
    const UprofTableStyle style =
        uprof_terminal_style(options->rows > 0 ? options->rows : DEFAULT_ROWS);
    g_autofree char *was = describe_side(old);
    g_autofree char *is = describe_side(new);

    if (options->json)
        return uprof_terminal_print(uprof_json_changes(both, old->run, new->run));
    GString *text = uprof_table_render_changes(both, &style, options->verbose);
    g_autofree char *head = g_strdup_printf(
        "old: %s; new: %s; percent of running samples, and points of change\n", was, is);
    g_string_prepend(text, head);
    return uprof_terminal_print(text);
}

static UprofErrorCode
write_outputs(const UprofReadCommand *command, const UprofTree *both, const UprofLoad *old,
              const UprofLoad *new)
{
    const UprofOptions *options = command->options;
    bool is_stdout_taken = options->format && options->outputs->len == 0;
    UprofErrorCode code = UPROF_ERROR_NONE;

    if (is_stdout_taken)
        code = uprof_terminal_print(draw_picture(command, both, old, new));
    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        code = uprof_error_merge(code, write_picture(command, i, both, old, new));
        is_stdout_taken |= strcmp(wanted->path, "-") == 0;
    }
    if (is_stdout_taken || (options->quiet && options->outputs->len > 0 && !options->json))
        return code;
    return uprof_error_merge(code, print_table(options, both, old, new));
}

/*
 * A comparison treats two roots as equal, because usually each root is a domain. A profile of
 * another program has no domain, but if all its stacks begin with one function, that function looks
 * like a root. If the other profile has that function below its own root, the function is an
 * ordinary frame.
 */
static UprofTree *
new_rooted_tree(const UprofProfile *profile, const UprofTree *other)
{
    const UprofName *root = uprof_profile_root(profile);

    return root && uprof_tree_has_callee(other, root) ? uprof_tree_new_rootless(profile)
                                                      : uprof_tree_new(profile);
}

static UprofTree *
compare_profiles(const UprofProfile *old, const UprofProfile *new)
{
    const bool is_shared = uprof_profile_root(old) == uprof_profile_root(new);
    g_autoptr(UprofTree) seen = uprof_tree_new(new);
    g_autoptr(UprofTree) old_tree = is_shared ? uprof_tree_new(old) : new_rooted_tree(old, seen);
    g_autoptr(UprofTree) new_tree =
        is_shared ? uprof_tree_new(new) : new_rooted_tree(new, old_tree);

    return uprof_tree_compare(old_tree, new_tree);
}

static UprofErrorCode
run_diff(const UprofReadCommand *command)
{
    const UprofOptions *options = command->options;
    UprofLoadOptions load_options;
    g_autoptr(UprofNames) names = uprof_names_new();
    UprofErrorCode code = UPROF_ERROR_NONE;

    uprof_load_options_init(&load_options, options);
    load_options.settings.drop_idle = true;
    g_autoptr(UprofLoad) old = uprof_load_new(names, &load_options.settings);
    g_autoptr(UprofLoad) new = uprof_load_new(names, &load_options.settings);
    if (!load_side(old, 0, command, &code) || !load_side(new, 1, command, &code))
        return code;
    g_autoptr(UprofTree) both = compare_profiles(old->profile, new->profile);
    if (!options->quiet)
        warn_of_unwinding(old->run, new->run);
    return uprof_error_merge(code, write_outputs(command, both, old, new));
}

int
uprof_diff_run(UprofOptions *options)
{
    bool reads_store = false;

    for (guint i = 0; i < options->words->len; i++) {
        const char *word = g_ptr_array_index(options->words, i);
        g_autofree char *domain = NULL;
        int64_t day_s;
        reads_store |=
            parse_stored_day(word, g_file_test(word, G_FILE_TEST_EXISTS), &domain, &day_s);
    }
    return uprof_read_command_run(options, reads_store, run_diff);
}
