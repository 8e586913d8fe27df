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
                    "; root's domains: sudo virt-uprof list, or -c qemu:///system");
    g_assert_cmpstr(uprof_host_uri_hint("qemu:///system"), ==, "");
    g_assert_cmpstr(uprof_host_uri_hint("xen:///system"), ==, "");
    g_assert_cmpstr(uprof_host_uri_hint(""), ==, "");
}

/* Commands in messages use the connection that the user has chosen. */
static void
test_virsh(void)
{
    static const struct {
        const char *usual, *uri, *virsh;
    } cases[] = {
        { "qemu:///system", "qemu:///system", "virsh" },
        { "qemu:///system", "xen:///system", "virsh -c xen:///system" },
        { "test:///default", "qemu:///system", "virsh -c qemu:///system" },
        { "test:///default", "qemu+unix:///system?socket=/a b",
          "virsh -c 'qemu+unix:///system?socket=/a b'" },
        { "test:///default", "$(id)\x1b'", "virsh -c '$(id)?'\\'''" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_setenv("LIBVIRT_DEFAULT_URI", cases[i].usual, true);
        g_unsetenv("VIRSH_DEFAULT_CONNECT_URI");
        g_autofree char *virsh = uprof_host_virsh(cases[i].uri);
        g_assert_cmpstr(virsh, ==, cases[i].virsh);
    }
    g_setenv("VIRSH_DEFAULT_CONNECT_URI", "xen:///system", true);
    g_autofree char *virsh = uprof_host_virsh("xen:///system");
    g_assert_cmpstr(virsh, ==, "virsh");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/host/virsh", test_virsh);
    g_test_add_func("/host/uri-is-local", test_uri_is_local);
    g_test_add_func("/host/hint-for-session", test_hint_for_session);
    return g_test_run();
}
