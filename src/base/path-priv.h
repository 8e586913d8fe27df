/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * path-priv.h - which folder paths are relative to
 */
#pragma once

#include "uprof/path.h"

/** uprof_path_remember_folder: call it before the working folder changes */
void uprof_path_remember_folder(void);
