/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * function-list-priv.h - a limit that the tests know, too
 */
#pragma once

#include "uprof/function-list.h"

enum { UPROF_FUNCTION_LIST_BYTES_MAX_MIB = 64 };
