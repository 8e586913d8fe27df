/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * vmcoreinfo.h - what a Linux kernel says of itself to those who read its memory
 *
 * A text of lines KEY=VALUE that the kernel makes when it boots and keeps in its memory
 * (Linux, include/linux/vmcore_info.h and kernel/vmcore_info.c): its release, its
 * build-id, how far it was moved, addresses, numbers, sizes, and offsets of members.
 * The guest may have written anything there; nothing is to depend on it alone.
 */
#pragma once

#include "uprof/bytes.h"

enum {
    UPROF_VMCOREINFO_BYTES_MAX = 64 * 1024,
    UPROF_VMCOREINFO_RELEASE_BYTES_MAX = 64, /* as of utsname */
    UPROF_VMCOREINFO_BUILD_ID_BYTES_MAX = 20,
};

/**
 * UprofVmcoreinfoKind: what is asked for, and by which name
 * @UPROF_VMCOREINFO_KERNEL_OFFSET: how far the kernel was moved from where it was linked; no
 *   name
 * @UPROF_VMCOREINFO_SYMBOL: address of a variable
 * @UPROF_VMCOREINFO_NUMBER: any, by its name; a negative one in two's complement
 * @UPROF_VMCOREINFO_SIZE: bytes of a structure
 * @UPROF_VMCOREINFO_OFFSET: bytes before a member, "structure.member"
 * @UPROF_VMCOREINFO_LENGTH: elements of an array
 */
typedef enum {
    UPROF_VMCOREINFO_KERNEL_OFFSET,
    UPROF_VMCOREINFO_SYMBOL,
    UPROF_VMCOREINFO_NUMBER,
    UPROF_VMCOREINFO_SIZE,
    UPROF_VMCOREINFO_OFFSET,
    UPROF_VMCOREINFO_LENGTH,
    UPROF_VMCOREINFO_N_KINDS,
} UprofVmcoreinfoKind;

typedef struct _UprofVmcoreinfo UprofVmcoreinfo;

/**
 * uprof_vmcoreinfo_parse:
 * @text: vmcoreinfo_size bytes at vmcoreinfo_data, or more, if the rest is NUL; copied
 *
 * Returns: (transfer full) (nullable): %NULL with %UPROF_ERROR_BAD_DATA if it is no such
 *   text, or has no release
 */
UprofVmcoreinfo *uprof_vmcoreinfo_parse(UprofSlice text, GError **error);
void uprof_vmcoreinfo_free(UprofVmcoreinfo *info);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofVmcoreinfo, uprof_vmcoreinfo_free)

/** uprof_vmcoreinfo_release: Returns: as uname -r prints it; clean; borrowed */
const char *uprof_vmcoreinfo_release(const UprofVmcoreinfo *info);

/**
 * uprof_vmcoreinfo_build_id: Returns: (nullable): in small hexadecimal digits; %NULL before
 *   Linux 5.14; borrowed
 */
const char *uprof_vmcoreinfo_build_id(const UprofVmcoreinfo *info);

/**
 * uprof_vmcoreinfo_find:
 * @name: (nullable): %NULL if @kind has no name
 * @value: (out): untouched if there is none
 *
 * Looks at all lines; of several the first counts.
 *
 * Returns: false if it is not said, or is no number
 */
bool uprof_vmcoreinfo_find(const UprofVmcoreinfo *info, UprofVmcoreinfoKind kind, const char *name,
                           uint64_t *value);
