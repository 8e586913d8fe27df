/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mapped-files-priv.h - a limit that the tests know, too
 */
#pragma once

#include "uprof/mapped-files.h"

enum { UPROF_MAPPED_FILES_MAX = 4096 };
