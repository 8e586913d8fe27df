/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * areas-priv.h - copies where the files of a process are mapped, after the hold
 *
 * When a process ends, the kernel forgets this. The analysis needs longer than many a process runs,
 * so the sampler follows the kernel's own tree of areas right after the hold. The sampler
 * uses only the pointers and the flag of code in these bytes. The guest may run meanwhile and
 * change the tree, so the analysis must bear any bytes.
 */
#pragma once

#include "uprof/links.h"
#include "uprof/mem.h"

/**
 * uprof_areas_copy:
 * @mem: of the sampler
 * @snapshot: (inout): gets a window of copies (copies.h)
 */
void uprof_areas_copy(UprofMem *mem, const UprofLinks *links, UprofSnapshot *snapshot);
