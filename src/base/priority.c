/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/priority.h"

#include <errno.h>
#include <unistd.h>

enum { YIELDING_STEP = 5 };

bool
uprof_priority_lower(void)
{
    errno = 0;
    return nice(YIELDING_STEP) != -1 || errno == 0;
}
