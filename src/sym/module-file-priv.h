/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module-file-priv.h - the file on this host for a file that the guest's processes map
 */
#pragma once

#include "image-priv.h"

enum { UPROF_MODULE_FILE_LABEL_BYTES_MAX = 64 };

/** UprofModuleSearch: the places where a module's file may be; all members are borrowed */
typedef struct {
    const UprofArch *arch;
    const char *path;                 /* (nullable): in the guest; any bytes */
    const char *build_id;             /* (nullable): in hex */
    const char *const *debug_folders; /* ends with %NULL */
    const char *const *sysroots;      /* absolute; ends with %NULL */
    const char *cache_folder;         /* (nullable): one of @debug_folders; searched last */
    UprofImage *const *given;         /* images of the files that the user named */
    unsigned n_given;
    uint64_t room; /* bytes of memory that are left for symbols */
} UprofModuleSearch;

/**
 * uprof_module_file_open:
 * @name: of the file in the guest; any bytes
 * @base: symbol address of its first page
 *
 * Returns: (transfer full): an image without symbols if no file with the build-id is found
 */
UprofImage *
uprof_module_file_open(const UprofModuleSearch *search, const char *name, uint64_t base);

/**
 * uprof_module_file_reopen: searches again
 * @before: (inout): the image of the module; the new image may take its unwind rules
 *
 * Returns: (transfer full) (nullable): an image for the same module; %NULL if no file is found that
 * knows more
 */
UprofImage *uprof_module_file_reopen(const UprofModuleSearch *search, UprofImage *before);

/** uprof_module_file_find_rules: searches unwind rules for an image without. Returns: true if it
 * has some */
bool uprof_module_file_find_rules(const UprofModuleSearch *search, UprofImage *image);
