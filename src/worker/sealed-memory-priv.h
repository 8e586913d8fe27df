/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sealed-memory-priv.h - memory that the program makes and a worker writes
 */
#pragma once

#include <stddef.h>

/**
 * uprof_sealed_memory_new:
 * @name: of the memory, in /proc
 * @bytes: its size, which is fixed: a worker cannot change it. Only the written part takes memory.
 *
 * Returns: a descriptor; -1 with errno
 */
int uprof_sealed_memory_new(const char *name, size_t bytes);
