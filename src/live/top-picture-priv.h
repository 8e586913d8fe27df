/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * top-picture-priv.h - how stacks get into the picture
 */
#pragma once

#include "uprof/top-picture.h"

/** uprof_top_picture_note: in a worker: keeps the stacks of a round; @profile: borrowed */
void uprof_top_picture_note(const UprofProfile *profile);
