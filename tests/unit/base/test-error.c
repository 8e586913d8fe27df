/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/base/error-priv.h"
#include "uprof/error.h"

#include <errno.h>

static void
test_code_of_error(void)
{
    g_autoptr(GError) ours = g_error_new_literal(UPROF_ERROR, UPROF_ERROR_DENIED, "no");
    g_autoptr(GError) foreign = g_error_new_literal(G_FILE_ERROR, G_FILE_ERROR_NOENT, "no");

    g_assert_cmpint(uprof_error_code_of(NULL), ==, UPROF_ERROR_NONE);
    g_assert_cmpint(uprof_error_code_of(ours), ==, UPROF_ERROR_DENIED);
    g_assert_cmpint(uprof_error_code_of(foreign), ==, UPROF_ERROR_FAILED);
}

static void
test_errno(void)
{
    g_autoptr(GError) error = NULL;

    g_assert_cmpint(uprof_error_of_errno(EACCES), ==, UPROF_ERROR_DENIED);
    g_assert_cmpint(uprof_error_of_errno(EPERM), ==, UPROF_ERROR_DENIED);
    g_assert_cmpint(uprof_error_of_errno(EROFS), ==, UPROF_ERROR_DENIED);
    g_assert_cmpint(uprof_error_of_errno(ENOENT), ==, UPROF_ERROR_NO_FILE);
    g_assert_cmpint(uprof_error_of_errno(EIO), ==, UPROF_ERROR_FAILED);

    errno = ENOENT;
    g_assert_false(uprof_error_fail_errno(&error, "cannot read '%s'", "x"));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NO_FILE);
    g_assert_true(g_str_has_prefix(error->message, "cannot read 'x': "));
}

static void
test_worse_keeps_first(void)
{
    static const struct {
        UprofErrorCode one, other, worse;
    } cases[] = {
        { UPROF_ERROR_NONE, UPROF_ERROR_NONE, UPROF_ERROR_NONE },
        { UPROF_ERROR_NONE, UPROF_ERROR_DENIED, UPROF_ERROR_DENIED },
        { UPROF_ERROR_FAILED, UPROF_ERROR_DENIED, UPROF_ERROR_FAILED },
        { UPROF_ERROR_FAILED, UPROF_ERROR_LEFT_HELD, UPROF_ERROR_LEFT_HELD },
        { UPROF_ERROR_LEFT_HELD, UPROF_ERROR_FAILED, UPROF_ERROR_LEFT_HELD },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        g_assert_cmpint(uprof_error_merge(cases[i].one, cases[i].other), ==, cases[i].worse);
}

static void
test_tally_counts_domains(void)
{
    UprofErrorTally tally = { 0 };

    uprof_error_count(&tally, UPROF_ERROR_NONE);
    uprof_error_count(&tally, UPROF_ERROR_LOCKED);
    uprof_error_count(&tally, UPROF_ERROR_FAILED);
    g_assert_cmpuint(tally.n, ==, 3);
    g_assert_cmpuint(tally.n_failed, ==, 2);
    g_assert_cmpint(tally.code, ==, UPROF_ERROR_LOCKED);
    g_assert_cmpint(uprof_error_of_tally(&tally), ==, UPROF_ERROR_SOME_FAILED);
    uprof_error_count(&tally, UPROF_ERROR_LEFT_HELD);
    g_assert_cmpint(uprof_error_of_tally(&tally), ==, UPROF_ERROR_LEFT_HELD);
}

static void
test_tally_of_one_result(void)
{
    UprofErrorTally none = { 0 }, good = { 0 }, bad = { 0 };

    uprof_error_count(&good, UPROF_ERROR_NONE);
    uprof_error_count(&bad, UPROF_ERROR_DENIED);
    uprof_error_count(&bad, UPROF_ERROR_EMPTY);
    g_assert_cmpint(uprof_error_of_tally(&none), ==, UPROF_ERROR_NONE);
    g_assert_cmpint(uprof_error_of_tally(&good), ==, UPROF_ERROR_NONE);
    g_assert_cmpint(uprof_error_of_tally(&bad), ==, UPROF_ERROR_DENIED);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/error/code-of-error", test_code_of_error);
    g_test_add_func("/error/worse-keeps-first", test_worse_keeps_first);
    g_test_add_func("/error/tally-counts-domains", test_tally_counts_domains);
    g_test_add_func("/error/tally-of-one-result", test_tally_of_one_result);
    g_test_add_func("/error/errno", test_errno);
    return g_test_run();
}
