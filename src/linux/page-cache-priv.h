/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * page-cache-priv.h - pages of files in the kernel's page cache
 */
#pragma once

#include "kernel-memory-priv.h"
#include "kernel-offsets-priv.h"
#include "uprof/linux-arch.h"

/** UprofFilePage: a page of a file */
typedef struct {
    uint64_t number; /* in the file, from 0 */
    uint8_t *into;   /* %UPROF_PAGE_BYTES bytes; borrowed */
    bool is_missing; /* (out): the page is not in memory; @into is undefined */
} UprofFilePage;

/**
 * uprof_page_cache_read:
 * @file_mapping: address of the file's struct address_space
 *
 * Reads pages as they are now. A page that the kernel gives to another file meanwhile is missing.
 * The limit for one sample does not apply: the caller bounds @n.
 */
void uprof_page_cache_read(const UprofLinuxOffsets *offsets, const UprofLinuxMaps *maps,
                           const UprofKernelMemory *memory, uint64_t file_mapping,
                           UprofFilePage *pages, unsigned n);
