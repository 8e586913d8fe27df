/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * confine-priv.h - drops the rights of a process that reads foreign bytes
 *
 * uprof_confine_drop() is for a process that still makes other processes: it drops the user, the
 * capabilities, the descriptors and the view of the host. uprof_confine_seal() then drops all other
 * rights: the process can only use memory and open descriptors, and end.
 */
#pragma once

#include "uprof/spawner.h"

/** uprof_confine_name: sets the name of this process, as ps shows it; at most 15 bytes */
void uprof_confine_name(const char *name);

/**
 * uprof_confine_drop: drops the user, the capabilities, the descriptors and the namespaces
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
 * open descriptors (seccomp). A forbidden call fails with EPERM.
 *
 * A build with address sanitizer has no limit on memory and allows all system calls.
 *
 * Returns: false with an error if that is impossible
 */
bool uprof_confine_seal(const UprofConfineLimits *limits, GError **error);

/** uprof_confine_has_leaks: has the build's leak sanitizer, if any, found and reported leaks? */
bool uprof_confine_has_leaks(void);
