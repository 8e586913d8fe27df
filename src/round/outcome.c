/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "outcome-priv.h"

UprofOutcome
uprof_outcome_of(UprofErrorCode code, UprofHelperEnd end, bool signaled)
{
    if (end != UPROF_HELPER_DIED && code == UPROF_ERROR_NONE)
        return UPROF_OUTCOME_DONE;
    if (code == UPROF_ERROR_LEFT_HELD)
        return UPROF_OUTCOME_FAILED;
    if (signaled)
        return UPROF_OUTCOME_SKIPPED;
    /* after the scan, the domain ended, was paused or disabled, or another run took its lock */
    if (end == UPROF_HELPER_DONE && (code == UPROF_ERROR_LOCKED || code == UPROF_ERROR_NOT_FOUND))
        return UPROF_OUTCOME_SKIPPED;
    return UPROF_OUTCOME_FAILED;
}

const char *
uprof_outcome_reason(UprofOutcome outcome, UprofHelperEnd end, bool signaled, const char *message)
{
    if (outcome == UPROF_OUTCOME_SKIPPED && signaled)
        return "the round was ended";
    if (outcome == UPROF_OUTCOME_FAILED && end == UPROF_HELPER_SLOW)
        return "its run took too long and was ended; see: virsh list";
    if (outcome == UPROF_OUTCOME_FAILED && end == UPROF_HELPER_DIED)
        return "the process that sampled it has died; see: journalctl -k (it may have run out of "
               "memory)";
    return message ? message : "";
}
