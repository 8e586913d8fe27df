/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory-files-priv.h - names and unwind rules of mapped files, out of the guest's memory
 *
 * A file is read when code of it is first seen. The pages that were missing are tried again later,
 * at growing intervals, because a guest that runs reads more pages of its files.
 */
#pragma once

#include "file-pages-priv.h"

typedef struct _UprofMemoryFiles UprofMemoryFiles;

/** uprof_memory_files_new: @pages, @sym: borrowed; @sym has the modules */
UprofMemoryFiles *uprof_memory_files_new(UprofFilePages *pages, UprofSym *sym);
void uprof_memory_files_free(UprofMemoryFiles *files);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofMemoryFiles, uprof_memory_files_free)

/** uprof_memory_files_is_due: should @module be read now? @now_ns: time of the snapshot */
bool uprof_memory_files_is_due(const UprofMemoryFiles *files, unsigned module, uint64_t now_ns);

/**
 * uprof_memory_files_find_object: see uprof_mapped_elf_find_object()
 *
 * Returns: false also if the budget of pages is used up
 */
bool uprof_memory_files_find_object(const UprofMemoryFiles *files, const UprofFilePlace *place,
                                    const char *name, uint64_t *offset);

/**
 * uprof_memory_files_read: fills @module by what memory has of its file
 *
 * A module whose file on this host has unwind tables is left alone, from then on.
 */
void uprof_memory_files_read(UprofMemoryFiles *files, unsigned module, const UprofFilePlace *place,
                             uint64_t now_ns);
