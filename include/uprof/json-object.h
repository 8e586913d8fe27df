/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * json-object.h - tells JSON objects from other text
 */
#pragma once

#include "uprof/bytes.h"

/** uprof_json_is_object: is @text, any bytes, one JSON object, nested up to 16 times? */
bool uprof_json_is_object(UprofSlice text);
