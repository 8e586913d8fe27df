/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * path-priv.h - remembers the folder at which relative paths begin
 */
#pragma once

#include "uprof/path.h"

/** uprof_path_remember_folder: remembers the working folder; call it before that folder changes */
void uprof_path_remember_folder(void);
