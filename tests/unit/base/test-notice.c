/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/notice.h"

static void
append_notice(UprofNoticeKind kind, const char *text, void *data)
{
    g_string_append_printf(data, "%d %s\n", (int)kind, text);
}

static void
test_notices_reach_their_taker(void)
{
    g_autoptr(GString) shown = g_string_new(NULL);
    g_autoptr(GError) error = g_error_new_literal(UPROF_ERROR, UPROF_ERROR_BAD_DATA, "50 % of it");
    const UprofNotices notices = { append_notice, shown };

    uprof_notice(&notices, UPROF_NOTICE_INFO, "%s has %d vCPUs", "web-1", 2);
    uprof_notice(&notices, UPROF_NOTICE_HINT, "give symbols");
    g_assert_cmpint(uprof_notice_error(&notices, error), ==, UPROF_ERROR_BAD_DATA);
    g_assert_cmpstr(shown->str, ==, "0 web-1 has 2 vCPUs\n1 give symbols\n2 50 % of it\n");
}

static void
test_notices_without_taker_are_dropped(void)
{
    g_autoptr(GError) error = g_error_new_literal(UPROF_ERROR, UPROF_ERROR_DENIED, "no");

    uprof_notice(NULL, UPROF_NOTICE_WARNING, "nobody listens");
    g_assert_cmpint(uprof_notice_error(NULL, error), ==, UPROF_ERROR_DENIED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/notice/reach-their-taker", test_notices_reach_their_taker);
    g_test_add_func("/notice/without-taker-are-dropped", test_notices_without_taker_are_dropped);
    return g_test_run();
}
