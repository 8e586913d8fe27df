/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/push-probe.h"

#include "push-client-priv.h"
#include "request-body-priv.h"
#include "uprof/clock.h"

#include <stdlib.h>
#include <string.h>

enum { SKEW_S_MAX = 60 };

static const char empty_pyroscope[] =
    "{\"series\":[{\"labels\":[{\"name\":\"__name__\",\"value\":\"process_cpu\"},"
    "{\"name\":\"service_name\",\"value\":\"virt-uprof-check\"}],"
    "\"samples\":[{\"rawProfile\":\"\"}]}]}";
static const char empty_parca[] = "{\"tenant\":\"\",\"series\":[],\"normalized\":false}";

/* Returns: (transfer full) (nullable): how much the clocks differ, if profiles may be refused */
static char *
describe_skew(int64_t date_s)
{
    const int64_t ahead_s = uprof_clock_utc_s() - date_s;

    if (date_s == 0 || llabs(ahead_s) <= SKEW_S_MAX)
        return NULL;
    return g_strdup_printf("this host's clock is %" G_GINT64_FORMAT
                           " s %s that of the engine, which refuses profiles that are too old or "
                           "from the future; set the clock",
                           (int64_t)llabs(ahead_s), ahead_s > 0 ? "ahead of" : "behind");
}

static UprofProbeResult
judge_answer(const UprofDestination *destination, const UprofPushAnswer *answer, char **text)
{
    g_autofree char *words = uprof_push_answer_describe(answer);
    g_autofree char *skew = describe_skew(answer->date_s);
    /* an engine may call a request without a profile its own fault */
    const bool is_reached =
        answer->is_json && (answer->verdict == UPROF_VERDICT_SENT ||
                            answer->verdict == UPROF_VERDICT_REFUSED || answer->status == 500);

    if (!is_reached) {
        *text = g_strdup_printf("%s: %s", destination->url, words);
        return answer->status > 0 && answer->verdict == UPROF_VERDICT_AGAIN ? UPROF_PROBE_DOUBTFUL
                                                                            : UPROF_PROBE_FAILS;
    }
    *text = g_strdup_printf("%s answers a request without a profile with %u%s%s", destination->url,
                            answer->status, skew ? "; " : "", skew ? skew : "");
    return skew ? UPROF_PROBE_DOUBTFUL : UPROF_PROBE_WORKS;
}

UprofProbeResult
uprof_push_probe(const UprofDestination *destination, char **text)
{
    const char *body = destination->type == UPROF_DESTINATION_PARCA ? empty_parca : empty_pyroscope;
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofPushClient) client =
        uprof_push_client_new(destination, uprof_request_path(destination), &error);
    g_auto(UprofPushAnswer) answer = { 0 };

    if (!client) {
        *text = g_strdup(error->message);
        return UPROF_PROBE_FAILS;
    }
    uprof_push_client_send(client, (UprofSlice){ body, strlen(body) }, &answer);
    return judge_answer(destination, &answer, text);
}
