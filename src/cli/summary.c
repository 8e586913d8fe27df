/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * summary.c - the command summary: prints the summary of a day, or of today so far
 */
#include "commands-priv.h"

#include "exit-priv.h"
#include "read-command-priv.h"
#include "terminal-priv.h"
#include "uprof/clock.h"
#include "uprof/config.h"
#include "uprof/day-summary.h"
#include "uprof/push-lag.h"
#include "uprof/text.h"
#include "uprof/time-text.h"

/* @day_s: (out): the given day, or yesterday. Returns: false after a message if it is not a day */
static bool
choose_day(const UprofOptions *options, int64_t now_s, int64_t *day_s)
{
    *day_s = uprof_time_day_start(now_s) - UPROF_DAY_S;
    if (options->words->len == 0)
        return true;
    const char *word = g_ptr_array_index(options->words, 0);
    if (uprof_time_parse_day(word, now_s, day_s))
        return true;
    g_autofree char *shown = uprof_text_quote(word);
    uprof_say("virt-uprof: '%s' is not %s; try: virt-uprof --help", shown, UPROF_TIME_DAY_FORMS);
    return false;
}

static UprofErrorCode
run_summary(const UprofReadCommand *command)
{
    const UprofNotices notices = uprof_options_notices(command->options);
    const int64_t now_s = uprof_clock_utc_s();
    UprofErrorCode code = UPROF_ERROR_NONE;
    int64_t day_s;

    choose_day(command->options, now_s, &day_s);
    const bool is_over = day_s < uprof_time_day_start(now_s);
    GString *text = uprof_day_summary_render(command->catalog, day_s, is_over, &notices, &code);
    if (text)
        return uprof_error_merge(code, uprof_terminal_print(text));
    g_autofree char *day = uprof_time_format_date(day_s);
    g_autofree char *stored = uprof_catalog_describe_range(command->catalog);
    uprof_say("virt-uprof: nothing was collected on %s; stored: %s; see: summary DAY", day, stored);
    return uprof_error_merge(code, UPROF_ERROR_EMPTY);
}

/* Says how far behind the destinations of push are. */
static void
say_lag(const UprofOptions *options)
{
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, NULL);

    if (!config || config->destinations->len == 0 || options->quiet)
        return;
    g_autoptr(UprofStore) store =
        uprof_store_open(options->store ? options->store : config->store, false, NULL);
    g_autofree char *lag =
        store ? uprof_push_describe_lag(store, config->destinations) : g_strdup("");
    uprof_terminal_print(g_string_new(lag));
}

int
uprof_summary_run(UprofOptions *options)
{
    int64_t day_s;

    if (!choose_day(options, uprof_clock_utc_s(), &day_s))
        return UPROF_EXIT_USAGE;
    const int code = uprof_read_command_run(options, true, run_summary);
    if (code == UPROF_EXIT_OK)
        say_lag(options);
    return code;
}
