/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * file-pages-priv.h - pages of mapped files, within a budget
 *
 * Pages come from the kernel's page cache. The pages of code that the kernel maps into each process
 * (vDSO) are in no file; they come from the process that ran.
 */
#pragma once

#include "kernel-priv.h"

/* Pages for one second of the snapshots' time, and how many may be saved up. The first samples of a
 * run read the tables of all programs that run. */
enum { UPROF_FILE_PAGES_PER_SECOND = 1024, UPROF_FILE_PAGES_SAVED_MAX = 8192 };

/** UprofFilePlace: a file that the process that ran has mapped */
typedef struct {
    uint64_t mapping; /* address of its struct address_space; 0 if there is none */
    uint64_t base;    /* guest-virtual address of its first page, if there is no mapping */
    uint64_t len;     /* bytes from @base on */
} UprofFilePlace;

typedef struct _UprofFilePages UprofFilePages;

UprofFilePages *uprof_file_pages_new(const UprofLinux *kernel);
void uprof_file_pages_free(UprofFilePages *pages);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofFilePages, uprof_file_pages_free)

/** uprof_file_pages_begin: call it before each stack; both are borrowed until the next call */
void uprof_file_pages_begin(UprofFilePages *pages, UprofMem *mem, const UprofSnapshot *snapshot);

/** uprof_file_pages_is_spent: is the budget used up? A later sample may read pages again. */
bool uprof_file_pages_is_spent(const UprofFilePages *pages);

/** uprof_file_pages_left: Returns: how many pages of the budget are left */
unsigned uprof_file_pages_left(const UprofFilePages *pages);

/**
 * uprof_file_pages_read:
 * @first: number of the first page in the file
 * @bytes: (out): @n pages; zeros where they are missing
 * @is_here: (out): @n booleans
 */
void uprof_file_pages_read(UprofFilePages *pages, const UprofFilePlace *place, uint64_t first,
                           unsigned n, uint8_t *bytes, bool *is_here);

/**
 * uprof_file_pages_find:
 * @number: of the page in the file
 *
 * For single pages, of which some are remembered for %UPROF_MEM_KEEP_NS. They do not count towards
 * the budget; a sample has a limit of its own.
 *
 * Returns: (nullable): the bytes of the page, borrowed until the next call; %NULL if it is missing
 */
const uint8_t *
uprof_file_pages_find(UprofFilePages *pages, const UprofFilePlace *place, uint64_t number);
