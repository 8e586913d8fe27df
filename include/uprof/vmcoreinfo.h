/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vmcoreinfo.h - reads vmcoreinfo, the facts that a Linux kernel keeps for crash-dump tools
 *
 * The kernel makes a text of lines KEY=VALUE when it boots, and keeps the text in its memory
 * (Linux, include/linux/vmcore_info.h and kernel/vmcore_info.c). This parser reads the release
 * and the build-id. A hostile guest may write any text, so no caller trusts the text alone.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_VMCOREINFO_BYTES_MAX = 64 * 1024,
};

typedef struct _UprofVmcoreinfo UprofVmcoreinfo;

/**
 * uprof_vmcoreinfo_parse:
 * @text: vmcoreinfo_size bytes at vmcoreinfo_data, perhaps followed by NULs; copied
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if a line is malformed,
 *   or the text has no release
 */
UprofVmcoreinfo *uprof_vmcoreinfo_parse(UprofSlice text, GError **error);
void uprof_vmcoreinfo_free(UprofVmcoreinfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofVmcoreinfo, uprof_vmcoreinfo_free)

/**
 * uprof_vmcoreinfo_release: Returns: as uname -r prints it, without control characters; borrowed
 */
const char *uprof_vmcoreinfo_release(const UprofVmcoreinfo *info);

/**
 * uprof_vmcoreinfo_build_id:
 *
 * Returns: (nullable): in small hexadecimal digits, borrowed; %NULL before Linux 5.14
 */
const char *uprof_vmcoreinfo_build_id(const UprofVmcoreinfo *info);
