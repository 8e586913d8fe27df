/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * root-search-priv.h - finds the page-table roots of a guest whose registers have none
 *
 * QEMU's monitor prints no system registers of aarch64. But it translates an address by them. So
 * the roots are searched in the guest's RAM: a page is a root if a walk from this page translates
 * the program counter and the stack pointer as QEMU does. The tables of the kernel stay the same
 * from boot to shutdown, so the search is made once. It is repeated when the tables do not lead to
 * a stack any longer, or not to where QEMU says, as after a reset.
 *
 * Debug stubs show these registers, too. But a stub stops the guest when something connects, and
 * may leave it stopped.
 */
#pragma once

#include "uprof/guest.h"

/** UprofRootSearch: all zeros: no search was made */
typedef struct {
    bool has_regs;     /* @regs are those of a stack */
    bool is_wanted;    /* this stack was not found */
    bool was_on;       /* the last search has found that the guest uses page tables */
    unsigned vcpu;     /* whose stack it was */
    UprofRegs regs;    /* of this vCPU */
    uint64_t next_ns;  /* monotonic: no search before */
    uint64_t pause_ns; /* until the next search, after one that has failed */
    uint64_t check_ns; /* monotonic: when QEMU was last asked */
} UprofRootSearch;

/** uprof_root_search_begin: nothing is mapped in @guest until a search has found its roots */
void uprof_root_search_begin(UprofGuest *guest);

/** uprof_root_search_note: notes the registers with which a stack was found, or was not found */
void uprof_root_search_note(UprofRootSearch *search, unsigned vcpu, const UprofRegs *regs,
                            bool is_found);

/**
 * uprof_root_search_run: searches, if a stack was not found, or QEMU disagrees
 * @guest: not held. Its @found_sys is set; it says that nothing is mapped if the search fails
 * @lane: the caller's
 *
 * A search reads up to 256 MiB of RAM around the code that runs (32 MiB of a slow guest), and takes
 * two seconds at most. Searches that fail are made with growing pauses, up to a minute. QEMU is
 * asked once in ten seconds.
 *
 * Returns: true if @found_sys has changed: copies since the last search may be of the wrong pages
 */
bool uprof_root_search_run(UprofRootSearch *search, UprofGuest *guest, UprofLane lane);
