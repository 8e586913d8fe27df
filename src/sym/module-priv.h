/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module-priv.h - a file that the guest's processes have mapped, as an image
 */
#pragma once

#include "image-priv.h"

enum { UPROF_MODULE_LABEL_BYTES_MAX = 64 };

/**
 * UprofModuleSearch: where its file may be
 * @build_id: (nullable): in hex
 * @debug_folders: ends with %NULL
 * @given: the @n_given images of files that the user has named
 */
typedef struct {
    const UprofArch *arch;
    const char *build_id;
    const char *const *debug_folders;
    UprofImage *const *given;
    unsigned n_given;
} UprofModuleSearch;

/**
 * uprof_module_open:
 * @name: of the file in the guest; not clean
 * @base: where its first page is to be
 *
 * Returns: (transfer full): without symbols if no file of its build is found
 */
UprofImage *uprof_module_open(const UprofModuleSearch *search, const char *name, uint64_t base);
