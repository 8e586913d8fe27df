/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "domain-command-priv.h"

#include "exit-priv.h"
#include "uprof/access.h"
#include "uprof/domid.h"
#include "uprof/text.h"

static UprofErrorCode
open_domain(UprofHost *host, const char *word, const UprofOptions *options, UprofGuardian *guardian,
            UprofWorkers *workers, UprofDomainWork work)
{
    const UprofNotices notices = uprof_options_notices(options);
    const UprofSessionSettings settings = uprof_options_session(options, &notices);
    g_autoptr(GError) error = NULL;
    UprofDomain *domain = uprof_domid_find(host, word, &notices, &error);

    if (!domain && g_file_test(word, G_FILE_TEST_IS_REGULAR)) {
        g_autofree char *shown = uprof_text_quote(word);
        g_prefix_error(&error, "'%s' is a file, and this command takes domains: ", shown);
    }
    if (!domain)
        return uprof_notice_error(&notices, error);
    g_autoptr(UprofSession) session =
        uprof_session_open(domain, &settings, guardian,
                           UPROF_SESSION_MAY_BE_PAUSED | UPROF_SESSION_WAIT_FOR_LOCK, &error);
    if (!session || !uprof_session_prepare(session, workers, NULL, NULL, &error))
        return uprof_notice_error(&notices, error);
    return work(session, options, &notices);
}

/* Makes the domains that have memory the words of the command line. */
static UprofErrorCode
name_all(UprofOptions *options, UprofHost *host, const UprofNotices *notices)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = uprof_domid_list(host, notices, &error);

    if (!domains)
        return uprof_notice_error(notices, error);
    for (guint i = 0; i < domains->len; i++) {
        const UprofDomain *domain = g_ptr_array_index(domains, i);
        if (uprof_domain_has_memory(domain) && !uprof_access_is_host(domain))
            g_ptr_array_add(options->words, g_strdup(domain->uuid));
    }
    if (options->words->len > 0)
        return UPROF_ERROR_NONE;
    uprof_notice(notices, UPROF_NOTICE_WARNING, "no domain runs on %s%s", uprof_host_uri(host),
                 uprof_host_uri_hint(uprof_host_uri(host)));
    return UPROF_ERROR_NOT_FOUND;
}

int
uprof_domain_command_run(UprofOptions *options, const UprofAnalysisCall *calls, unsigned n_calls,
                         UprofDomainWork work)
{
    const UprofNotices notices = uprof_options_notices(options);
    g_autoptr(GError) error = NULL;
    const UprofWorkerPlan plan = {
        .symbols = uprof_options_symbols(options),
        .calls = calls,
        .n_calls = n_calls,
        .cpu_s = UPROF_WORKER_CPU_S,
    };
    UprofGuardian *guardian = uprof_guardian_start(uprof_access_find, &error);
    g_autoptr(UprofWorkers) workers = guardian ? uprof_workers_new(&plan, &error) : NULL;
    UprofErrorTally tally = { 0 };

    if (!workers) {
        uprof_guardian_end(guardian, NULL);
        return uprof_exit_say_error(error);
    }
    int code = uprof_exit_of_code(uprof_session_recover(&notices));
    g_autoptr(UprofHost) host = uprof_host_open(options->uri, false, &error);
    if (!host)
        uprof_error_count(&tally, uprof_notice_error(&notices, error));
    else if (options->all)
        code = uprof_exit_worse(code, uprof_exit_of_code(name_all(options, host, &notices)));
    for (guint i = 0; host && i < options->words->len; i++)
        uprof_error_count(&tally, open_domain(host, g_ptr_array_index(options->words, i), options,
                                              guardian, workers, work));
    code = uprof_exit_worse(code, uprof_exit_of_tally(&tally));
    return uprof_exit_worse(
        code, uprof_exit_of_code(uprof_session_end_guardian(guardian, false, &notices)));
}
