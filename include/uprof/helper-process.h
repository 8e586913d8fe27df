/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * helper-process.h - starts a helper program of virt-uprof
 */
#pragma once

#include <glib.h>
#include <sys/types.h>

/**
 * uprof_helper_process_find:
 * @name: of a helper program
 * @folder: of the installed helpers
 *
 * Returns: (transfer full): path of the helper beside this program, as in a build folder, or of the
 *   installed one
 */
char *uprof_helper_process_find(const char *name, const char *folder);

/**
 * uprof_helper_process_connect: starts a helper program whose standard input is a channel
 * (channel.h)
 * @program: its path
 * @hint: for a message: what the program does, and the package that has it
 * @pid: (out)
 *
 * Returns: this program's end of the channel; -1 with an error
 */
int uprof_helper_process_connect(const char *program, const char *hint, pid_t *pid, GError **error);

/**
 * uprof_helper_process_start: starts a program with the environment of this process
 * @words: the path of the program, its arguments, and %NULL; borrowed
 * @fds: borrowed: its standard input, output and error
 * @pid: (out)
 *
 * posix_spawn() does not copy the memory of this process: after a fork, the first write of each
 * page would be slow, also in a hold. The helper has a process group of its own, so that Ctrl-C
 * does not end it before it has cleaned up.
 *
 * Returns: 0, or an errno
 */
int uprof_helper_process_start(char *const *words, const int fds[3], pid_t *pid);
