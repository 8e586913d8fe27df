/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "watch-rule-priv.h"

#include "uprof/clock.h"
#include "uprof/error.h"
#include "uprof/settings.h"
#include "uprof/text.h"

#include <string.h>

enum { SECONDS_MAX = 3600 };

static const char *const events[] = {
    "crash", "reboot", "watchdog", "io-error", "block-job", NULL
};

static const struct {
    const char *word;
    UprofWatchSubject subject;
    bool needs_name;
} subjects[] = {
    { "busy", UPROF_WATCH_BUSY, false },
    { "vcpu", UPROF_WATCH_VCPU, false },
    { "function", UPROF_WATCH_FUNCTION, true },
    { "process", UPROF_WATCH_PROCESS, true },
};

static bool
fail_rule(const char *text, const char *why, GError **error)
{
    g_autofree char *quoted = uprof_text_quote(text);

    g_set_error(error, UPROF_ERROR, UPROF_ERROR_USAGE, "--when '%s': %s", quoted, why);
    return false;
}

/* Cuts " for 5s" off the end of @words. */
static bool
take_time(UprofWatchRule *rule, char *words, GError **error)
{
    char *found = g_strrstr(words, " for ");
    const char *comparison = strpbrk(words, "<>");
    uint64_t time_ns;

    rule->seconds = UPROF_WATCH_RULE_S;
    if (!found || !comparison || found < comparison)
        return true;
    if (!uprof_settings_parse_duration(g_strstrip(found + strlen(" for ")), &time_ns) ||
        time_ns < UPROF_NS_PER_S || time_ns > SECONDS_MAX * UPROF_NS_PER_S)
        return fail_rule(rule->text, "a time after 'for' is 1s to 1h", error);
    rule->seconds = (unsigned)(time_ns / UPROF_NS_PER_S);
    *found = '\0';
    return true;
}

/* Cuts "> 80 %" off the end of @words. A name may have such signs, too, so the last one counts. */
static bool
take_limit(UprofWatchRule *rule, char *words, GError **error)
{
    char *above = strrchr(words, '>'), *below = strrchr(words, '<');
    char *sign = !below || (above && above > below) ? above : below;

    if (!sign)
        return fail_rule(
            rule->text, "expected such as 'busy > 80 %', 'function NAME > 30 %' or 'crash'", error);
    char *number = g_strstrip(sign + 1);
    if (g_str_has_suffix(number, "%"))
        number[strlen(number) - 1] = '\0';
    if (!uprof_settings_parse_budget(g_strchomp(number), &rule->limit_ppm))
        return fail_rule(rule->text, "a share is " UPROF_BUDGET_FORM, error);
    rule->is_below = sign == below;
    *sign = '\0';
    g_strchomp(words);
    return true;
}

/* Cuts " change" off the end of @words. */
static bool
take_change(UprofWatchRule *rule, char *words, GError **error)
{
    rule->is_change = g_str_has_suffix(words, " change");
    if (!rule->is_change)
        return true;
    words[strlen(words) - strlen(" change")] = '\0';
    g_strchomp(words);
    return !rule->is_below || fail_rule(rule->text, "a change is compared by '>'", error);
}

static bool
is_number(const char *text)
{
    return strspn(text, "0123456789") == strlen(text);
}

static bool
take_subject(UprofWatchRule *rule, const char *words, GError **error)
{
    const size_t len = strcspn(words, " ");

    for (size_t i = 0; i < G_N_ELEMENTS(subjects); i++) {
        if (strlen(subjects[i].word) != len || strncmp(words, subjects[i].word, len) != 0)
            continue;
        rule->subject = subjects[i].subject;
        rule->name = g_strstrip(g_strdup(words + len));
        if (subjects[i].needs_name && !rule->name[0])
            return fail_rule(rule->text, "its name is missing", error);
        if (rule->subject == UPROF_WATCH_BUSY && rule->name[0])
            return fail_rule(rule->text, "'busy' takes no name", error);
        return rule->subject != UPROF_WATCH_VCPU || is_number(rule->name) ||
               fail_rule(rule->text, "a vCPU is a number", error);
    }
    return fail_rule(rule->text,
                     "it begins with busy, vcpu, function or process, or is the name of an event",
                     error);
}

static bool
parse_rule(UprofWatchRule *rule, char *words, GError **error)
{
    if (g_strv_contains(events, words)) {
        rule->subject = UPROF_WATCH_EVENT;
        rule->name = g_strdup(words);
        return true;
    }
    return take_time(rule, words, error) && take_limit(rule, words, error) &&
           take_change(rule, words, error) && take_subject(rule, words, error);
}

UprofWatchRule *
uprof_watch_rule_new(const char *text, GError **error)
{
    g_autoptr(UprofWatchRule) rule = g_new0(UprofWatchRule, 1);
    g_autofree char *words = g_strstrip(g_strdup(text));

    rule->text = g_strdup(words);
    return parse_rule(rule, words, error) ? g_steal_pointer(&rule) : NULL;
}

void
uprof_watch_rule_free(UprofWatchRule *rule)
{
    if (!rule)
        return;
    g_free(rule->text);
    g_free(rule->name);
    g_free(rule);
}

bool
uprof_watch_rule_is_event(const UprofWatchRule *rule, const char *event)
{
    return rule->subject == UPROF_WATCH_EVENT && strcmp(rule->name, event) == 0;
}

bool
uprof_watch_rule_holds(const UprofWatchRule *rule, uint64_t now_ppm, uint64_t before_ppm)
{
    if (rule->is_change)
        return (now_ppm > before_ppm ? now_ppm - before_ppm : before_ppm - now_ppm) >
               rule->limit_ppm;
    return rule->is_below ? now_ppm < rule->limit_ppm : now_ppm > rule->limit_ppm;
}
