/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session-findings.h - findings about an open domain: how it is read, and how fast
 */
#pragma once

#include "uprof/diagnosis.h"
#include "uprof/session.h"

/** uprof_session_findings_access: how the probes held the guest and read its memory */
void uprof_session_findings_access(UprofDiagnosis *diagnosis, const UprofSession *session);

/** uprof_session_findings_rate: which rate the budget allows */
void uprof_session_findings_rate(UprofDiagnosis *diagnosis, const UprofSession *session);

/** uprof_session_findings_mode: the architecture; @regs: of a vCPU that ran */
void uprof_session_findings_mode(UprofDiagnosis *diagnosis, const UprofSession *session,
                                 const UprofRegs *regs);
