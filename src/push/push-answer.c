/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "push-answer-priv.h"

#include "uprof/text.h"

#include <string.h>

enum { WORDS_SHOWN_MAX = 200 };

/*
 * The states of HTTP are those of RFC 9110; Connect, of Pyroscope, maps its codes to them. Engines
 * describe an error as a JSON object. Another text comes from a server in front of the engine, or
 * from another web server, and says nothing about the profile.
 */
static UprofPushVerdict
judge_status(unsigned status, bool is_json)
{
    switch (status) {
    case 401:
    case 403:
    case 404:
    case 405:
    case 407:
    case 421:
    case 426:
        return UPROF_VERDICT_LEAVE;
    case 408:
    case 425:
    case 429:
    case 499: /* Connect: canceled */
        return UPROF_VERDICT_AGAIN;
    case 413: /* servers in front of the engine limit the size, too */
        return UPROF_VERDICT_REFUSED;
    default:
        break;
    }
    if (status / 100 == 5)
        return UPROF_VERDICT_AGAIN;
    if (!is_json || (status / 100 != 2 && status / 100 != 4))
        return UPROF_VERDICT_LEAVE;
    return status / 100 == 2 ? UPROF_VERDICT_SENT : UPROF_VERDICT_REFUSED;
}

/* Returns: (nullable): what the administrator can do about an answer that ends the push */
static const char *
find_advice(unsigned status)
{
    switch (status) {
    case 401:
    case 403:
        return "check the credentials and the tenant";
    case 404:
    case 405:
        return "check the url and the type";
    case 407:
        return "a proxy wants credentials; see http_proxy in the environment";
    case 426:
        return "the server wants another protocol; check the url";
    default:
        break;
    }
    return status / 100 == 3
               ? "redirects are not followed; use the url to which the server redirects"
               : "the answer is not that of an engine; check the url";
}

static void
read_status(const UprofPushAnswerHead *head, UprofSlice words, UprofPushAnswer *answer)
{
    g_autofree char *shown =
        uprof_text_quote_slice((UprofSlice){ words.data, MIN(words.len, WORDS_SHOWN_MAX) });

    answer->status = head->status;
    answer->retry_s = head->retry_s;
    answer->date_s = head->date_s;
    answer->is_json = head->is_json == 1;
    answer->verdict = judge_status(head->status, head->is_json == 1);
    const char *advice = answer->verdict == UPROF_VERDICT_LEAVE ? find_advice(head->status) : NULL;
    answer->words = g_strconcat(shown, advice && shown[0] ? "; " : "", advice, NULL);
}

void
uprof_push_answer_read(const UprofPushAnswerHead *head, UprofSlice words, UprofPushAnswer *answer)
{
    *answer = (UprofPushAnswer){ 0 };
    if (head->kind == UPROF_PUSH_ANSWERED) {
        read_status(head, words, answer);
        return;
    }
    answer->verdict =
        head->kind == UPROF_PUSH_UNANSWERED ? UPROF_VERDICT_AGAIN : UPROF_VERDICT_LEAVE;
    answer->words = uprof_text_quote_slice(words);
}

void
uprof_push_answer_fail(UprofPushAnswer *answer, UprofPushVerdict verdict, const char *words)
{
    *answer = (UprofPushAnswer){ .verdict = verdict, .words = g_strdup(words) };
}

void
uprof_push_answer_clear(UprofPushAnswer *answer)
{
    g_clear_pointer(&answer->words, g_free);
}

char *
uprof_push_answer_describe(const UprofPushAnswer *answer)
{
    return answer->status > 0 ? g_strdup_printf("%u %s", answer->status, answer->words)
                              : g_strdup(answer->words);
}
