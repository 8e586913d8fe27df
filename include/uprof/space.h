/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * space.h - what the processes of a Linux guest have mapped where
 *
 * The same address means something else in each process, and the same code of a
 * library lies elsewhere in each. So each file that is mapped as code, a module, gets
 * addresses of its own, places, which no guest can have; by these its symbols and rules are
 * asked for, and what was found of them is remembered once for all processes.
 *
 * Looked up in the guest's memory as it is needed, outside holds: an area of a process
 * when an address first falls in it.
 */
#pragma once

#include "uprof/linux.h"

enum {
    UPROF_SPACE_PROCESSES_MAX = 4096, /* remembered */
    UPROF_SPACE_AREAS_MAX = 1024,     /* of a process; code only */
    UPROF_SPACE_LOOKUPS_MAX = 64,     /* for one sample */
};

typedef struct _UprofSpace UprofSpace;

/** uprof_space_new: @kernel, @sym: borrowed; @sym gets the modules */
UprofSpace *uprof_space_new(const UprofLinux *kernel, UprofSym *sym);
void uprof_space_free(UprofSpace *space);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofSpace, uprof_space_free)

/**
 * uprof_space_begin: before each stack
 * @mem: the worker's; borrowed until the next call
 * @snapshot: likewise
 */
void uprof_space_begin(UprofSpace *space, UprofMem *mem, const UprofSnapshot *snapshot);

/** uprof_space_has_processes: Returns: whether the guest has any: its kernel says where they are */
bool uprof_space_has_processes(const UprofSpace *space);

/** uprof_space_has_process: Returns: whether it is known what the process that ran has mapped */
bool uprof_space_has_process(const UprofSpace *space);

/**
 * uprof_space_place:
 * @pc: an address of the process that ran, or of the kernel
 *
 * Returns: what to ask @sym for. Of the kernel's addresses, and where there are no
 *   processes, @pc itself; of code that is in no module a place that is in none either
 */
uint64_t uprof_space_place(UprofSpace *space, uint64_t pc);
