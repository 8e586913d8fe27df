/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sysroot-priv.h - a guest's files, in a folder of this host
 */
#pragma once

#include "uprof/sym-types.h"

/**
 * uprof_sysroot_open: UprofSymOpener.open for a folder with a guest's files
 * @path: begins with @folder
 * @folder: (type char *): absolute
 *
 * Opens the file that a process with @folder as its root would open: links are followed inside
 * the folder only. Opens regular files only.
 */
int uprof_sysroot_open(const char *path, void *folder, GError **error);

/** uprof_sysroot_has_build: does the file at @path, in @folder, have this build-id (in hex)? */
bool uprof_sysroot_has_build(const char *folder, const char *path, const char *build_id);
