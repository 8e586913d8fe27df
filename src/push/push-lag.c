/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "push-lag-priv.h"

#include "push-log-priv.h"
#include "request-body-priv.h"
#include "uprof/clock.h"
#include "uprof/stored-rounds.h"

static void
count_round(UprofPushLag *lag, const UprofStoredRound *round, UprofPushState state,
            int64_t oldest_s)
{
    if (state == UPROF_PUSH_STATE_REFUSED || state == UPROF_PUSH_STATE_DAMAGED)
        lag->n_refused++;
    if ((state != UPROF_PUSH_STATE_NEW && state != UPROF_PUSH_STATE_LATER) ||
        round->start_s < oldest_s)
        return;
    if (lag->n_waiting++ == 0)
        lag->oldest_s = round->start_s;
}

bool
uprof_push_lag_measure(UprofStore *store, const UprofDestination *destination, UprofPushLag *lag,
                       GError **error)
{
    UprofErrorCode code = UPROF_ERROR_NONE;
    const int64_t age_s = (int64_t)(destination->max_age_ns / UPROF_NS_PER_S);
    const int64_t taken_s = uprof_clock_utc_s() - age_s;
    g_autoptr(UprofPushLog) log = uprof_push_log_open(store, destination->file, false, error);

    *lag = (UprofPushLag){ 0 };
    if (!log)
        return false;
    const int64_t oldest_s = taken_s;
    g_autoptr(UprofCatalog) catalog = uprof_catalog_new(store, NULL, &code);
    g_autoptr(UprofStoredRounds) rounds = uprof_stored_rounds_new(catalog);
    const GArray *list = uprof_stored_rounds_list(rounds);
    for (guint i = 0; i < list->len; i++) {
        const UprofStoredRound *round = &g_array_index(list, UprofStoredRound, i);
        if (uprof_request_may_want(round, destination))
            count_round(lag, round, uprof_push_log_state(log, round->stem, NULL), oldest_s);
    }
    return true;
}

static void
append_line(GString *text, UprofStore *store, const UprofDestination *destination)
{
    g_autoptr(GError) error = NULL;
    UprofPushLag lag;

    g_string_append_printf(text, "%s: ", destination->name);
    if (!uprof_push_lag_measure(store, destination, &lag, &error)) {
        g_string_append_printf(text, "%s\n", error->message);
        return;
    }
    if (lag.n_waiting == 0) {
        g_string_append(text, "has all rounds");
    } else {
        g_autofree char *oldest = uprof_clock_format_local(lag.oldest_s);
        g_string_append_printf(text, "%u round%s not sent yet, the oldest of %s", lag.n_waiting,
                               lag.n_waiting == 1 ? " is" : "s are", oldest);
    }
    if (lag.n_refused > 0)
        g_string_append_printf(text, "; %u refused", lag.n_refused);
    g_string_append_c(text, '\n');
}

char *
uprof_push_describe_lag(UprofStore *store, const GPtrArray *destinations)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < destinations->len; i++)
        append_line(text, store, g_ptr_array_index(destinations, i));
    return g_string_free(text, FALSE);
}
