/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/diagnosis.h"

#include <string.h>

static void
assert_finding(const UprofDiagnosis *diagnosis, guint i, UprofLevel level, const char *topic,
               const char *text)
{
    const UprofFinding *finding = &g_array_index(diagnosis->findings, UprofFinding, i);

    g_assert_cmpint(finding->level, ==, level);
    g_assert_cmpstr(finding->topic, ==, topic);
    g_assert_cmpstr(finding->text, ==, text);
}

static void
test_codes(void)
{
    g_auto(UprofDiagnosis) diagnosis = { 0 };
    g_autoptr(GError) error = g_error_new(UPROF_ERROR, UPROF_ERROR_DENIED, "no right");

    uprof_diagnosis_init(&diagnosis, "web-1");
    uprof_diagnosis_add(&diagnosis, UPROF_LEVEL_WARN, "rate", "%u %s", 7, "Hz");
    g_assert_cmpint(diagnosis.code, ==, UPROF_ERROR_NONE);
    uprof_diagnosis_add_error(&diagnosis, "access", error);
    g_assert_cmpint(diagnosis.code, ==, UPROF_ERROR_DENIED);
    g_assert_cmpstr(diagnosis.title, ==, "web-1");
    assert_finding(&diagnosis, 0, UPROF_LEVEL_WARN, "rate", "7 Hz");
    assert_finding(&diagnosis, 1, UPROF_LEVEL_FAIL, "access", "no right");
}

/* Worker replies may be truncated and hostile: complete findings count, and are made safe. */
static void
test_pack(void)
{
    g_autoptr(GByteArray) bytes = g_byte_array_new();
    g_auto(UprofDiagnosis) sent = { 0 };
    size_t first_len;

    uprof_diagnosis_init(&sent, "");
    uprof_diagnosis_add(&sent, UPROF_LEVEL_NOTE, "linux", "\x1b[2J");
    uprof_diagnosis_pack(&sent, bytes);
    first_len = bytes->len;
    g_byte_array_set_size(bytes, 0);
    uprof_diagnosis_add(&sent, UPROF_LEVEL_FAIL, "symbols", "wrong");
    uprof_diagnosis_pack(&sent, bytes);
    for (size_t len = 0; len <= bytes->len; len++) {
        g_autofree guint8 *cut = g_memdup2(bytes->data, len);
        g_auto(UprofDiagnosis) got = { 0 };
        uprof_diagnosis_init(&got, "");
        uprof_diagnosis_unpack(&got, (UprofSlice){ cut, len });
        g_assert_cmpuint(got.findings->len, ==, len == bytes->len ? 2 : len >= first_len ? 1 : 0);
        g_assert_cmpint(got.code, ==, len == bytes->len ? UPROF_ERROR_FAILED : UPROF_ERROR_NONE);
        if (got.findings->len > 0)
            assert_finding(&got, 0, UPROF_LEVEL_NOTE, "linux", "?[2J");
    }
}

/* The level is the first number of a packed finding, and the length of the topic the second. */
static void
test_malformed(void)
{
    static const uint32_t bad[][3] = {
        { 4, 0, 0 }, { UINT32_MAX, 0, 0 }, { 0, UINT32_MAX, 1 }, { 0, 1, UINT32_MAX }
    };

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_auto(UprofDiagnosis) got = { 0 };
        uprof_diagnosis_init(&got, "");
        uprof_diagnosis_unpack(&got, (UprofSlice){ bad[i], sizeof(bad[i]) });
        g_assert_cmpuint(got.findings->len, ==, 0);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/diagnosis/codes", test_codes);
    g_test_add_func("/diagnosis/pack", test_pack);
    g_test_add_func("/diagnosis/malformed", test_malformed);
    return g_test_run();
}
