/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * disk-copy-priv.h - a copy with another helper, for tests
 */
#pragma once

#include "uprof/disk-copy.h"

/** uprof_disk_copy_new_by: as uprof_disk_copy_new(); @program: of the helper; @cache: the folder */
UprofDiskCopy *uprof_disk_copy_new_by(const char *program, const char *cache, const char *uuid,
                                      const char *const *formats, const char *const *paths,
                                      unsigned n, char **warning, GError **error);
