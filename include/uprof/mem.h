/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mem.h - guest memory by guest-virtual address
 *
 * Walks the guest's own page tables, which the guest may have written to hurt:
 * the number of levels is fixed, every table and page address is checked by the
 * guest (only RAM is ever read), there is no recursion.
 *
 * There are two per guest. The worker's remembers pages for some seconds of the
 * snapshots' time, so that a capture of what it has read replays to the same
 * result. The sampler's keeps nothing of the data. Of slow guests it keeps some
 * page tables, which uprof_mem_check() looks at after the hold; of others some
 * walks through the tables, which each copy checks for itself. All its memory
 * is allocated by uprof_mem_new().
 */
#pragma once

#include "uprof/guest.h"

enum {
    UPROF_PAGE_BYTES = 4096,
    UPROF_MEM_PAGES_MAX = 16 * 1024, /* remembered; 64 MiB */
    UPROF_MEM_FRESH_MAX = 48,        /* fetched for one sample */
};

#define UPROF_MEM_KEEP_NS UINT64_C(5000000000)

typedef struct _UprofMem UprofMem;

/** UprofPagingMode: how addresses are translated on x86 */
typedef enum {
    UPROF_PAGING_OFF,
    UPROF_PAGING_32BIT,
    UPROF_PAGING_PAE,
    UPROF_PAGING_4LEVEL,
    UPROF_PAGING_5LEVEL,
    UPROF_PAGING_XEN_PV32, /* the frames in these two's tables are the machine's, */
    UPROF_PAGING_XEN_PV64, /* and all pages are small */
} UprofPagingMode;

/**
 * uprof_mem_new:
 * @guest: borrowed, outlives what is returned
 * @lane: sampler: remembers page tables of slow guests, a few, and walks of
 *   others; worker: remembers every page
 */
UprofMem *uprof_mem_new(UprofGuest *guest, UprofLane lane);
void uprof_mem_free(UprofMem *mem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofMem, uprof_mem_free)

/** uprof_mem_forget: drops all that is remembered, as when the guest was reset */
void uprof_mem_forget(UprofMem *mem);

/** uprof_mem_mode: Returns: paging mode of a vCPU with these registers */
UprofPagingMode uprof_mem_mode(const UprofRegs *regs);

/** uprof_mem_mode_name: Returns: its name, for people */
const char *uprof_mem_mode_name(UprofPagingMode mode);

/**
 * uprof_mem_translate:
 * @vcpu: whose registers @regs are
 * @gva: guest-virtual address
 * @gpa: (out): guest-physical address
 * @left: (out): bytes from there to the end of the page, which may be large
 * @executable: (out) (optional): whether code may run there
 *
 * Returns: false if it is not mapped, or the tables cannot be read
 */
bool uprof_mem_translate(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                         uint64_t *gpa, uint64_t *left, bool *executable);

/**
 * UprofMapping: of one page
 * @gpa: of the address that was asked for
 * @left: bytes from there to the end of the page, which may be large
 * @executable, @writable: code may run there, the kernel may write there
 */
typedef struct {
    uint64_t gpa;
    uint64_t left;
    bool executable;
    bool writable;
} UprofMapping;

/**
 * uprof_mem_find: as uprof_mem_translate(), with all that is known
 *
 * Where the backend translates, pages are taken for executable and not writable.
 */
bool uprof_mem_find(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                    UprofMapping *mapping);

/**
 * uprof_mem_copy:
 * @vcpu: whose registers @regs are
 * @gva: guest-virtual address
 * @into: (out): @len bytes, undefined behind those that were copied
 * @len: bytes, up to %UPROF_SNAPSHOT_BYTES_MAX
 *
 * Copies from @gva up to the first page that is missing, and remembers none of
 * it. For stack windows.
 *
 * The sampler of a guest that is not slow remembers where pages were: a copy
 * is one read of the guest, in which it also finds out whether the tables
 * still say so. Where they do not, and for pages that are new, the tables are
 * walked by one read for each entry: no page more than twice, whatever they
 * contain. Allocates nothing.
 *
 * Returns: bytes copied
 */
size_t uprof_mem_copy(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                      size_t len);

/**
 * uprof_mem_read:
 * @into: (out): @len bytes, or undefined
 *
 * Reads remembered pages, or fetches and remembers them. Worker only.
 *
 * Returns: whether all of it is there
 */
bool uprof_mem_read(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                    size_t len);

/**
 * uprof_mem_read_always: as uprof_mem_read(), however many pages this sample has fetched
 *
 * For what is looked for seldom, and counts as nothing that the sample has fetched; whoever
 * looks says how much it may be.
 */
bool uprof_mem_read_always(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                           void *into, size_t len);

/**
 * uprof_mem_read_bulk:
 * @gva: of the first page
 * @into: (out): @len bytes; untouched where nothing is mapped
 * @len: bytes, whole pages
 *
 * Reads what is too much to be remembered, in pieces as large as the guest's
 * pages lie together. Tables are remembered, and none is too many. Worker only.
 *
 * Returns: bytes that are there
 */
size_t uprof_mem_read_bulk(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                           void *into, size_t len);

/**
 * uprof_mem_begin_sample:
 * @time_ns: of the snapshot
 * @resets: of the snapshot; another number than before drops all
 *
 * Worker, before each snapshot: what was remembered is dropped when it is
 * %UPROF_MEM_KEEP_NS old by the snapshots' time, and as many pages as one
 * sample may cost can be fetched again. Both depend on nothing but the
 * snapshots, so that a replay does the same.
 */
void uprof_mem_begin_sample(UprofMem *mem, uint64_t time_ns, uint32_t resets);

/**
 * uprof_mem_is_spent: Returns: whether this sample has fetched as many pages as one may:
 *   what is missing now the next sample may find
 */
bool uprof_mem_is_spent(const UprofMem *mem);

/**
 * uprof_mem_check:
 *
 * Sampler, with nothing held: of a slow guest, fetches again the page tables
 * that were used since the last call, and compares. For other guests
 * uprof_mem_copy() has compared; what it missed of a guest that maps late is
 * looked for here, so that the next copy finds it.
 *
 * Returns: false if an entry that was used is not what it was: what was copied
 *   since the last call may be of the wrong pages
 */
bool uprof_mem_check(UprofMem *mem);
