/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * alloc-watch.h - counts forbidden allocations of the process, GLib's included, for tests
 */
#pragma once

#include <stdbool.h>

/**
 * alloc_watch_start:
 * @is_forbidden: called at each allocation, in the thread that allocates; must not allocate
 */
void alloc_watch_start(bool (*is_forbidden)(void));

/** alloc_watch_count: Returns: forbidden allocations since the start */
int alloc_watch_count(void);
