/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory-guest.h - a guest that is an array of bytes, for tests
 *
 * Answers as it is told to, counts what it is asked, and asserts that releases
 * undo holds, each of the vCPU that was held. What it counts lies in memory that
 * processes share, so that the calls of a guardian are seen by whoever started it.
 */
#pragma once

#include "uprof/guest.h"

typedef enum {
    MEMORY_VET,
    MEMORY_HOLD,
    MEMORY_RELEASE,
    MEMORY_READ_REGS,
    MEMORY_READ,
    MEMORY_RESCUE,
    MEMORY_TEND,
    MEMORY_SETTLE,
    MEMORY_N_CALLS,
} MemoryCall;

/**
 * MemoryTally: what was asked, in all processes
 * @calls: of each kind
 * @holds: that succeeded, and so must be released
 * @releases: of those
 * @spans, @bytes: that were read
 * @is_held: now; of one guest at most one thing is held at a time
 * @held_vcpu: which, where each is held for itself
 * @asked: what the last rescue was told
 */
typedef struct {
    gint calls[MEMORY_N_CALLS];
    gint holds;
    gint releases;
    gint spans;
    gint bytes;
    gint is_held;
    gint held_vcpu;
    gint asked;
} MemoryTally;

/** MemoryRule: calls @first to @last (from 1) of @call are answered by @answer */
typedef struct {
    MemoryCall call;
    gint first, last;
    UprofAnswer answer;
} MemoryRule;

enum { MEMORY_RULES_MAX = 8 };

typedef struct _MemoryGuest MemoryGuest;

/**
 * MemoryGuest:
 * @ram: @ram_len bytes from guest-physical @ram_gpa on
 * @hole, @hole_end: guest-physical addresses in it where there is no memory
 * @regs: per vCPU
 * @is_absent: per vCPU
 * @vets, @stops: per vCPU: what its vet and its hold answer (a UprofAnswer) unless a
 *   rule says otherwise; atomic
 * @hold_ns: how long the stopping call takes
 * @failed_ns: how long a vCPU stands still, so it says, by a stop that becomes no hold
 * @lost_ns: per vCPU: of those, what was not asked for yet
 * @first_gpa: of the last read's first span
 * @vcpu: of the present call of vet, hold, release or read_regs
 * @hook: (nullable): called before call number @n of a kind is answered
 */
struct _MemoryGuest {
    UprofGuest base;
    uint8_t *ram;
    size_t ram_len;
    uint64_t ram_gpa;
    uint64_t hole, hole_end;
    UprofRegs *regs;
    bool *is_absent;
    gint *vets, *stops;
    uint64_t hold_ns;
    uint64_t failed_ns, *lost_ns;
    uint64_t first_gpa;
    unsigned vcpu;
    MemoryRule rules[MEMORY_RULES_MAX];
    unsigned n_rules;
    MemoryTally *tally;
    void (*hook)(MemoryGuest *guest, MemoryCall call, gint n);
    void *hook_data;
};

/** MemoryPlan: what the next guest that is opened will be */
typedef struct {
    unsigned n_vcpus;
    UprofGrain grain;
    size_t ram_len;
    bool slow_reads;
    bool paused;
    const char *arch;
    UprofMarker *marker; /* borrowed */
    MemoryRule rescue;   /* how rescues are answered: OK is true, all else false */
} MemoryPlan;

extern const UprofGuestOps memory_guest_ops;

/** memory_guest_in_hold: whether this thread holds a guest: between the two calls */
extern _Thread_local bool memory_guest_in_hold;

/**
 * memory_guest_plan:
 * @plan: copied
 *
 * For whatever opens a guest from now on; guests that are open keep their own tally.
 */
void memory_guest_plan(const MemoryPlan *plan);

/** memory_guest_tally: Returns: (transfer none): of all guests since the last plan */
MemoryTally *memory_guest_tally(void);

/** memory_guest_open: plans and opens; end it with uprof_guest_close() */
MemoryGuest *memory_guest_open(const MemoryPlan *plan);

/** memory_guest_close: asserts that nothing is held */
void memory_guest_close(MemoryGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryGuest, memory_guest_close)

/** memory_guest_rule: adds a rule; the first that fits counts */
void
memory_guest_rule(MemoryGuest *guest, MemoryCall call, gint first, gint last, UprofAnswer answer);

/** memory_guest_put: @len bytes at @gpa */
void memory_guest_put(MemoryGuest *guest, uint64_t gpa, const void *bytes, size_t len);

/** memory_guest_put_u64, _u32: little-endian numbers at @gpa */
void memory_guest_put_u64(MemoryGuest *guest, uint64_t gpa, uint64_t value);
void memory_guest_put_u32(MemoryGuest *guest, uint64_t gpa, uint32_t value);

/** memory_guest_identity: registers of 64-bit code without paging: addresses are physical */
void
memory_guest_identity(MemoryGuest *guest, unsigned vcpu, uint64_t pc, uint64_t sp, uint64_t fp);
