/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * snapshot.h - one sample of one vCPU: its registers and pieces of its stacks
 *
 * A snapshot is a slot of fixed size, filled during a hold and read after it. The code that fills
 * it does not depend on the methods of unwinding. The code that reads it does not depend on the
 * access to the guest.
 */
#pragma once

#include "uprof/arch.h"

enum {
    UPROF_WINDOWS_MAX = 24,
    UPROF_WINDOW_BYTES_FIRST = 16 * 1024, /* of a stack to copy, before its length is learned */
    UPROF_WINDOW_BYTES_MIN = 4 * 1024,    /* of a stack to copy, if stacks are short */
    UPROF_SNAPSHOT_BYTES_MAX = 64 * 1024, /* of all windows together */
    UPROF_WINDOW_BELOW_SP_BYTES = 256,    /* red zone, and slots that were just popped */
};

/** UprofGrain: the part of the guest that stands still while one vCPU is held */
typedef enum {
    UPROF_GRAIN_NONE,  /* nothing */
    UPROF_GRAIN_VCPU,  /* that vCPU */
    UPROF_GRAIN_GUEST, /* the complete guest */
} UprofGrain;

/** UprofRegs: registers of a vCPU, or of a frame */
typedef struct {
    /* General registers by DWARF number. A snapshot has the registers of the vCPU. An UprofCursor
     * (unwind-context-priv.h) has the registers of its frame. */
    uint64_t reg[UPROF_REGS_MAX];
    /* Linear addresses, which include the segment bases. */
    uint64_t pc, sp, fp;
    uint64_t flags;              /* RFLAGS; PSTATE */
    uint64_t sys[UPROF_SYS_MAX]; /* page-table root and modes, by the architecture's own enum */
    uint8_t word_bytes;          /* of the code that runs: 8, 4 or 2 */
    uint8_t privilege;           /* 0 (kernel) to 3 (user) */
    bool halted;                 /* waits for an interrupt, or was never started */
    /* System management mode, a nested guest, a hypervisor, or an unknown mode: these registers do
     * not show which memory the code uses. */
    bool smm;
} UprofRegs;

/** UprofX86Segments: the segments that decide which kind of code an x86 vCPU runs, and where */
typedef struct {
    uint64_t cs_base, ss_base;
    bool cs_long; /* L flag of CS */
    bool cs_big;  /* D flag of CS */
    bool ss_big;  /* B flag of SS */
} UprofX86Segments;

/** UprofWindow: a copied piece of guest memory */
typedef struct {
    uint64_t gva;    /* guest-virtual address of its first byte */
    uint32_t offset; /* of its bytes in UprofSnapshot.bytes */
    uint32_t len;    /* bytes */
} UprofWindow;

/** UprofSnapshot: a sample, or several equal ones */
typedef struct {
    uint64_t time_ns; /* since the run began */
    uint64_t hold;    /* number of the hold in this run, from 0; a hold may cover several vCPUs */
    /* Length of the hold: from the call that stops the vCPU until the call that releases the vCPU
     * returns. A backend may know a shorter time that includes the stop. 0 without a hold. */
    uint64_t hold_ns;
    /* Upper bound of the time for which the vCPU stood still; the backend may notice the stop late.
     * Xen measures this time itself, so @hold_ns and @stopped_ns are equal for Xen. */
    uint64_t stopped_ns;
    uint32_t vcpu;
    uint32_t weight; /* ticks of the requested rate that each sample stands for, at least 1 */
    uint32_t count;  /* samples, at least 1; more than 1 only if @same */
    uint32_t reset;  /* resets of the guest before this snapshot */
    uint8_t grain;   /* UprofGrain */
    bool idle;
    bool stale; /* address translation changed during the copy; the windows were dropped */
    /* The vCPU has not run since its previous snapshot: nothing was held or read, and there are
     * no registers and no windows. */
    bool same;
    bool is_prime; /* not a sample, but registers from which to detect the guest's kernel */
    void *owner;   /* borrowed; identifies the guest among all that share a ring; not in captures */
    UprofRegs regs;
    uint32_t n_windows;
    UprofWindow windows[UPROF_WINDOWS_MAX];
    uint8_t bytes[UPROF_SNAPSHOT_BYTES_MAX]; /* of all windows */
} UprofSnapshot;

/**
 * uprof_x86_finish_regs: derives linear addresses and the word size
 * @regs: (inout): @reg and @sys are input; @pc, @sp, @fp, @word_bytes and @halted are set
 *
 * A vCPU at its reset vector counts as halted, because it was never started.
 */
void uprof_x86_finish_regs(UprofRegs *regs, const UprofX86Segments *segments);

/**
 * uprof_aarch64_finish_regs:
 * @regs: (inout): @reg and @flags are input; @pc, @sp, @fp, @word_bytes, @privilege, @halted and
 *   @smm are set
 *
 * A vCPU that was never started counts as halted.
 */
void uprof_aarch64_finish_regs(UprofRegs *regs);

/**
 * uprof_regs_plain_address:
 * @regs: of the vCPU: its page tables say how many bits an address has
 * @address: of code, from a stack or a register
 *
 * On aarch64 a function may sign its return address in the bits above the address.
 *
 * Returns: @address without a signature
 */
uint64_t uprof_regs_plain_address(const UprofArch *arch, const UprofRegs *regs, uint64_t address);

/** uprof_snapshot_clear: resets all members except the bytes */
void uprof_snapshot_clear(UprofSnapshot *snapshot);

/** uprof_snapshot_bytes: Returns: bytes of the struct up to the end of its last window */
size_t uprof_snapshot_bytes(const UprofSnapshot *snapshot);

/**
 * uprof_snapshot_add_window: adds a copy of guest memory; @len: bytes, up to uprof_snapshot_room()
 */
void
uprof_snapshot_add_window(UprofSnapshot *snapshot, uint64_t gva, const void *bytes, size_t len);

/** uprof_snapshot_room: Returns: free bytes for further windows */
size_t uprof_snapshot_room(const UprofSnapshot *snapshot);

/**
 * uprof_snapshot_read:
 * @gva: guest-virtual address
 * @into: (out): @len bytes, untouched on failure
 * @len: bytes, not 0
 *
 * Returns: false unless one window contains all of the bytes
 */
bool uprof_snapshot_read(const UprofSnapshot *snapshot, uint64_t gva, void *into, size_t len);

/** uprof_snapshot_read_word: as uprof_snapshot_read(), for a word of 8 bytes in the guest's byte
 * order */
bool uprof_snapshot_read_word(const UprofSnapshot *snapshot, uint64_t gva, uint64_t *word);

/** uprof_snapshot_window_at: Returns: (nullable): the window with the byte at @gva */
const UprofWindow *uprof_snapshot_window_at(const UprofSnapshot *snapshot, uint64_t gva);
