/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * memory-guest.h - a guest that is an array of bytes, for tests
 *
 * The guest answers calls as the test's rules say, counts the calls, and asserts that each
 * release undoes a hold of the same vCPU. The counts are in memory that processes share, so a
 * test also sees the calls of its guardian.
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
    MEMORY_POLL,
    MEMORY_RELEASE_LATE,
    MEMORY_N_CALLS,
} MemoryCall;

/** MemoryTally: the calls of all processes; all members are atomic */
typedef struct {
    gint calls[MEMORY_N_CALLS]; /* by kind of call */
    gint holds;                 /* successful holds, which must be released */
    gint releases;              /* of these holds */
    gint spans;                 /* that were read */
    gint bytes;                 /* that were read */
    gint is_held;               /* a hold lasts now; a guest has at most one hold at a time */
    gint held_vcpu;             /* the vCPU that is held, if vCPUs are held one by one */
    gint asked;                 /* parameter @asked of the last rescue */
} MemoryTally;

/** MemoryRule: the calls number @first to @last (from 1) of kind @call get @answer */
typedef struct {
    MemoryCall call;
    gint first, last;
    UprofAnswer answer;
} MemoryRule;

enum { MEMORY_RULES_MAX = 8 };

typedef struct _MemoryGuest MemoryGuest;

/** MemoryGuest: an open guest; arrays are owned, and have one element for each vCPU */
struct _MemoryGuest {
    UprofGuest base;
    uint8_t *ram;            /* owned; memory from guest-physical @ram_gpa on */
    size_t ram_len;          /* bytes */
    uint64_t ram_gpa;        /* guest-physical address of @ram */
    uint64_t hole, hole_end; /* guest-physical addresses of a range without memory */
    UprofRegs *regs;
    bool *is_absent;
    gint *vets;         /* answers of vet (UprofAnswer), if no rule applies; atomic */
    gint *stops;        /* answers of hold (UprofAnswer), if no rule applies; atomic */
    uint64_t hold_ns;   /* duration of the call that stops */
    uint64_t failed_ns; /* reported loss of each stop that does not become a hold */
    uint64_t *lost_ns;  /* reported losses that take_lost_ns has not returned yet */
    uint64_t first_gpa; /* of the first span of the last read */
    unsigned vcpu;      /* of the present call of vet, hold, release or read_regs */
    MemoryRule rules[MEMORY_RULES_MAX]; /* the first rule that applies counts */
    unsigned n_rules;                   /* in @rules */
    MemoryTally *tally;                 /* borrowed; in shared memory */
    /* (nullable): called before call number @n of a kind is answered */
    void (*hook)(MemoryGuest *guest, MemoryCall call, gint n);
    void *hook_data; /* for @hook */
    /*
     * (nullable): the hypervisor's translation of an address. Returns: false if it is not mapped. A
     * guest whose registers have no roots needs it.
     */
    bool (*translation)(MemoryGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);
    UprofSpan *begun; /* (nullable): borrowed: of a read that has begun */
    unsigned n_begun; /* spans of it */
};

/** MemoryPlan: properties of the next guest that is opened */
typedef struct {
    unsigned n_vcpus;
    UprofGrain grain;
    size_t ram_len; /* bytes */
    bool slow_reads;
    bool paused;
    bool needs_roots;
    const char *arch;    /* borrowed */
    UprofMarker *marker; /* borrowed */
    MemoryRule rescue;   /* answer of rescues: OK is true, all other answers are false */
} MemoryPlan;

extern const UprofGuestOps memory_guest_ops;

/** memory_guest_in_hold: this thread holds a guest, between the return of hold and release */
extern _Thread_local bool memory_guest_in_hold;

/**
 * memory_guest_plan:
 * @plan: copied
 *
 * Applies to all guests that are opened from now on. Open guests keep their tally.
 */
void memory_guest_plan(const MemoryPlan *plan);

/** memory_guest_tally: Returns: (transfer none): calls of all guests since the last plan */
MemoryTally *memory_guest_tally(void);

/** memory_guest_open: sets the plan and opens a guest; end it with memory_guest_close() */
MemoryGuest *memory_guest_open(const MemoryPlan *plan);

/** memory_guest_close: asserts that nothing is held */
void memory_guest_close(MemoryGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MemoryGuest, memory_guest_close)

/** memory_guest_rule: adds a rule; of several rules that apply, the first counts */
void
memory_guest_rule(MemoryGuest *guest, MemoryCall call, gint first, gint last, UprofAnswer answer);

/** memory_guest_put: writes @len bytes at guest-physical @gpa */
void memory_guest_put(MemoryGuest *guest, uint64_t gpa, const void *bytes, size_t len);

/** memory_guest_put_u64, _u32: write little-endian numbers at guest-physical @gpa */
void memory_guest_put_u64(MemoryGuest *guest, uint64_t gpa, uint64_t value);
void memory_guest_put_u32(MemoryGuest *guest, uint64_t gpa, uint32_t value);

/** memory_guest_identity: sets registers of 64-bit code without paging: addresses are physical */
void
memory_guest_identity(MemoryGuest *guest, unsigned vcpu, uint64_t pc, uint64_t sp, uint64_t fp);
