/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <glib.h>
#include <signal.h>

#include "../../../src/run/session-priv.h"
#include "uprof/session.h"

static void
drop_notice(UprofNoticeKind kind, const char *text, void *data)
{
}

static UprofDomain *
make_domain(UprofDomainState state, const char *state_name)
{
    UprofDomain *domain = g_new0(UprofDomain, 1);

    domain->name = g_strdup("web-1");
    g_strlcpy(domain->uuid, "9b1c2a9e-0000-4000-8000-000000000001", sizeof(domain->uuid));
    domain->driver = g_strdup("TEST");
    domain->uri = g_strdup("test:///default");
    domain->state = state;
    domain->state_name = state_name;
    domain->is_local = true;
    domain->xml = g_new0(UprofDomainXml, 1);
    domain->xml->type = g_strdup("test");
    domain->xml->arch = g_strdup("x86_64");
    uprof_metadata_init(&domain->xml->metadata);
    return domain;
}

static void
test_state_decides(void)
{
    static const struct {
        UprofDomainState state;
        const char *name;
        bool may_be_paused;
        const char *error; /* (nullable) */
    } cases[] = {
        { UPROF_DOMAIN_RUNNING, "running", false, NULL },
        { UPROF_DOMAIN_PAUSED, "paused", false, NULL },
        { UPROF_DOMAIN_PAUSED, "paused", true, NULL },
        { UPROF_DOMAIN_CRASHED, "crashed", true, NULL },
        { UPROF_DOMAIN_CRASHED, "crashed", false,
          "domain 'web-1' has crashed; *try 'virt-uprof dump web-1'*" },
        { UPROF_DOMAIN_SHUTOFF, "shut off", true,
          "domain 'web-1' is shut off; start it with: virsh *" },
        { UPROF_DOMAIN_OTHER, "in shutdown", true, "domain 'web-1' is in shutdown; *" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(UprofDomain) domain = make_domain(cases[i].state, cases[i].name);
        g_autoptr(GError) error = NULL;
        g_assert_true(uprof_session_check_state(domain, cases[i].may_be_paused, &error) ==
                      !cases[i].error);
        if (!cases[i].error)
            continue;
        g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
        g_assert_true(g_pattern_match_simple(cases[i].error, error->message));
    }
}

/* A session that cannot be opened leaves the signal mask as it was. */
static void
test_failed_open_restores_signals(void)
{
    g_auto(UprofSettings) run;
    g_autoptr(GPtrArray) files = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    const UprofNotices notices = { drop_notice, NULL };
    const UprofSessionSettings settings = {
        .program = "test",
        .access = "auto",
        .run = &run,
        .symbols = { .files = files },
        .notices = &notices,
    };
    sigset_t before, after;

    uprof_settings_init(&run);
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    UprofDomain *domain = make_domain(UPROF_DOMAIN_SHUTOFF, "shut off");
    g_assert_null(uprof_session_open(domain, &settings, NULL, UPROF_SESSION_PLAIN, &error));
    g_assert_error(error, UPROF_ERROR, UPROF_ERROR_NOT_FOUND);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    g_assert_cmpint(sigismember(&before, SIGTERM), ==, sigismember(&after, SIGTERM));
    g_assert_cmpint(sigismember(&before, SIGTSTP), ==, sigismember(&after, SIGTSTP));
}

static void
test_kernel_hint(void)
{
    g_autoptr(UprofDomain) domain = make_domain(UPROF_DOMAIN_RUNNING, "running");
    g_autofree char *no_kernel = NULL;
    g_autofree char *remote = NULL;

    g_assert_null(uprof_session_find_kernel(domain, NULL, &no_kernel));
    g_assert_cmpstr(no_kernel, ==, "the domain boots from a disk: give its symbols with -s");
    domain->xml->kernel = g_strdup("/boot/app");
    domain->is_local = false;
    g_assert_null(uprof_session_find_kernel(domain, NULL, &remote));
    g_assert_true(g_pattern_match_simple("its kernel '/boot/app' is on another host*", remote));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/session/state-decides", test_state_decides);
    g_test_add_func("/session/failed-open-restores-signals", test_failed_open_restores_signals);
    g_test_add_func("/session/kernel-hint", test_kernel_hint);
    return g_test_run();
}
