/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * linux-priv.h - where a Linux kernel lies in a guest's memory, and a copy of it
 */
#pragma once

#include "uprof/linux.h"

enum {
    UPROF_LINUX_IMAGE_BYTES_MAX = 256 * 1024 * 1024,
};

/**
 * UprofLinuxImage:
 * @regs: with a page-table root that has all of it mapped
 * @base, @end: guest-virtual addresses; it may have holes
 * @pieces: neighboring pages of one kind; see linux-image.c
 * @bytes: from @base on, zeros where nothing was copied
 * @code: of UprofSymCode: where code may run
 */
typedef struct {
    UprofRegs regs;
    uint64_t base, end;
    GArray *pieces;
    uint8_t *bytes;
    GArray *code;
} UprofLinuxImage;

/**
 * uprof_linux_image_find: by one address that must lie in any Linux kernel
 * @regs: of a vCPU in any mode
 *
 * Copies what the kernel may only read: its tables are there. Returns: (transfer full)
 *   (nullable): %NULL if no kernel is where Linux has one
 */
UprofLinuxImage *uprof_linux_image_find(UprofMem *mem, unsigned vcpu, const UprofRegs *regs);

/** uprof_linux_image_copy_all: copies the rest as well: data, before it is made read-only */
void uprof_linux_image_copy_all(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu);

/** uprof_linux_image_slice: Returns: @bytes */
UprofSlice uprof_linux_image_slice(const UprofLinuxImage *image);

/** uprof_linux_image_part: @part: (out): bytes of the copy. Returns: false if it is not inside */
bool uprof_linux_image_part(const UprofLinuxImage *image, uint64_t start, uint64_t end,
                            UprofSlice *part);

void uprof_linux_image_free(UprofLinuxImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinuxImage, uprof_linux_image_free)
