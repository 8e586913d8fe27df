/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * missing-function.h - why a function cannot be shown
 */
#pragma once

#include "uprof/load.h"

/**
 * uprof_load_explain_function: why the callers and callees of a function cannot be shown
 * @name: no function of the profile
 *
 * Returns: (transfer full): safe to print
 */
char *uprof_load_explain_function(const UprofLoad *load, const char *name);

/**
 * uprof_load_explain_instructions: why the instructions of function @name cannot be shown
 *
 * Returns: (transfer full): safe to print
 */
char *uprof_load_explain_instructions(const UprofLoad *load, const char *name);
