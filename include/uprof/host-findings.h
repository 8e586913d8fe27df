/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * host-findings.h - findings about the host: its connection, rights and helpers
 */
#pragma once

#include "uprof/spawner.h"
#include "uprof/diagnosis.h"
#include "uprof/host.h"

/**
 * uprof_host_findings_add:
 * @host: open
 * @confined: the rights that processes with foreign bytes keep
 * @healed: no guest is stopped because of a dead run
 */
void uprof_host_findings_add(UprofDiagnosis *diagnosis, UprofHost *host,
                             const UprofConfined *confined, bool healed);

/** uprof_host_findings_title: Returns: (transfer full): a line about @domain, safe to print */
char *uprof_host_findings_title(UprofHost *host, const UprofDomain *domain);
