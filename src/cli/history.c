/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "history-priv.h"

#include "exit-priv.h"
#include "moment-priv.h"
#include "stock-priv.h"
#include "uprof/clock.h"
#include "uprof/config.h"
#include "uprof/text.h"

#include <string.h>

static UprofStore *
open_store(const UprofOptions *options, GError **error)
{
    if (options->store)
        return uprof_store_open(options->store, false, error);
    g_autoptr(UprofConfig) config = uprof_config_load(options->config_path, error);
    return config ? uprof_store_open(config->store, false, error) : NULL;
}

static char *
format_moment(int64_t at_s)
{
    return uprof_clock_format_utc((uint64_t)MAX(at_s, 0) * UPROF_NS_PER_S, FALSE);
}

static int
say_nothing(const char *shown, int64_t since_s, int64_t until_s)
{
    g_autofree char *since = format_moment(since_s);
    g_autofree char *until = until_s == INT64_MAX ? g_strdup("now") : format_moment(until_s);

    uprof_say("virt-uprof: no profile of '%s' is stored from %s to %s; what there is: virt-uprof "
              "summary DAY",
              shown, since, until);
    return UPROF_EXIT_USELESS;
}

static int
add(UprofLoad *load, const UprofStock *stock, const char *word, int64_t since_s, int64_t until_s,
    const UprofOptions *options, GError **error)
{
    g_autofree char *shown = uprof_text_quote(word);
    g_autofree char *uuid = uprof_stock_find(stock, word, error);
    UprofStockGaps gaps = { 0 };

    if (!uuid)
        return UPROF_EXIT_DOMAIN;
    g_autoptr(GPtrArray) picks = uprof_stock_pick(stock, since_s, until_s, uuid, &gaps);
    if (gaps.n_gone > 0)
        uprof_say("virt-uprof: %s: %u profiles of that time are left only as part of a whole day, "
                  "and are not shown; give --since and --until as days",
                  shown, gaps.n_gone);
    if (gaps.n_damaged > 0)
        load->is_partial = true;
    int code = gaps.n_damaged > 0 ? UPROF_EXIT_FAILED : UPROF_EXIT_OK;
    if (picks->len == 0)
        return uprof_exit_worse(code, say_nothing(shown, since_s, until_s));
    return uprof_exit_worse(code, uprof_stock_load(load, picks, uuid, options));
}

int
uprof_history_add(UprofLoad *load, const char *word, int64_t since_s, int64_t until_s,
                  const UprofOptions *options)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofStore) store = open_store(options, &error);

    if (!store)
        return uprof_say_error(error);
    int opened = UPROF_EXIT_OK;
    g_autoptr(UprofStock) stock = uprof_stock_new(store, &opened);
    const int code = add(load, stock, word, since_s, until_s, options, &error);
    return uprof_exit_worse(opened, error ? uprof_say_error(error) : code);
}

bool
uprof_history_split(const char *word, char **domain, int64_t *day_s)
{
    const char *at = strrchr(word, '@');

    if (!at || at == word || g_file_test(word, G_FILE_TEST_EXISTS) ||
        !uprof_moment_parse_day(at + 1, uprof_moment_now(), day_s))
        return false;
    *domain = g_strndup(word, (gsize)(at - word));
    return true;
}
