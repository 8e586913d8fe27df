/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread-number.h - the kernel's number of the calling thread, without a system call
 */
#pragma once

#include <sys/types.h>

/** uprof_thread_number: Returns: as gettid(2), also in a child of fork(); only the first call of a
 * thread asks the kernel */
pid_t uprof_thread_number(void);
