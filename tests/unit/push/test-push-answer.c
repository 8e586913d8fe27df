/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/push/push-answer-priv.h"

#include <glib.h>
#include <string.h>

static UprofPushAnswer
read_answer(uint32_t kind, uint32_t status, bool is_json, const char *words)
{
    const UprofPushAnswerHead head = { kind, status, 7, is_json ? 1 : 0 };
    UprofPushAnswer answer;

    uprof_push_answer_read(&head, (UprofSlice){ words, strlen(words) }, &answer);
    return answer;
}

static void
test_status(void)
{
    static const struct {
        uint32_t status;
        UprofPushVerdict verdict;
    } rows[] = {
        { 200, UPROF_VERDICT_SENT },    { 204, UPROF_VERDICT_SENT },
        { 400, UPROF_VERDICT_REFUSED }, { 413, UPROF_VERDICT_REFUSED },
        { 422, UPROF_VERDICT_REFUSED }, { 418, UPROF_VERDICT_REFUSED },
        { 408, UPROF_VERDICT_AGAIN },   { 429, UPROF_VERDICT_AGAIN },
        { 500, UPROF_VERDICT_AGAIN },   { 503, UPROF_VERDICT_AGAIN },
        { 504, UPROF_VERDICT_AGAIN },   { 401, UPROF_VERDICT_LEAVE },
        { 403, UPROF_VERDICT_LEAVE },   { 404, UPROF_VERDICT_LEAVE },
        { 405, UPROF_VERDICT_LEAVE },   { 407, UPROF_VERDICT_LEAVE },
        { 426, UPROF_VERDICT_LEAVE },   { 499, UPROF_VERDICT_AGAIN },
        { 302, UPROF_VERDICT_LEAVE },   { 101, UPROF_VERDICT_LEAVE },
        { 0, UPROF_VERDICT_LEAVE },     { UINT32_MAX, UPROF_VERDICT_LEAVE },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(UprofPushAnswer) answer =
            read_answer(UPROF_PUSH_ANSWERED, rows[i].status, true, "why");
        g_assert_cmpint(answer.verdict, ==, rows[i].verdict);
        g_assert_cmpuint(answer.retry_s, ==, 7);
    }
}

/* A page of a proxy is not the answer of an engine. */
static void
test_page(void)
{
    g_auto(UprofPushAnswer) answer = read_answer(UPROF_PUSH_ANSWERED, 200, false, "<html>");
    g_autofree char *text = uprof_push_answer_describe(&answer);

    g_assert_cmpint(answer.verdict, ==, UPROF_VERDICT_LEAVE);
    g_assert_cmpstr(text, ==, "200 <html>; the answer is not that of an engine; check the url");
}

/* A web server, and not an engine, has refused the request. */
static void
test_refusing_page(void)
{
    static const struct {
        uint32_t status;
        UprofPushVerdict verdict;
    } rows[] = {
        { 400, UPROF_VERDICT_LEAVE }, { 422, UPROF_VERDICT_LEAVE }, { 413, UPROF_VERDICT_REFUSED },
        { 429, UPROF_VERDICT_AGAIN }, { 502, UPROF_VERDICT_AGAIN },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(UprofPushAnswer) answer =
            read_answer(UPROF_PUSH_ANSWERED, rows[i].status, false, "<html>");
        g_assert_cmpint(answer.verdict, ==, rows[i].verdict);
    }
}

static void
test_failures(void)
{
    g_auto(UprofPushAnswer) broken = read_answer(UPROF_PUSH_UNANSWERED, 0, false, "reset");
    g_auto(UprofPushAnswer) distrusted = read_answer(UPROF_PUSH_DISTRUSTED, 200, true, "expired");
    g_auto(UprofPushAnswer) strange = read_answer(UINT32_MAX, 200, true, "");
    g_autofree char *text = uprof_push_answer_describe(&broken);

    g_assert_cmpint(broken.verdict, ==, UPROF_VERDICT_AGAIN);
    g_assert_cmpstr(text, ==, "reset");
    g_assert_cmpint(distrusted.verdict, ==, UPROF_VERDICT_LEAVE);
    g_assert_cmpint(strange.verdict, ==, UPROF_VERDICT_LEAVE);
}

/* The words of an engine go to a terminal and into a file of lines. */
static void
test_hostile_words(void)
{
    g_autofree char *long_words = g_strnfill(5000, 'x');
    g_auto(UprofPushAnswer) escapes =
        read_answer(UPROF_PUSH_ANSWERED, 400, true, "a\x1b[2J\nb\r\xff");
    g_auto(UprofPushAnswer) endless = read_answer(UPROF_PUSH_ANSWERED, 400, true, long_words);

    for (const char *at = escapes.words; *at; at++)
        g_assert_true((unsigned char)*at >= ' ' && *at != 0x7f);
    g_assert_true(g_utf8_validate(escapes.words, -1, NULL));
    g_assert_cmpuint(strlen(endless.words), <=, 250);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/push-answer/status", test_status);
    g_test_add_func("/push-answer/page", test_page);
    g_test_add_func("/push-answer/refusing-page", test_refusing_page);
    g_test_add_func("/push-answer/failures", test_failures);
    g_test_add_func("/push-answer/hostile-words", test_hostile_words);
    return g_test_run();
}
