/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * snapshot.h - what passes from a guest to the analysis: one vCPU, one moment
 *
 * A fixed-size slot, filled in a hold and read outside of it. What fills it
 * knows nothing of unwinding; what reads it knows nothing of guests.
 */
#pragma once

#include "uprof/arch.h"

enum {
    UPROF_WINDOWS_MAX = 6,
    UPROF_WINDOW_BYTES_FIRST = 16 * 1024, /* copied from a stack at first */
    UPROF_WINDOW_BYTES_MIN = 4 * 1024,    /* and when stacks are short */
    UPROF_SNAPSHOT_BYTES_MAX = 64 * 1024, /* all windows together */
    UPROF_WINDOW_BELOW_SP_BYTES = 256,    /* red zone, and slots just popped */
};

/**
 * UprofGrain: what stands still while one vCPU is held
 */
typedef enum {
    UPROF_GRAIN_NONE,  /* nothing */
    UPROF_GRAIN_VCPU,  /* that vCPU */
    UPROF_GRAIN_GUEST, /* the whole guest */
} UprofGrain;

/**
 * UprofRegs:
 * @reg: general registers by DWARF number, as the vCPU had them
 * @pc, @sp, @fp: linear addresses, segment bases added; these move with the
 *   frame while a stack is unwound, @reg only in UprofCursor (unwind.h)
 * @flags: RFLAGS
 * @sys: page-table root and modes, by the architecture's own enum
 * @word_bytes: 8, 4 or 2: what code runs
 * @privilege: 0 (kernel) to 3 (user)
 * @halted: waits for an interrupt, or has never been started
 * @smm: in system management mode, in a guest of the guest, or in a mode that is
 *   not known: its memory is not where these registers say
 */
typedef struct {
    uint64_t reg[UPROF_REGS_MAX];
    uint64_t pc, sp, fp;
    uint64_t flags;
    uint64_t sys[UPROF_SYS_MAX];
    uint8_t word_bytes;
    uint8_t privilege;
    bool halted;
    bool smm;
} UprofRegs;

/**
 * UprofX86Segments: what decides which code an x86 vCPU runs, and where
 * @cs_long: L flag of CS; @cs_big, @ss_big: their D/B flags
 */
typedef struct {
    uint64_t cs_base, ss_base;
    bool cs_long, cs_big, ss_big;
} UprofX86Segments;

/**
 * UprofWindow:
 * @gva: guest-virtual address of its first byte
 * @offset: of its bytes in the snapshot
 * @len: bytes
 */
typedef struct {
    uint64_t gva;
    uint32_t offset;
    uint32_t len;
} UprofWindow;

/**
 * UprofSnapshot:
 * @time_ns: since the run began
 * @hold: number of the hold in this run, from 0; one hold may cover several vCPUs
 * @hold_ns: from the call that stops to the return of the call that releases, where the
 *   backend has not asked for the stop later and let go earlier; 0 where nothing was held
 * @stopped_ns: from the moment it stood still to the release, and as much of the
 *   time before as it may have stood still unseen; on Xen, which says itself how
 *   long it was, both are the same
 * @weight: how many ticks of the asked rate each sample stands for, at least 1
 * @count: how many samples this is, at least 1; more only if @same
 * @reset: how many times the guest was reset before
 * @stale: the windows' translation changed meanwhile; they were dropped
 * @same: the vCPU has not run since its snapshot before this one, so that nothing
 *   was held or read: there are no registers and no windows
 * @is_prime: no sample: before the first one, to learn from what the guest is
 * @owner: borrowed, opaque: whose snapshot it is where several guests share a
 *   ring; not part of a capture
 */
typedef struct {
    uint64_t time_ns;
    uint64_t hold;
    uint64_t hold_ns;
    uint64_t stopped_ns;
    uint32_t vcpu;
    uint32_t weight;
    uint32_t count;
    uint32_t reset;
    uint8_t grain;
    bool idle;
    bool stale;
    bool same;
    bool is_prime;
    void *owner;
    UprofRegs regs;
    uint32_t n_windows;
    UprofWindow windows[UPROF_WINDOWS_MAX];
    uint8_t bytes[UPROF_SNAPSHOT_BYTES_MAX];
} UprofSnapshot;

/**
 * uprof_x86_finish_regs:
 * @regs: (inout): with @reg and @sys; gets program counter, stack and frame
 *   pointer as linear addresses, and the word size
 *
 * A vCPU at its reset vector is taken for one that was never started: halted.
 */
void uprof_x86_finish_regs(UprofRegs *regs, const UprofX86Segments *segments);

/** uprof_snapshot_clear: empties @snapshot but for its bytes, which no window names then */
void uprof_snapshot_clear(UprofSnapshot *snapshot);

/** uprof_snapshot_room: Returns: bytes that new windows may still take */
size_t uprof_snapshot_room(const UprofSnapshot *snapshot);

/**
 * uprof_snapshot_read:
 * @gva: guest-virtual address
 * @into: (out): @len bytes, untouched on failure
 * @len: bytes, not 0
 *
 * Returns: whether all of it lies in one window
 */
bool uprof_snapshot_read(const UprofSnapshot *snapshot, uint64_t gva, void *into, size_t len);

/**
 * uprof_snapshot_window_at:
 *
 * Returns: (nullable): the window that holds the byte at @gva
 */
const UprofWindow *uprof_snapshot_window_at(const UprofSnapshot *snapshot, uint64_t gva);
