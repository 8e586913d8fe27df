/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "uprof/task-table.h"

GString *
uprof_task_reading_write(UprofTaskReading *reading, const UprofTaskHold *hold,
                         const UprofNotices *notices)
{
    reading->request.hold = *hold;
    return reading->write(reading, notices);
}

void
uprof_task_reading_free(UprofTaskReading *reading)
{
    if (reading)
        reading->free(reading);
}
