/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guest.h - the choke point: every call into a backend passes here
 *
 * A backend opens a guest and answers for it through one ops table. The rules
 * of the table are asserted here, before and after each call, so that no
 * backend repeats them: releases undo holds, registers are read under a hold,
 * reads are whole or marked missing. Knows nothing of stacks and names.
 *
 * A backend, step by step: (1) src/backend/NAME.c: a struct that begins with
 * `UprofGuest base`, one checked downcast, the ops table. (2) `extern` in
 * backend.h and a row in cli/access.c. (3) Outside headers in layers.ini.
 * (4) What the hypervisor answers gets a parser in src/parse. (5) Grain GUEST
 * needs `rescue`, and the kill test in tests/live. (6) A capture made through
 * it becomes a case in tests/replay. (7) The man page.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/marker.h"
#include "uprof/snapshot.h"

typedef struct _UprofGuest UprofGuest;
typedef struct _UprofGuestOps UprofGuestOps;

enum { UPROF_VCPUS_MAX = 4096 };

/**
 * UprofAnswer: what a guest answers; only %UPROF_FAILED is an error and sets one
 *
 * %UPROF_IDLE: that vCPU is halted; it need not be held to know it.
 * %UPROF_SAME: it has not run since its last sample, though it is not halted
 * (the hypervisor emulates a device for it): its last stack still stands.
 * %UPROF_ABSENT: it is not plugged in. %UPROF_BUSY: somebody else has stopped,
 * traces, migrates, saves or dumps the guest; the tick is skipped and counted.
 * %UPROF_STUCK: it did not stop in time, and this is no hold; it may stop yet,
 * and be let go then, which is what @unsettled says.
 * %UPROF_GONE: the guest has ended; its samples stand.
 */
typedef enum {
    UPROF_OK,
    UPROF_IDLE,
    UPROF_SAME,
    UPROF_ABSENT,
    UPROF_BUSY,
    UPROF_STUCK,
    UPROF_GONE,
    UPROF_FAILED,
} UprofAnswer;

/** UprofHindrance: what somebody else does with the guest while it is %UPROF_BUSY */
typedef enum {
    UPROF_HINDRANCE_NONE,    /* nothing, or the backend cannot tell */
    UPROF_HINDRANCE_PAUSED,  /* paused, in libvirt's or the hypervisor's sense */
    UPROF_HINDRANCE_JOB,     /* migration, save, snapshot, dump or backup */
    UPROF_HINDRANCE_STOPPED, /* its process was stopped by a signal */
    UPROF_HINDRANCE_TRACED,  /* its process has another tracer, such as gdb */
} UprofHindrance;

/**
 * UprofLane: who reads; each has memory of its own, so that a hold never waits
 * for the worker
 */
typedef enum {
    UPROF_LANE_SAMPLER,
    UPROF_LANE_WORKER,
    UPROF_N_LANES,
} UprofLane;

/**
 * UprofSpan: a piece of guest-physical memory to read
 * @gpa: guest-physical address
 * @into: where @len bytes go
 * @missing: (out): no memory there, or it could not be read; @into is undefined then
 */
typedef struct {
    uint64_t gpa;
    void *into; /* borrowed */
    uint32_t len;
    bool missing;
} UprofSpan;

/**
 * UprofTarget: which guest to open, and how
 * @uri: (nullable): libvirt connection; %NULL: libvirt's default
 * @uuid: of the domain
 * @name: of the domain, as it is; for messages clean it first
 * @id: libvirt's number of the running domain, or -1
 * @path: (nullable): of a recording
 * @arch: of the guest; (nullable) where a recording will say
 * @n_vcpus: the most it may have
 * @kvm: runs on KVM, not on emulation
 * @no_pause: read without stopping the guest
 * @idle_stacks: the last stack of a halted vCPU is wanted: it is held once after
 *   it has run
 * @may_be_paused: a guest stopped by somebody else is opened too (to be looked
 *   at, not sampled)
 * @rescue_only: opened by the guardian, for `rescue` and nothing else
 * @max_pause_ns: a vCPU that does not stop for so long is given up; 0: what is usual
 * @marker: (nullable): flags holds for the guardian, or says to `rescue` what is
 *   known of the last; borrowed, outlives the guest
 */
typedef struct {
    const char *uri;
    const char *uuid;
    const char *name;
    int id;
    const char *path;
    const UprofArch *arch;
    unsigned n_vcpus;
    bool kvm;
    bool no_pause;
    bool idle_stacks;
    bool may_be_paused;
    bool rescue_only;
    uint64_t max_pause_ns;
    UprofMarker *marker;
} UprofTarget;

/**
 * UprofGuestFacts: what a backend has to say of itself
 * @pid, @pid_start: of the process that runs the guest, 0 if it is not on this host
 * @n_ranges, @ram_bytes: of the guest's RAM
 * @reads: (nullable): how memory is read; literal
 * @why_slow: (nullable): why not in a faster way; literal
 */
typedef struct {
    int pid;
    uint64_t pid_start;
    unsigned n_ranges;
    uint64_t ram_bytes;
    const char *reads;
    const char *why_slow;
} UprofGuestFacts;

/**
 * UprofGuest: what all guests have; backends put their own behind it
 * @n_vcpus, @grain, @arch: set by open; @n_vcpus counts places: some may be empty
 * @probe_ns: what an undisturbed hold takes, as open has tried it; 0: it has not
 * @slow_reads: a read costs a round trip of milliseconds, not a microsecond
 * @maps_late: in a hold the sampler reads only what somebody has read before
 * @times_holds: reading the clock is dear: in a hold nobody does, and after each
 *   @last_hold_ns is how long it was by another clock, 0: that has failed; what took a
 *   millisecond more as we see it counts as we see it
 * @asked_ns, @freed_ns: of the last hold: when the backend asked for the stop, and when
 *   it had let go; 0: at the call of hold, and at the return of release
 * @paused: somebody else had stopped it when it was opened
 * @left_held: a release failed: it may still be stopped
 * @resets: of the guest, since it was opened; read with g_atomic_int_get()
 * @hindrance: UprofHindrance; @tracer: process id of the other tracer; atomic too
 * @unsettled: a hold that was given up has left something to let go; atomic
 * @held: for the choke point's assertions
 */
struct _UprofGuest {
    const UprofGuestOps *ops;
    const UprofArch *arch;
    UprofMarker *marker; /* borrowed */
    unsigned n_vcpus;
    UprofGrain grain;
    bool slow_reads;
    bool maps_late;
    bool times_holds;
    bool paused;
    bool left_held;
    bool held;
    gint resets;
    gint hindrance;
    gint tracer;
    gint unsettled;
    uint64_t probe_ns;
    uint64_t last_hold_ns;
    uint64_t asked_ns;
    uint64_t freed_ns;
};

struct _UprofGuestOps {
    const char *name; /* as in --access NAME */

    /* Sets arch, n_vcpus and grain. Proves itself once; costs what it costs. */
    UprofGuest *(*open)(const UprofTarget *target, GError **error);
    void (*close)(UprofGuest *guest);

    /*
     * Before each hold, with everything running: BUSY if somebody else has
     * stopped or moves the guest, GONE if it has ended. If the grain is VCPU
     * also IDLE, SAME, ABSENT and STUCK, for @vcpu; if it is GUEST also IDLE,
     * when all its vCPUs are. Optional.
     */
    UprofAnswer (*vet)(UprofGuest *guest, unsigned vcpu, GError **error);
    /*
     * Both or neither: absent if the grain is NONE. @vcpu means something only
     * if the grain is VCPU. What somebody else had stopped is BUSY and stays as
     * it is: release undoes hold and no more, also after GONE.
     *
     * BUSY, and a failure that is DENIED: there is nothing to undo: nothing was done, or
     * it is undone, and `take_lost` tells of it. Whoever cannot tell fails otherwise: if
     * the grain is GUEST it is then taken for stopped, and the guardian's `rescue` lets
     * it go.
     */
    UprofAnswer (*hold)(UprofGuest *guest, unsigned vcpu, GError **error);
    UprofAnswer (*release)(UprofGuest *guest, unsigned vcpu, GError **error);
    /* Under a hold that covers @vcpu, or any time if the grain is NONE. */
    UprofAnswer (*read_regs)(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error);
    /* Each span whole or not at all; marks what is missing. Guests have holes. */
    void (*read)(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n);

    /*
     * Optional. About once a second, from a thread that holds nothing, while the
     * sampler goes on: looks at what changes rarely (pauses, jobs, plugged memory
     * and vCPUs), so that a tick need not.
     */
    void (*tend)(UprofGuest *guest);
    /*
     * Optional. In the sampler's thread between holds, while @unsettled is set:
     * lets go what has come to a stop after its hold was given up.
     */
    void (*settle)(UprofGuest *guest);
    /*
     * Optional. In the sampler's thread between holds: for how many nanoseconds @vcpu
     * stood still, at most, in stops that became no hold, since this was last asked.
     */
    uint64_t (*take_lost)(UprofGuest *guest, unsigned vcpu);

    /* Optional. For `check` and for the marker. */
    void (*facts)(UprofGuest *guest, UprofGuestFacts *facts);
    /* Optional. Needed where registers come without page-table roots. */
    bool (*translate)(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);
    /* Optional. A recording's next snapshot, in place of hold and read_regs. */
    UprofAnswer (*next)(UprofGuest *guest, UprofSnapshot *snapshot, GError **error);
    /*
     * Where anything is held. Undoes the one hold that a dead process may have left, and
     * no other: @asked says that the process may have died while its stop was
     * still on the way. True when nothing of ours is stopped any more.
     */
    bool (*rescue)(UprofGuest *guest, bool asked, GError **error);
};

/**
 * UprofHold: a hold as a scope: g_auto(UprofHold) hold = { 0 };
 *
 * However a function is left, its hold ends there; what the release said is
 * then in the guest's @left_held.
 */
typedef struct {
    UprofGuest *guest; /* borrowed; NULL: nothing is held */
    unsigned vcpu;
    unsigned n_vcpus; /* vCPUs that the hold covers, from vcpu on */
    uint64_t began_ns;
    uint64_t stood_ns; /* stood still from here on, or from began_ns if that is not known */
} UprofHold;

/**
 * uprof_guest_open:
 * @ops: of the backend
 * @target: borrowed for the call
 *
 * Returns: (transfer full) (nullable): %NULL with an error
 */
UprofGuest *uprof_guest_open(const UprofGuestOps *ops, const UprofTarget *target, GError **error);

/** uprof_guest_close: @guest: (nullable): must not be held */
void uprof_guest_close(UprofGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(UprofGuest, uprof_guest_close)

/**
 * uprof_guest_vet:
 * @vcpu: means something only if the grain is VCPU
 *
 * Returns: %UPROF_OK if the guest, or that vCPU, may be held now
 */
UprofAnswer uprof_guest_vet(UprofGuest *guest, unsigned vcpu, GError **error);

/** uprof_guest_tend: see `tend` above */
void uprof_guest_tend(UprofGuest *guest);

/** uprof_guest_settle: see `settle` above. Returns: whether nothing is left to let go */
bool uprof_guest_settle(UprofGuest *guest);

/** uprof_guest_take_lost: see `take_lost` above. Returns: 0 if nothing was lost */
uint64_t uprof_guest_take_lost(UprofGuest *guest, unsigned vcpu);

/**
 * uprof_guest_hold:
 * @vcpu: the first vCPU wanted
 * @hold: (out): names the vCPUs it covers; empty unless this is %UPROF_OK.
 *   Where the grain is NONE nothing stands still and all vCPUs are covered.
 *
 * Flags the guardian before the stopping call. A failure marks the guest as left
 * held, unless it was refused (%UPROF_ERROR_DENIED): then nothing was stopped.
 */
UprofAnswer uprof_guest_hold(UprofGuest *guest, unsigned vcpu, UprofHold *hold, GError **error);

/**
 * uprof_hold_release:
 * @hold: does nothing if it is empty; empty afterwards
 * @hold_ns, @stopped_ns: (out) (optional): how long it lasted
 *
 * A failure marks the guest as left held and keeps the guardian's flag.
 */
UprofAnswer
uprof_hold_release(UprofHold *hold, uint64_t *hold_ns, uint64_t *stopped_ns, GError **error);
void uprof_hold_clear(UprofHold *hold);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofHold, uprof_hold_clear)

/** uprof_guest_read_regs: @regs: (out): untouched unless %UPROF_OK */
UprofAnswer
uprof_guest_read_regs(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error);

/** uprof_guest_read: reads guest-physical memory; see UprofSpan */
void uprof_guest_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n);

/** uprof_guest_translates: Returns: whether only the backend can translate addresses */
bool uprof_guest_translates(const UprofGuest *guest);
bool uprof_guest_translate(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);

/** uprof_guest_is_recording: Returns: whether uprof_guest_next() is the way */
bool uprof_guest_is_recording(const UprofGuest *guest);

/** uprof_guest_next: Returns: %UPROF_GONE behind the last snapshot */
UprofAnswer uprof_guest_next(UprofGuest *guest, UprofSnapshot *snapshot, GError **error);

/** uprof_guest_facts: @facts: (out): zero where the backend does not say */
void uprof_guest_facts(UprofGuest *guest, UprofGuestFacts *facts);

/** uprof_guest_rescue: for the guardian and for heal; see `rescue` above */
bool uprof_guest_rescue(UprofGuest *guest, bool asked, GError **error);
