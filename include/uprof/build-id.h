/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * build-id.h - build-ids as text
 */
#pragma once

#include "uprof/bytes.h"

/** uprof_build_id_hex: Returns: (transfer full): two hexadecimal digits for each byte */
char *uprof_build_id_hex(UprofSlice build_id);
