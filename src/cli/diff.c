/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * diff: two profiles, by share of running samples, so that rate, duration and
 * load cancel out.
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "history-priv.h"
#include "summary-priv.h"
#include "terminal-priv.h"
#include "uprof/text.h"

#include <string.h>

enum { ROWS_USUAL = 15, COMPLETE_PERMILLE_APART = 100 };

/* Returns: false with @code */
static bool
load_side(UprofLoad *load, const char *path, const UprofOptions *options, int *code)
{
    g_autofree char *domain = NULL;
    int64_t day_s;

    *code = uprof_exit_worse(
        *code, uprof_history_split(path, &domain, &day_s)
                   ? uprof_history_add(load, domain, day_s, day_s + UPROF_STORE_DAY_S, options)
                   : uprof_load_add(load, path, options));
    if (load->n_files == 0)
        return false;
    const int refused = uprof_load_finish(load, options, true);
    *code = uprof_exit_worse(*code, refused);
    if (refused != UPROF_EXIT_OK)
        return false;
    if (load->run->running == 0) {
        g_autofree char *shown = uprof_text_quote(path);
        uprof_say("virt-uprof: '%s' holds no running sample", shown);
        *code = uprof_exit_worse(*code, UPROF_EXIT_USELESS);
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

/* What is seen through other eyes looks different without being so. */
static void
warn(const UprofRun *old, const UprofRun *new)
{
    const uint64_t was = uprof_permille(old->truncated, old->running);
    const uint64_t is = uprof_permille(new->truncated, new->running);

    if (old->unwind && new->unwind && strcmp(old->unwind, new->unwind) != 0)
        uprof_say("virt-uprof: stacks were unwound in different ways (%s, %s): changes may come "
                  "from that",
                  old->unwind, new->unwind);
    if (MAX(was, is) - MIN(was, is) > COMPLETE_PERMILLE_APART)
        uprof_say("virt-uprof: of one profile far more stacks are truncated (%u %%, %u %%): "
                  "changes may come from that",
                  (unsigned)(was / 10), (unsigned)(is / 10));
}

static int
write_picture(const char *path, const UprofTree *both, const UprofLoad *old, const UprofLoad *new)
{
    g_autoptr(GError) error = NULL;

    if (!uprof_load_may_write(old, path) || !uprof_load_may_write(new, path))
        return UPROF_EXIT_FAILED;
    g_autoptr(UprofFile) file = uprof_file_open(path, false, &error);
    if (!file)
        return uprof_say_error(error);
    GString *picture = uprof_svg_compare(both, old->run, new->run);
    bool ok = uprof_file_write(file, picture->str, picture->len, &error);
    const bool is_closed = !ok && uprof_file_is_closed(file);
    g_string_free(picture, TRUE);
    ok = ok && uprof_file_commit(g_steal_pointer(&file), &error);
    if (!ok && !is_closed)
        uprof_say_error(error);
    return ok ? UPROF_EXIT_OK : UPROF_EXIT_FAILED;
}

static int
print_table(const UprofOptions *options, const UprofTree *both, const UprofLoad *old,
            const UprofLoad *new)
{
    const UprofTableStyle style =
        uprof_terminal_style(options->rows > 0 ? options->rows : ROWS_USUAL);
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

static int
write_outputs(const UprofOptions *options, const UprofTree *both, const UprofLoad *old,
              const UprofLoad *new)
{
    bool is_stdout_taken = options->format && options->outputs->len == 0;
    int code = UPROF_EXIT_OK;

    if (is_stdout_taken)
        code = write_picture("-", both, old, new);
    for (guint i = 0; i < options->outputs->len; i++) {
        const UprofWanted *wanted = g_ptr_array_index(options->outputs, i);
        code = uprof_exit_worse(code, write_picture(wanted->path, both, old, new));
        is_stdout_taken |= strcmp(wanted->path, "-") == 0;
    }
    if (is_stdout_taken || (options->quiet && options->outputs->len > 0 && !options->json))
        return code;
    return uprof_exit_worse(code, print_table(options, both, old, new));
}

/*
 * The root of a profile is its domain, and two domains may be compared. Files of
 * other programs know none: what all of their stacks begin with is a function,
 * if the other side has it below its own root. What both sides begin with is the
 * root of both.
 */
static UprofTree *
plant(const UprofProfile *profile, const UprofTree *other)
{
    const UprofName *root = uprof_profile_root(profile);

    return root && uprof_tree_has_callee(other, root) ? uprof_tree_new_rootless(profile)
                                                      : uprof_tree_new(profile);
}

static UprofTree *
compare(const UprofProfile *old, const UprofProfile *new)
{
    const bool is_shared = uprof_profile_root(old) == uprof_profile_root(new);
    g_autoptr(UprofTree) seen = uprof_tree_new(new);
    g_autoptr(UprofTree) old_tree = is_shared ? uprof_tree_new(old) : plant(old, seen);
    g_autoptr(UprofTree) new_tree = is_shared ? uprof_tree_new(new) : plant(new, old_tree);

    return uprof_tree_compare(old_tree, new_tree);
}

int
uprof_diff_run(UprofOptions *options)
{
    g_autoptr(UprofNames) names = uprof_names_new();
    g_autoptr(UprofLoad) old = uprof_load_new(names, false);
    g_autoptr(UprofLoad) new = uprof_load_new(names, false);
    int code = UPROF_EXIT_OK;

    if (!load_side(old, g_ptr_array_index(options->words, 0), options, &code) ||
        !load_side(new, g_ptr_array_index(options->words, 1), options, &code))
        return code;
    g_autoptr(UprofTree) both = compare(old->profile, new->profile);
    if (!options->quiet)
        warn(old->run, new->run);
    return uprof_exit_worse(code, write_outputs(options, both, old, new));
}
