/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "verdict-priv.h"

#include "exit-priv.h"

UprofVerdict
uprof_verdict(int code, UprofHelperEnd end, bool signaled)
{
    if (end != UPROF_HELPER_DIED && code == UPROF_EXIT_OK)
        return UPROF_VERDICT_DONE;
    if (code == UPROF_EXIT_LEFT_HELD)
        return UPROF_VERDICT_FAILED;
    if (signaled)
        return UPROF_VERDICT_SKIPPED;
    /* it has ended, or was paused or disabled, since it was looked at */
    if (end == UPROF_HELPER_DONE && (code == UPROF_EXIT_LOCKED || code == UPROF_EXIT_DOMAIN))
        return UPROF_VERDICT_SKIPPED;
    return UPROF_VERDICT_FAILED;
}

const char *
uprof_verdict_reason(UprofVerdict verdict, UprofHelperEnd end, bool signaled, const char *said)
{
    if (verdict == UPROF_VERDICT_SKIPPED && signaled)
        return "the round was ended";
    if (verdict == UPROF_VERDICT_FAILED && end == UPROF_HELPER_SLOW)
        return "it took too long, and was ended; does libvirt answer?";
    if (verdict == UPROF_VERDICT_FAILED && end == UPROF_HELPER_DIED)
        return "the process that sampled it has died; was there too little memory?";
    return said ? said : "";
}
