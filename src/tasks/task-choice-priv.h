/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * task-choice-priv.h - applies a choice to a list of tasks
 */
#pragma once

#include "uprof/task-choice.h"

/** uprof_task_choice_apply: removes all other tasks from @tasks (of UprofTask), and sorts it */
void uprof_task_choice_apply(const UprofTaskChoice *choice, GArray *tasks);
