/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/diagnosis-text.h"

static void
fill_diagnosis(UprofDiagnosis *diagnosis, bool has_failure)
{
    g_autoptr(GError) error = g_error_new(UPROF_ERROR, UPROF_ERROR_DENIED, "no right");

    uprof_diagnosis_init(diagnosis, "web-1");
    uprof_diagnosis_add(diagnosis, UPROF_LEVEL_WARN, "rate", "7 Hz");
    if (has_failure)
        uprof_diagnosis_add_error(diagnosis, "access", error);
}

static void
assert_lines(bool has_failure, bool only_failures, const char *expected)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(UprofDiagnosis) diagnosis = { 0 };

    fill_diagnosis(&diagnosis, has_failure);
    uprof_diagnosis_text_append(out, &diagnosis, only_failures);
    g_assert_cmpstr(out->str, ==, expected);
}

static void
test_lines(void)
{
    assert_lines(true, false,
                 "web-1\n  warn  rate           7 Hz\n  FAIL  access         no right\n");
    assert_lines(true, true, "web-1\n  FAIL  access         no right\n");
    assert_lines(false, true, "");
}

static void
test_json(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    UprofJsonWriter json = { .out = out };
    g_auto(UprofDiagnosis) diagnosis = { 0 };

    fill_diagnosis(&diagnosis, false);
    uprof_diagnosis_text_write(&json, &diagnosis, 3);
    g_assert_cmpstr(out->str, ==,
                    "{\"title\": \"web-1\", \"exit\": 3, \"findings\": [\n"
                    "  {\"level\": \"warn\", \"topic\": \"rate\", \"text\": \"7 Hz\"}]}");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run/diagnosis-text/lines", test_lines);
    g_test_add_func("/run/diagnosis-text/json", test_json);
    return g_test_run();
}
