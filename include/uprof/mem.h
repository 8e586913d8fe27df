/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * mem.h - guest memory by guest-virtual address
 *
 * Walks the guest's own page tables, which the guest may have written to do harm: the number of
 * levels is fixed, there is no recursion, and uprof_guest_read() reads RAM only.
 *
 * Each guest has two UprofMem. The UprofMem of the worker remembers pages for some seconds of the
 * snapshots' time, so that a capture of the pages that were read replays to the same result. The
 * UprofMem of the sampler remembers no data, and uprof_mem_new() allocates all of its memory. For a
 * slow guest the sampler's UprofMem remembers some page tables, and uprof_mem_check() compares
 * them after the hold. For other guests it remembers some page-table walks, and each copy confirms
 * the walks that the copy uses.
 */
#pragma once

#include "uprof/guest.h"
#include "uprof/paging.h"

enum {
    UPROF_MEM_MORE_MAX = 256,   /* more pages, for a sample that finds something new */
    UPROF_MEM_PIECES_MAX = 512, /* that one call reads together */
};

#define UPROF_MEM_KEEP_NS UINT64_C(5000000000)

typedef struct _UprofMem UprofMem;

/**
 * uprof_mem_new:
 * @guest: borrowed; must outlive the result
 * @lane: the reader. For the worker, the result remembers every page. For the sampler, it remembers
 *   a few page tables if the guest is slow, else a few page-table walks.
 */
UprofMem *uprof_mem_new(UprofGuest *guest, UprofLane lane);
void uprof_mem_free(UprofMem *mem);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofMem, uprof_mem_free)

/** uprof_mem_forget: drops all remembered memory, as after a reset of the guest */
void uprof_mem_forget(UprofMem *mem);

/**
 * uprof_mem_translate:
 * @vcpu: whose registers @regs are
 * @gva: guest-virtual address
 * @gpa: (out): guest-physical address
 * @left: (out): bytes from there to the end of the page, which may be large
 * @executable: (out) (optional): code may run there
 *
 * Returns: false if @gva is not mapped, or the page tables cannot be read
 */
bool uprof_mem_translate(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                         uint64_t *gpa, uint64_t *left, bool *executable);

/** UprofMapping: the mapping of one page */
typedef struct {
    uint64_t gpa;    /* of the address that was asked for */
    uint64_t left;   /* bytes from there to the end of the page, which may be large */
    bool executable; /* code may run there */
    bool writable;   /* the kernel may write there */
} UprofMapping;

/**
 * uprof_mem_find: as uprof_mem_translate(), with access rights
 *
 * If the backend translates addresses, pages are treated as executable and not writable.
 */
bool uprof_mem_find(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                    UprofMapping *mapping);

/**
 * uprof_mem_copy:
 * @vcpu: whose registers @regs are
 * @gva: guest-virtual address
 * @into: (out): @len bytes; bytes that are not copied are undefined
 * @len: bytes, up to %UPROF_SNAPSHOT_BYTES_MAX
 *
 * Copies from @gva up to the first missing page, for stack windows. Remembers no data.
 *
 * The sampler of a guest that is not slow remembers where pages were: one read of the guest
 * copies them and confirms the page tables. If the tables have changed, or a page is new, the
 * copy walks the tables with one read for each entry. Each page takes two walks at most,
 * even if the tables are hostile. Allocates nothing.
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
 * Returns: false if a page is missing, or this sample has fetched too many
 */
bool uprof_mem_read(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva, void *into,
                    size_t len);

/**
 * uprof_mem_drop_page: the next uprof_mem_read() of the page at @gva fetches it again. Worker only.
 */
void uprof_mem_drop_page(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva);

/**
 * uprof_mem_read_always: as uprof_mem_read(), without the limit for one sample
 *
 * For rare searches, which do not count towards the limit. The caller bounds how much it reads.
 */
bool uprof_mem_read_always(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                           void *into, size_t len);

/**
 * uprof_mem_read_bulk:
 * @gva: of the first page
 * @into: (out): @len bytes; untouched where nothing is mapped
 * @len: bytes, complete pages
 *
 * Reads large ranges, which are not remembered, in pieces that are contiguous in guest-physical
 * memory. Page tables are remembered, without the limit for one sample. Worker only.
 *
 * Returns: bytes that were read
 */
size_t uprof_mem_read_bulk(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, uint64_t gva,
                           void *into, size_t len);

/** UprofMemPage: a page that uprof_mem_read_pages() reads */
typedef struct {
    uint64_t gva;    /* of its first byte */
    uint8_t *into;   /* %UPROF_PAGE_BYTES bytes; borrowed */
    bool is_missing; /* (out): nothing is mapped there; @into is undefined */
} UprofMemPage;

/**
 * uprof_mem_read_pages:
 *
 * Reads complete pages as they are now, in the order of @pages. The pages are not remembered. Page
 * tables are remembered, without the limit for one sample; the caller bounds how much it reads.
 * Pages that follow each other in @pages, in guest-physical memory and in their buffers are read
 * together. Worker only.
 */
void uprof_mem_read_pages(UprofMem *mem, unsigned vcpu, const UprofRegs *regs, UprofMemPage *pages,
                          unsigned n);

/** UprofMemPiece: bytes that uprof_mem_read_pieces() reads */
typedef struct {
    uint64_t gva;    /* of the first byte */
    void *into;      /* @len bytes; borrowed */
    uint32_t len;    /* up to %UPROF_SNAPSHOT_BYTES_MAX */
    uint8_t step;    /* see uprof_mem_read_pieces() */
    bool is_missing; /* (out): not all bytes are mapped; @into is undefined */
} UprofMemPiece;

/**
 * uprof_mem_read_pieces:
 * @n: pieces, up to %UPROF_MEM_PIECES_MAX
 *
 * Reads the pieces as they are now, in the order of @pieces, with one read of the guest if they fit
 * into it. The pieces of a slow guest are read in another order, so that one memory peek has as
 * many of them as possible: all pieces of a step, by rising guest-physical addresses, before all
 * pieces of a higher step. List the pieces of lower steps first: a read that is split keeps the
 * order of the list. The bytes are not remembered. Page tables are remembered, without the limit
 * for one sample; the caller bounds how much it reads. Worker only.
 */
void uprof_mem_read_pieces(UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                           UprofMemPiece *pieces, unsigned n);

/**
 * uprof_mem_begin_pieces: begins uprof_mem_read_pieces()
 * @pieces: at least one; they and their bytes are borrowed until uprof_mem_end_pieces(), and
 *   undefined until then
 *
 * One such read may be on its way. All other functions may be called meanwhile.
 */
void uprof_mem_begin_pieces(UprofMem *mem, unsigned vcpu, const UprofRegs *regs,
                            UprofMemPiece *pieces, unsigned n);

/** uprof_mem_end_pieces: waits for the read that uprof_mem_begin_pieces() has begun */
void uprof_mem_end_pieces(UprofMem *mem);

/**
 * uprof_mem_begin_sample:
 * @time_ns: of the snapshot
 * @resets: of the snapshot; a change drops all remembered memory
 *
 * Worker, before each snapshot. Remembered memory is dropped when it is %UPROF_MEM_KEEP_NS old
 * by the snapshots' time, and the limit for one sample starts again. Both depend on snapshots
 * only, so that a replay does the same.
 */
void uprof_mem_begin_sample(UprofMem *mem, uint64_t time_ns, uint32_t resets);

/**
 * uprof_mem_is_spent: has this sample fetched as many pages as it may?
 *
 * If so, the next sample may find a page that is missing now.
 */
bool uprof_mem_is_spent(const UprofMem *mem);

/** uprof_mem_allow_more: lets this sample fetch up to %UPROF_MEM_MORE_MAX more pages */
void uprof_mem_allow_more(UprofMem *mem);

/** uprof_mem_arch: Returns: (transfer none): the guest's */
const UprofArch *uprof_mem_arch(const UprofMem *mem);

/** uprof_mem_is_slow: each read takes a round trip of milliseconds */
bool uprof_mem_is_slow(const UprofMem *mem);

/**
 * uprof_mem_check:
 *
 * For the sampler, with nothing held. For a slow guest, this reads the page tables used since the
 * last call once more, and compares them. For a guest that maps outside holds, this reads the pages
 * that copies did not find, so that the next copy finds them. For a guest whose registers have no
 * page-table roots, this may search its memory for them.
 *
 * Returns: false if an entry that was used has changed: copies since the last call may be of the
 *   wrong pages
 */
bool uprof_mem_check(UprofMem *mem);
