/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-files.h - finds the symbol files of domains' kernels, in processes without rights
 *
 * The command `list` reads the kernel files of all domains. A tenant can have written any of them,
 * so a separate process reads each file.
 */
#pragma once

#include "uprof/arch.h"

typedef struct _UprofKernelFiles UprofKernelFiles;

/**
 * uprof_kernel_files_new: forks the process that makes a process for each file
 *
 * The program must have one thread, and no connection.
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofKernelFiles *uprof_kernel_files_new(GError **error);
void uprof_kernel_files_free(UprofKernelFiles *files);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofKernelFiles, uprof_kernel_files_free)

/**
 * uprof_kernel_files_find: finds the symbol file of a kernel
 * @path: of the kernel
 *
 * Returns: (transfer full) (nullable): path of the kernel or of the debug file beside it, safe to
 *   print; %NULL with an error
 */
char *uprof_kernel_files_find(UprofKernelFiles *files, const UprofArch *arch, const char *path,
                              GError **error);
