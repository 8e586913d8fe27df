/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * cgroups.h - the services and containers of a Linux guest
 *
 * A task belongs to one cgroup of the kernel's unified hierarchy (cgroup v2), whose path tells the
 * service or the container. A label is short and safe to print:
 *
 *     nginx.service               the outermost service or scope in the path
 *     docker-0123456789ab.scope   an id of 64 hexadecimal digits is cut to 12
 *     /kubepods/burstable/...     the path, if it has neither
 *     /                           the root, where the kernel's own threads are
 */
#pragma once

#include "uprof/linux.h"

typedef struct _UprofCgroups UprofCgroups;

/** uprof_cgroups_new: @kernel: borrowed */
UprofCgroups *uprof_cgroups_new(UprofLinux *kernel);
void uprof_cgroups_free(UprofCgroups *cgroups);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofCgroups, uprof_cgroups_free)

/**
 * uprof_cgroups_find:
 * @mem: the worker's
 * @task: of @snapshot
 *
 * A label is remembered for %UPROF_MEM_KEEP_NS of the snapshots' time.
 *
 * Returns: (nullable): the label, borrowed until the next call; %NULL if the guest's memory does
 * not tell
 */
const char *uprof_cgroups_find(UprofCgroups *cgroups, UprofMem *mem, const UprofSnapshot *snapshot,
                               const UprofLinuxTask *task);

/**
 * uprof_cgroups_find_set: the same for all tasks of one struct css_set
 * @time_ns, @resets: as of a snapshot
 * @set: its address, of a task
 */
const char *uprof_cgroups_find_set(UprofCgroups *cgroups, UprofMem *mem, uint64_t time_ns,
                                   uint32_t resets, uint64_t set);
