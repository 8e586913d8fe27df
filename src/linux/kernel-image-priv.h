/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kernel-image-priv.h - a copy of the kernel's image in guest memory
 */
#pragma once

#include "kernel-memory-priv.h"
#include "uprof/linux-arch.h"

enum { UPROF_LINUX_IMAGE_BYTES_MAX = 256 * 1024 * 1024 };

/** UprofLinuxImage: end it with uprof_linux_image_free() */
typedef struct {
    UprofRegs regs;     /* with a page-table root that maps the complete image */
    uint64_t base, end; /* guest-virtual addresses; pages between them may be unmapped */
    GArray *pieces;     /* of neighboring pages with the same access rights; owned */
    uint8_t *bytes;     /* from @base on; zeros where nothing was copied; owned */
    GArray *code;       /* of UprofSymCode: executable pages; owned */
} UprofLinuxImage;

/**
 * uprof_linux_image_find:
 * @regs: of a vCPU in any mode
 *
 * Searches for the image from one address that must lie in it, and copies its read-only
 * pages, which hold the kernel's tables.
 *
 * Returns: (transfer full) (nullable): %NULL if no kernel is mapped in the range that Linux uses
 */
UprofLinuxImage *uprof_linux_image_find(const UprofLinuxArch *arch, UprofMem *mem, unsigned vcpu,
                                        const UprofRegs *regs);

/** uprof_linux_image_copy_rest: copies the pages that are writable or executable, too */
void uprof_linux_image_copy_rest(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu);

/**
 * uprof_linux_image_copy:
 * @start, @end: guest-virtual addresses
 *
 * Copies one part of the image with any access rights. Does nothing if the part is not
 * inside the image.
 */
void uprof_linux_image_copy(UprofLinuxImage *image, UprofMem *mem, unsigned vcpu, uint64_t start,
                            uint64_t end);

/** uprof_linux_image_slice: Returns: all bytes of the copy */
UprofSlice uprof_linux_image_slice(const UprofLinuxImage *image);

/** uprof_linux_image_part: @part: (out): borrowed. Returns: false if it is not inside the image */
bool uprof_linux_image_part(const UprofLinuxImage *image, uint64_t start, uint64_t end,
                            UprofSlice *part);

void uprof_linux_image_free(UprofLinuxImage *image);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofLinuxImage, uprof_linux_image_free)
