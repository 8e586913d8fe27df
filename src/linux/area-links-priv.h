/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * area-links-priv.h - tells the sampler how to find the areas of a process
 */
#pragma once

#include "uprof/links.h"

#include "kernel-offsets-priv.h"

/** uprof_linux_area_links_find: @links: (out): zeros if a member is not known, or too far away */
void uprof_linux_area_links_find(const UprofLinuxOffsets *offsets, UprofLinksAreas *links);
