/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * history.c - the command history: the days and rounds that the store has
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "read-command-priv.h"
#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/history-picture.h"
#include "uprof/history-text.h"
#include "uprof/time-text.h"

enum { DAYS_DEFAULT = 14 };

/* The rounds of a domain that is named; without --since, those of the last day. */
static GPtrArray *
list_rounds(UprofHistoryQuery query, const UprofOptions *options, UprofErrorCode *code)
{
    if (!query.domain && !options->json)
        return g_ptr_array_new();
    if (!options->is_stored)
        query.since_s = uprof_clock_utc_s() - UPROF_DAY_S;
    return uprof_history_rounds(&query, code);
}

static UprofErrorCode
write_pictures(const UprofReadCommand *command, const UprofHistoryQuery *query)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) picture = uprof_history_draw(query, &code, &error);
    UprofErrorCode result = picture ? code : uprof_say_error(error);

    for (guint i = 0; picture && i < command->options->outputs->len; i++) {
        uprof_file_write(uprof_confined_output(i), picture->str, picture->len, &error);
        result = uprof_error_merge(result, uprof_read_command_finish(command, i, error));
        g_clear_error(&error);
    }
    return result;
}

static UprofErrorCode
run_history(const UprofReadCommand *command)
{
    const UprofOptions *options = command->options;
    const UprofNotices notices = uprof_options_notices(options);
    const UprofHistoryQuery query = {
        .catalog = command->catalog,
        .domain = options->words->len > 0 ? g_ptr_array_index(options->words, 0) : NULL,
        .since_s = options->is_stored ? options->since_s
                                      : uprof_clock_utc_s() - DAYS_DEFAULT * (int64_t)UPROF_DAY_S,
        .until_s = options->until_s,
        .notices = &notices,
    };
    UprofErrorCode code = UPROF_ERROR_NONE;
    if (options->outputs->len > 0)
        return write_pictures(command, &query);
    g_autoptr(GPtrArray) days = uprof_history_days(&query, &code);

    if (days->len == 0 && code == UPROF_ERROR_NONE) {
        g_autofree char *stored = uprof_catalog_describe_range(command->catalog);
        uprof_say("virt-uprof: nothing was collected in that time; stored: %s", stored);
        code = UPROF_ERROR_EMPTY;
    }
    if (days->len == 0)
        return code;
    g_autoptr(GPtrArray) rounds = list_rounds(query, options, &code);
    if (options->json)
        return uprof_error_merge(code, uprof_terminal_print(uprof_history_json(days, rounds)));
    GString *text = g_string_new(NULL);
    uprof_history_render(text, days);
    g_string_append(text, rounds->len > 0 ? "\n" : "");
    uprof_history_render(text, rounds);
    return uprof_error_merge(code, uprof_terminal_print(text));
}

int
uprof_history_run(UprofOptions *options)
{
    return uprof_read_command_run(options, true, run_history);
}
