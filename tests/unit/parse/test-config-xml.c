/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/config-xml-priv.h"
#include "uprof/config-xml.h"
#include "uprof/error.h"

#define CONFIG(inner) "<virt-uprof>\n" inner "</virt-uprof>"

static UprofSlice
slice_of(const char *text)
{
    return (UprofSlice){ text, strlen(text) };
}

/* Each attribute has its own name as value, so that a swapped member shows. */
static void
test_complete(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfigXml) xml = uprof_config_xml_parse(
        slice_of("<?xml version='1.0'?><!-- c -->\n" CONFIG(
            "<!-- c -->"
            "<store directory='directory' sliceDays='slice' mergedDays='merged' "
            "maxMegabytes='max' minFreeMegabytes='free'/>\n"
            "<profile rate='p-rate' duration='p-duration' budget='p-budget'><!-- c --></profile>"
            "<collect connect='connect' domains='&lt;a&amp;&#x9b;' chance='chance' longest='l'/>"
            "<limits rate='l-rate' duration='l-duration' budget='l-budget'/>"
            "<symbols path='path' maxMegabytes='memory'/>")),
        &error);

    g_assert_no_error(error);
    g_assert_cmpstr(xml->profile_rate, ==, "p-rate");
    g_assert_cmpstr(xml->profile_duration, ==, "p-duration");
    g_assert_cmpstr(xml->profile_budget, ==, "p-budget");
    g_assert_cmpstr(xml->connect, ==, "connect");
    g_assert_cmpstr(xml->domains, ==, "<a&\xc2\x9b");
    g_assert_cmpstr(xml->chance, ==, "chance");
    g_assert_cmpstr(xml->longest, ==, "l");
    g_assert_cmpstr(xml->limits_rate, ==, "l-rate");
    g_assert_cmpstr(xml->limits_duration, ==, "l-duration");
    g_assert_cmpstr(xml->limits_budget, ==, "l-budget");
    g_assert_cmpstr(xml->symbols_path, ==, "path");
    g_assert_cmpstr(xml->symbols_megabytes, ==, "memory");
    g_assert_cmpstr(xml->directory, ==, "directory");
    g_assert_cmpstr(xml->slice_days, ==, "slice");
    g_assert_cmpstr(xml->merged_days, ==, "merged");
    g_assert_cmpstr(xml->max_megabytes, ==, "max");
    g_assert_cmpstr(xml->min_free_megabytes, ==, "free");
}

/* clang-format off */
static const struct {
    const char *name;
    const char *text;
    const char *error; /* NULL: the text is valid */
} cases[] = {
    { "nothing-said",      CONFIG(""), NULL },
    { "said-empty",        CONFIG("<collect connect=''/>"), NULL },
    { "empty-element",     "<virt-uprof/>", NULL },

    { "empty",             "", "XML line *: *" },
    { "blank",             " \n", "XML line *: *" },
    { "not-xml",           "rate=99\n", "XML line 1: *" },
    { "cut",               "<virt-uprof>\n<limits", "XML line 2: *" },
    { "not-utf-8",         "<virt-uprof>\xff</virt-uprof>", "XML line 1: *" },
    { "doctype",           "<!DOCTYPE virt-uprof SYSTEM 'file:///etc/passwd'><virt-uprof/>",
      "XML: a DOCTYPE is refused" },
    { "entities",          "<!DOCTYPE d [<!ENTITY a 'ha'>]><virt-uprof>&a;</virt-uprof>",
      "XML: a DOCTYPE is refused" },
    { "unknown-entity",    CONFIG("&b;"), "XML line 2: *" },
    { "other-root",        "<domain/>", "line 1: the first element is not 'virt-uprof' but 'domain'" },
    { "root-namespace",    "<virt-uprof xmlns='x'/>",
      "line 1: the first element is not 'virt-uprof' but 'virt-uprof'" },
    { "root-attribute",    "<virt-uprof rate='1'/>", "line 1: unknown attribute 'rate'" },
    { "text",              CONFIG("hello\n"), "line *: unknown text '?hello?'" },
    { "text-inside",       CONFIG("<limits>a</limits>"), "line 2: unknown text 'a'" },
    { "cdata",             CONFIG("<limits><![CDATA[a]]></limits>"), "line 2: unknown text 'a'" },
    { "element",           CONFIG("\n<limit rate='1'/>"), "line 3: unknown element 'limit'" },
    { "element-inside",    CONFIG("<limits><limits/></limits>"), "line 2: unknown element 'limits'" },
    { "element-namespace", CONFIG("<limits xmlns='x'/>"), "line 2: unknown element 'limits'" },
    { "attribute",         CONFIG("<limits rates='1'/>"), "line 2: unknown attribute 'rates'" },
    { "attribute-case",    CONFIG("<store slicedays='1'/>"), "line 2: unknown attribute 'slicedays'" },
    { "attribute-of-other", CONFIG("<limits path='1'/>"), "line 2: unknown attribute 'path'" },
    { "attribute-namespace", CONFIG("<limits xmlns:a='x' a:rate='1'/>"),
      "line 2: unknown attribute 'rate'" },
    { "attribute-twice",   CONFIG("<limits rate='1' rate='2'/>"), "XML line 2: *" },
    { "twice",             CONFIG("<limits/>\n<store/><limits/>"), "line 3: more than one 'limits'" },
};
/* clang-format on */

static void
test_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    g_autoptr(GError) error = NULL;
    g_autoptr(UprofConfigXml) xml = uprof_config_xml_parse(slice_of(cases[i].text), &error);

    if (!cases[i].error) {
        g_assert_no_error(error);
        g_assert_nonnull(xml);
        g_assert_null(xml->profile_rate);
        return;
    }
    g_assert_null(xml);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
}

static void
assert_limit(const char *head, size_t n, const char *tail, const char *message)
{
    for (unsigned more = 0; more <= 1; more++) {
        g_autofree char *middle = g_strnfill(n + more, ' ');
        g_autofree char *text = g_strconcat(head, middle, tail, NULL);
        g_autoptr(GError) error = NULL;
        g_autoptr(UprofConfigXml) xml = uprof_config_xml_parse(slice_of(text), &error);

        g_assert_true((xml != NULL) == (more == 0));
        if (more)
            g_assert_cmpstr(error->message, ==, message);
    }
}

static void
test_limits(void)
{
    assert_limit("<virt-uprof/>", UPROF_CONFIG_BYTES_MAX - strlen("<virt-uprof/>"), "",
                 "XML: 1048577 bytes are too many");
    assert_limit("<virt-uprof>\n<collect domains='", UPROF_CONFIG_VALUE_BYTES_MAX,
                 "'/></virt-uprof>", "line 2: too long a value of 'domains'");
    uprof_config_xml_free(NULL);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/config-xml/complete", test_complete);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/config-xml/case/%s", cases[i].name);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_case);
    }
    g_test_add_func("/config-xml/limits", test_limits);
    return g_test_run();
}
