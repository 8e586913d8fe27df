/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "../../../src/round/outcome-priv.h"

/* clang-format off */
static const struct {
    UprofErrorCode code;
    UprofHelperEnd end;
    bool signaled;
    UprofOutcome outcome;
    const char *reason;
} cases[] = {
    { UPROF_ERROR_NONE,        UPROF_HELPER_DONE, false, UPROF_OUTCOME_DONE,    "said" },
    { UPROF_ERROR_NONE,        UPROF_HELPER_DONE, true,  UPROF_OUTCOME_DONE,    "said" },
    /* the helper was too slow, but has stored everything */
    { UPROF_ERROR_NONE,        UPROF_HELPER_SLOW, false, UPROF_OUTCOME_DONE,    "said" },
    { UPROF_ERROR_FAILED,    UPROF_HELPER_SLOW, false, UPROF_OUTCOME_FAILED,  "its run took too long*" },
    { UPROF_ERROR_NOT_FOUND,    UPROF_HELPER_SLOW, false, UPROF_OUTCOME_FAILED,  "its run took too long*" },
    { UPROF_ERROR_FAILED,    UPROF_HELPER_DIED, false, UPROF_OUTCOME_FAILED,  "*died*memory*" },
    { UPROF_ERROR_NONE,        UPROF_HELPER_DIED, false, UPROF_OUTCOME_FAILED,  "*died*memory*" },
    { UPROF_ERROR_LOCKED,    UPROF_HELPER_DONE, false, UPROF_OUTCOME_SKIPPED, "said" },
    { UPROF_ERROR_NOT_FOUND,    UPROF_HELPER_DONE, false, UPROF_OUTCOME_SKIPPED, "said" },
    { UPROF_ERROR_EMPTY,   UPROF_HELPER_DONE, false, UPROF_OUTCOME_FAILED,  "said" },
    { UPROF_ERROR_LEFT_HELD, UPROF_HELPER_DONE, false, UPROF_OUTCOME_FAILED,  "said" },
    /* if a signal ended the round, the domain has not failed */
    { UPROF_ERROR_FAILED,    UPROF_HELPER_DIED, true,  UPROF_OUTCOME_SKIPPED, "the round was ended" },
    { UPROF_ERROR_EMPTY,   UPROF_HELPER_DONE, true,  UPROF_OUTCOME_SKIPPED, "the round was ended" },
    { UPROF_ERROR_FAILED,    UPROF_HELPER_SLOW, true,  UPROF_OUTCOME_SKIPPED, "the round was ended" },
    { UPROF_ERROR_LEFT_HELD, UPROF_HELPER_DONE, true,  UPROF_OUTCOME_FAILED,  "said" },
};
/* clang-format on */

static void
test_cases(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const UprofOutcome outcome =
            uprof_outcome_of(cases[i].code, cases[i].end, cases[i].signaled);
        const char *reason = uprof_outcome_reason(outcome, cases[i].end, cases[i].signaled, "said");
        g_test_message("case %zu", i);
        g_assert_cmpint(outcome, ==, cases[i].outcome);
        g_assert_true(g_pattern_match_simple(cases[i].reason, reason));
    }
}

static void
test_nothing_said(void)
{
    g_assert_cmpstr(uprof_outcome_reason(UPROF_OUTCOME_FAILED, UPROF_HELPER_DONE, false, NULL), ==,
                    "");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/outcome/cases", test_cases);
    g_test_add_func("/outcome/nothing-said", test_nothing_said);
    return g_test_run();
}
