/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * domain-command-priv.h - the way of commands that look at each named domain once
 */
#pragma once

#include "options-priv.h"
#include "uprof/session.h"

/**
 * UprofDomainWork: looks at a domain, and prints what it finds
 * @session: prepared with a worker; the guest may be paused by somebody
 */
typedef UprofErrorCode (*UprofDomainWork)(UprofSession *session, const UprofOptions *options,
                                          const UprofNotices *notices);

/**
 * uprof_domain_command_run: opens each domain of @options in turn; with --all, each domain that
 * runs or is paused
 * @calls: borrowed; of the workers
 *
 * Returns: an exit code
 */
int uprof_domain_command_run(UprofOptions *options, const UprofAnalysisCall *calls,
                             unsigned n_calls, UprofDomainWork work);
