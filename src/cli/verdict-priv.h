/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * verdict-priv.h - how a domain fared in a round
 */
#pragma once

#include "helper-priv.h"

typedef enum {
    UPROF_VERDICT_DONE,
    UPROF_VERDICT_SKIPPED,
    UPROF_VERDICT_FAILED,
} UprofVerdict;

/**
 * uprof_verdict:
 * @code: what its step returned
 * @end: of the step
 * @signaled: the round is to end
 *
 * What is saved is done, however long it took. A round that is ended is no fault of
 * a domain whose step it ends, unless that may be left held.
 */
UprofVerdict uprof_verdict(int code, UprofHelperEnd end, bool signaled);

/**
 * uprof_verdict_reason:
 * @said: (nullable): the last thing that the step said
 *
 * Returns: why it is so, one of literals or @said; "" if that is not known
 */
const char *
uprof_verdict_reason(UprofVerdict verdict, UprofHelperEnd end, bool signaled, const char *said);
