/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/host.h"

static void
test_uri_is_local(void)
{
    g_assert_true(uprof_host_uri_is_local("qemu:///system"));
    g_assert_true(uprof_host_uri_is_local("xen:///system"));
    g_assert_true(uprof_host_uri_is_local("qemu+unix:///system"));
    g_assert_false(uprof_host_uri_is_local("qemu+ssh://host/system"));
    g_assert_false(uprof_host_uri_is_local("qemu://host/system"));
}

static void
test_hint_for_session(void)
{
    g_assert_cmpstr(uprof_host_uri_hint("qemu:///session"), ==,
                    "; to try the system's domains: -c qemu:///system");
    g_assert_cmpstr(uprof_host_uri_hint("qemu:///system"), ==, "");
    g_assert_cmpstr(uprof_host_uri_hint("xen:///system"), ==, "");
    g_assert_cmpstr(uprof_host_uri_hint(""), ==, "");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host/uri-is-local", test_uri_is_local);
    g_test_add_func("/host/hint-for-session", test_hint_for_session);
    return g_test_run();
}
