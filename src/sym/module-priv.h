/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * module-priv.h - a file that the guest's processes have mapped, as an image
 */
#pragma once

#include "image-priv.h"

enum { UPROF_MODULE_LABEL_BYTES_MAX = 64 };

/**
 * UprofModuleSearch: where its file may be
 * @path: (nullable): in the guest; not clean
 * @build_id: (nullable): in hex
 * @debug_folders, @sysroots: end with %NULL; the latter are absolute
 * @given: the @n_given images of files that the user has named
 */
typedef struct {
    const UprofArch *arch;
    const char *path;
    const char *build_id;
    const char *const *debug_folders;
    const char *const *sysroots;
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

/**
 * uprof_sysroot_open: a UprofSymOpener's
 * @path: below @folder, as text
 * @folder: char *, absolute
 *
 * Opens the file that a process would find there whose root @folder is: what its links
 * lead to is in it as well. Only regular files.
 */
int uprof_sysroot_open(const char *path, void *folder, GError **error);

/** uprof_sysroot_has_build: Returns: whether the file at @path, as above, says it is of that build */
bool uprof_sysroot_has_build(const char *folder, const char *path, const char *build_id);
