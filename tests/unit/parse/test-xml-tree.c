/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "../../../src/parse/xml-tree-priv.h"
#include "uprof/error.h"

enum { BYTES_MAX = 100 };

#define SPACE "http://example.org/1"

static xmlDoc *
load_text(const char *text, GError **error)
{
    return uprof_xml_load((UprofSlice){ text, strlen(text) }, "text", BYTES_MAX, error);
}

static void
assert_refused(const char *text, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(xmlDoc) doc = load_text(text, &error);

    g_assert_null(doc);
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_BAD_DATA);
    if (!g_pattern_match_simple(message, error->message))
        g_error("'%s' gives '%s', not '%s'", text, error->message, message);
}

static void
test_refused(void)
{
    g_autofree char *long_text = g_strnfill(BYTES_MAX + 1, ' ');

    assert_refused("", "text line *: *");
    assert_refused("<a>", "text line 1: *");
    assert_refused("<a/><b/>", "text line 1: *");
    assert_refused("<a>&b;</a>", "text line 1: *");
    assert_refused("<!DOCTYPE a><a/>", "text: a DOCTYPE is refused");
    assert_refused(long_text, "text: 101 bytes are too many");
}

static void
test_values(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(xmlDoc) doc = load_text("<a b='1' c=''>x<![CDATA[<y>]]></a>", &error);

    g_assert_no_error(error);
    xmlNode *root = xmlDocGetRootElement(doc);
    g_autofree char *text = uprof_xml_value(root, NULL);
    g_autofree char *value = uprof_xml_value(root, "b");
    g_autofree char *empty = uprof_xml_value(root, "c");
    g_autofree char *absent = uprof_xml_value(root, "d");
    g_assert_cmpstr(text, ==, "x<y>");
    g_assert_cmpstr(value, ==, "1");
    g_assert_cmpstr(empty, ==, "");
    g_assert_null(absent);
}

static void
test_namespaces(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(xmlDoc) bare = load_text("<a/>", &error);
    g_autoptr(xmlDoc) qualified = load_text("<x:a xmlns:x='" SPACE "'/>", &error);

    g_assert_no_error(error);
    const xmlNode *root = xmlDocGetRootElement(bare);
    g_assert_true(uprof_xml_is_element(root, "a", NULL));
    g_assert_false(uprof_xml_is_element(root, "a", SPACE));
    g_assert_false(uprof_xml_is_element(root, "b", NULL));
    root = xmlDocGetRootElement(qualified);
    g_assert_true(uprof_xml_is_element(root, "a", SPACE));
    g_assert_false(uprof_xml_is_element(root, "a", NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/xml-tree/refused", test_refused);
    g_test_add_func("/xml-tree/values", test_values);
    g_test_add_func("/xml-tree/namespaces", test_namespaces);
    return g_test_run();
}
