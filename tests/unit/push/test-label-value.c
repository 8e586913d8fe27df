/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "../../../src/push/label-value-priv.h"

#include <glib.h>
#include <string.h>

/* @value: what the label of @name is; URL decoding must give @name back */
static void
check_name(const char *name, const char *value)
{
    g_autofree char *made = uprof_label_value(name);
    g_autoptr(GBytes) back = g_uri_unescape_bytes(made, -1, NULL, NULL);
    gsize len;
    const char *bytes = g_bytes_get_data(back, &len);

    g_assert_cmpstr(made, ==, value);
    g_assert_true(g_utf8_validate(made, -1, NULL));
    g_assert_cmpmem(bytes, len, name, strlen(name));
}

static void
test_names(void)
{
    check_name("web-1", "web-1");
    check_name("a,b {c}=\"d\" '/e\\", "a,b {c}=\"d\" '/e\\");
    check_name("\xc3\xbc\xe2\x82\xac", "\xc3\xbc\xe2\x82\xac");
    check_name("50%", "50%25");
    check_name("%41", "%2541");
    check_name("a\nb\x1b[1m\x7f", "a%0Ab%1B[1m%7F");
    check_name("\xc2\x85", "%C2%85");
    check_name("\xff\xc3", "%FF%C3");
    check_name("a\xe2\x82", "a%E2%82");
    check_name("\xed\xa0\x80", "%ED%A0%80");
}

static void
test_every_byte(void)
{
    for (unsigned byte = 1; byte < 256; byte++) {
        const char name[] = { 'x', (char)byte, 'y', '\0' };
        g_autofree char *made = uprof_label_value(name);
        check_name(name, made);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/label-value/names", test_names);
    g_test_add_func("/label-value/every-byte", test_every_byte);
    return g_test_run();
}
