/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory-file.h - files for code that opens files through regular-file.h, without a file system
 */
#pragma once

#include "uprof/bytes.h"

/** memory_file_open: Returns: a descriptor from which a copy of @bytes can be read */
int memory_file_open(UprofSlice bytes);
