/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * alloc-watch.h - sees every allocation of the process, GLib's too, for tests
 */
#pragma once

#include <stdbool.h>

/**
 * alloc_watch_start:
 * @is_forbidden: asked at each allocation, in its thread; must not allocate
 */
void alloc_watch_start(bool (*is_forbidden)(void));

/** alloc_watch_count: Returns: forbidden allocations since the start */
int alloc_watch_count(void);
