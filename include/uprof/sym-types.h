/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sym-types.h - types that the files of sym share with its users
 */
#pragma once

#include "uprof/bytes.h"

/* The upper half of the address space belongs to the kernel, the lower half to processes. */
#define UPROF_UPPER_HALF (UINT64_C(1) << 63)

/*
 * Each module, a file that processes of the guest map, has a range of symbol addresses. No
 * guest address lies in such a range.
 */
#define UPROF_SYM_MODULE_BYTES_MAX (UINT64_C(1) << 40)

/** UprofSymMatch: does the guest run the code of a file? */
typedef enum {
    UPROF_SYM_UNCHECKED, /* nothing could be compared so far */
    UPROF_SYM_MATCHED,
    UPROF_SYM_MISMATCHED, /* the file gives no names unless it matches later */
} UprofSymMatch;

/** UprofSymCode: a range of code, by guest-virtual address */
typedef struct {
    uint64_t start;
    uint64_t end; /* first address behind the range */
} UprofSymCode;

/** UprofSymOpener: opens files whose paths the user has not chosen */
typedef struct {
    /*
     * Returns: a descriptor to read from, owned by the caller, or -1 with an error that names
     *   @path; the error is %UPROF_ERROR_NO_FILE if no file has that path
     */
    int (*open)(const char *path, void *data, GError **error);
    void *data; /* borrowed; for @open */
    /* (nullable): @open also finds debug files here, after the user's debug folders */
    const char *debug_folder;
} UprofSymOpener;
