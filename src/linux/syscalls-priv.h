/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * syscalls-priv.h - names of system calls, by number
 */
#pragma once

enum { UPROF_LINUX_N_SYSCALLS_X86_64 = 463, UPROF_LINUX_N_SYSCALLS_AARCH64 = 463 };

/* %NULL where a number has no system call */
extern const char *const uprof_linux_syscalls_x86_64[UPROF_LINUX_N_SYSCALLS_X86_64];
extern const char *const uprof_linux_syscalls_aarch64[UPROF_LINUX_N_SYSCALLS_AARCH64];
