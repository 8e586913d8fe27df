/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "exit-priv.h"
#include "verdict-priv.h"

/* clang-format off */
static const struct {
    int code;
    UprofHelperEnd end;
    bool signaled;
    UprofVerdict verdict;
    const char *reason;
} cases[] = {
    { UPROF_EXIT_OK,        UPROF_HELPER_DONE, false, UPROF_VERDICT_DONE,    "said" },
    { UPROF_EXIT_OK,        UPROF_HELPER_DONE, true,  UPROF_VERDICT_DONE,    "said" },
    /* too slow, but all is stored */
    { UPROF_EXIT_OK,        UPROF_HELPER_SLOW, false, UPROF_VERDICT_DONE,    "said" },
    { UPROF_EXIT_FAILED,    UPROF_HELPER_SLOW, false, UPROF_VERDICT_FAILED,  "it took too long*" },
    { UPROF_EXIT_DOMAIN,    UPROF_HELPER_SLOW, false, UPROF_VERDICT_FAILED,  "it took too long*" },
    { UPROF_EXIT_FAILED,    UPROF_HELPER_DIED, false, UPROF_VERDICT_FAILED,  "*died*memory*" },
    { UPROF_EXIT_OK,        UPROF_HELPER_DIED, false, UPROF_VERDICT_FAILED,  "*died*memory*" },
    { UPROF_EXIT_LOCKED,    UPROF_HELPER_DONE, false, UPROF_VERDICT_SKIPPED, "said" },
    { UPROF_EXIT_DOMAIN,    UPROF_HELPER_DONE, false, UPROF_VERDICT_SKIPPED, "said" },
    { UPROF_EXIT_USELESS,   UPROF_HELPER_DONE, false, UPROF_VERDICT_FAILED,  "said" },
    { UPROF_EXIT_LEFT_HELD, UPROF_HELPER_DONE, false, UPROF_VERDICT_FAILED,  "said" },
    /* the round's end is no domain's failure */
    { UPROF_EXIT_FAILED,    UPROF_HELPER_DIED, true,  UPROF_VERDICT_SKIPPED, "the round was ended" },
    { UPROF_EXIT_USELESS,   UPROF_HELPER_DONE, true,  UPROF_VERDICT_SKIPPED, "the round was ended" },
    { UPROF_EXIT_FAILED,    UPROF_HELPER_SLOW, true,  UPROF_VERDICT_SKIPPED, "the round was ended" },
    { UPROF_EXIT_LEFT_HELD, UPROF_HELPER_DONE, true,  UPROF_VERDICT_FAILED,  "said" },
};
/* clang-format on */

static void
test_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const UprofVerdict verdict = uprof_verdict(cases[i].code, cases[i].end, cases[i].signaled);
        const char *reason = uprof_verdict_reason(verdict, cases[i].end, cases[i].signaled, "said");
        g_test_message("case %zu", i);
        g_assert_cmpint(verdict, ==, cases[i].verdict);
        g_assert_true(g_pattern_match_simple(cases[i].reason, reason));
    }
}

static void
test_nothing_said(void)
{
    g_assert_cmpstr(uprof_verdict_reason(UPROF_VERDICT_FAILED, UPROF_HELPER_DONE, false, NULL), ==,
                    "");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/verdict/cases", test_cases);
    g_test_add_func("/verdict/nothing-said", test_nothing_said);
    return g_test_run();
}
