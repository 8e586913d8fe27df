/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>

#include "uprof/access.h"

/* clang-format off */
static const struct {
    const char *name;
    const char *driver, *type, *arch, *security;
    int id;
    bool is_remote;
    const char *asked;
    UprofStop stop;
    const char *methods; /* names, or the text of the error */
    int code;            /* of the error; -1: none */
} cases[] = {
    { "emulated",        "QEMU", "qemu", "x86_64", NULL,  1, false, "auto",    UPROF_STOP_ANY, "monitor", -1 },
    { "remote",          "QEMU", "kvm",  "x86_64", NULL,  1, true,  "auto",    UPROF_STOP_ANY, "monitor", -1 },
    { "no-pause",        "QEMU", "kvm",  "x86_64", NULL,  1, false, "auto",    UPROF_STOP_NONE,  "monitor", -1 },
    { "pause",           "QEMU", "kvm",  "x86_64", NULL,  1, false, "auto",    UPROF_STOP_WHOLE, "monitor", -1 },
    { "pause-direct",    "QEMU", "kvm",  "x86_64", NULL,  1, false, "direct",  UPROF_STOP_WHOLE,
      "guest-1: no access 'direct': --pause holds the whole guest, and 'direct' holds one vCPU", UPROF_ERROR_UNSUPPORTED },
    { "monitor",         "QEMU", "kvm",  "x86_64", NULL,  1, false, "monitor", UPROF_STOP_ANY, "monitor", -1 },
    { "direct-remote",   "QEMU", "kvm",  "x86_64", NULL,  1, true,  "direct",  UPROF_STOP_ANY,
      "guest-1: no access 'direct': the connection is remote", UPROF_ERROR_UNSUPPORTED },
    { "direct-emulated", "QEMU", "qemu", "x86_64", NULL,  1, false, "direct",  UPROF_STOP_ANY,
      "guest-1: no access 'direct': it is emulated*", UPROF_ERROR_UNSUPPORTED },
    { "xen-on-qemu",     "QEMU", "kvm",  "x86_64", NULL,  1, false, "xen",     UPROF_STOP_ANY,
      "guest-1: no access 'xen'*", UPROF_ERROR_USAGE },
    { "other-driver",    "TEST", "test", "x86_64", NULL,  1, false, "auto",    UPROF_STOP_ANY,
      "guest-1: guests of libvirt's driver 'TEST' cannot be sampled", UPROF_ERROR_UNSUPPORTED },
    { "encrypted",       "QEMU", "kvm",  "x86_64", "sev", 1, false, "auto",    UPROF_STOP_ANY,
      "guest-1: memory is encrypted (launchSecurity sev)*", UPROF_ERROR_UNSUPPORTED },
    { "other-arch",      "QEMU", "kvm",  "vax",    NULL,  1, false, "auto",    UPROF_STOP_ANY,
      "guest-1: guests of architecture 'vax' cannot be sampled yet", UPROF_ERROR_UNSUPPORTED },
    { "dom0",            "Xen",  "xen",  "x86_64", NULL,  0, false, "auto",    UPROF_STOP_ANY,
      "guest-1: it is dom0*", UPROF_ERROR_UNSUPPORTED },
    { "monitor-on-xen",  "Xen",  "xen",  "x86_64", NULL,  3, false, "monitor", UPROF_STOP_ANY,
      "guest-1: no access 'monitor' to a domain of Xen*", UPROF_ERROR_USAGE },
    { "remote-xen",      "Xen",  "xen",  "x86_64", NULL,  3, true,  "auto",    UPROF_STOP_ANY,
      "guest-1: the connection is remote*", UPROF_ERROR_UNSUPPORTED },
};
/* clang-format on */

static char *
join_methods(const UprofAccess *access)
{
    GString *names = g_string_new(NULL);

    for (unsigned i = 0; i < access->n; i++)
        g_string_append_printf(names, "%s%s", i > 0 ? " " : "", access->methods[i]->name);
    return g_string_free(names, FALSE);
}

static void
test_choose_case(gconstpointer data)
{
    const size_t i = GPOINTER_TO_SIZE(data);
    UprofDomainXml xml = {
        .type = (char *)cases[i].type,
        .arch = (char *)cases[i].arch,
        .security = (char *)cases[i].security,
    };
    const UprofDomain domain = {
        .name = (char *)"guest-1",
        .id = cases[i].id,
        .state = UPROF_DOMAIN_RUNNING,
        .driver = (char *)cases[i].driver,
        .is_local = !cases[i].is_remote,
        .xml = &xml,
    };
    g_auto(UprofAccess) access = { 0 };
    g_autoptr(GError) error = NULL;

    const bool ok = uprof_access_choose(&domain, cases[i].asked, cases[i].stop, &access, &error);

    g_assert_true(ok == !error);
    if (cases[i].code < 0) {
        g_autofree char *names = join_methods(&access);
        g_assert_no_error(error);
        g_assert_cmpstr(names, ==, cases[i].methods);
        g_assert_nonnull(access.why);
        return;
    }
    g_assert_error(error, UPROF_ERROR, cases[i].code);
    g_test_message("%s", error->message);
    g_assert_true(g_pattern_match_simple(cases[i].methods, error->message));
}

/* The reason is what the user asked for: the guest is not stopped. */
static void
test_no_pause(void)
{
    UprofDomainXml xml = { .type = (char *)"kvm", .arch = (char *)"x86_64" };
    const UprofDomain domain = {
        .name = (char *)"guest-1",
        .id = 1,
        .driver = (char *)"QEMU",
        .is_local = true,
        .xml = &xml,
    };
    g_auto(UprofAccess) access = { 0 };

    g_assert_true(uprof_access_choose(&domain, "auto", UPROF_STOP_NONE, &access, NULL));
    g_assert_cmpstr(access.why, ==,
                    "without stopping (--no-pause): stacks that change while they are read count "
                    "as truncated");
}

static void
test_find_by_name(void)
{
    g_assert_cmpstr(uprof_access_find("replay")->name, ==, "replay");
    g_assert_null(uprof_access_find("telepathy"));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/access/find-by-name", test_find_by_name);
    if (uprof_access_find("monitor"))
        g_test_add_func("/access/no-pause", test_no_pause);
    /* a build without QEMU has no method for domains of QEMU */
    for (size_t i = 0; uprof_access_find("monitor") && i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/access/choose/", cases[i].name, NULL);
        g_test_add_data_func(path, GSIZE_TO_POINTER(i), test_choose_case);
    }
    return g_test_run();
}
