/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confine-priv.h - takes the rights of a process that reads foreign bytes
 *
 * First uprof_confine_drop() takes what can be taken from a process that still makes other
 * processes: its user, its capabilities, its descriptors, its view of the host. Then
 * uprof_confine_seal() takes everything else: only memory, open descriptors and the end of the
 * process are left.
 */
#pragma once

#include "uprof/spawner.h"

/** uprof_confine_name: sets the name of this process, as ps shows it; at most 15 bytes */
void uprof_confine_name(const char *name);

/**
 * uprof_confine_drop: takes the user, the capabilities, the descriptors and the name spaces
 * @kept: descriptors that stay open. They get the numbers from 3 on, in this order.
 * @n_kept: up to %UPROF_CONFINE_FDS_MAX
 * @keeps_streams: false: standard streams lead to /dev/null
 * @confined: (out) (optional)
 *
 * The process gets SIGKILL when its parent ends. Call it in a process with one thread.
 *
 * Returns: false with an error if the process could get rights back
 */
bool uprof_confine_drop(const int *kept, unsigned n_kept, bool keeps_streams,
                        UprofConfined *confined, GError **error);

enum { UPROF_CONFINE_FDS_MAX = 8 };

/**
 * uprof_confine_seal: limits the process, and forbids all system calls but those for memory and for
 * open descriptors (seccomp). Other calls fail with EPERM.
 *
 * A build with address sanitizer has no limit on memory and allows all system calls.
 *
 * Returns: false with an error if that is impossible
 */
bool uprof_confine_seal(const UprofConfineLimits *limits, GError **error);

/** uprof_confine_has_leaks: in a build with leak sanitizer: it has found leaks and reported them */
bool uprof_confine_has_leaks(void);
