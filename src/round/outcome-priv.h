/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * outcome-priv.h - how a domain's turn in a round ended
 */
#pragma once

#include "helper-priv.h"
#include "uprof/round.h"

/**
 * uprof_outcome_of: Returns: the outcome of a turn
 * @code: exit status of the task
 * @end: how the helper process of the task ended
 * @signaled: a signal ends the round
 *
 * A domain whose files are saved is DONE, even if the task took too long. If a signal ends the
 * round, the domain is SKIPPED, unless the task says that the guest may be left stopped.
 */
UprofOutcome uprof_outcome_of(UprofErrorCode code, UprofHelperEnd end, bool signaled);

/**
 * uprof_outcome_reason:
 * @message: (nullable): the last message of the task
 *
 * Returns: (transfer none): why the domain has this outcome; "" if that is not known
 */
const char *
uprof_outcome_reason(UprofOutcome outcome, UprofHelperEnd end, bool signaled, const char *message);
