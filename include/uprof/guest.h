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
 * %UPROF_ABSENT: that vCPU is not plugged in. %UPROF_BUSY: somebody else has
 * stopped, migrates, saves or dumps the guest; the tick is skipped and counted.
 * %UPROF_GONE: the guest has ended; its samples stand.
 */
typedef enum {
    UPROF_OK,
    UPROF_ABSENT,
    UPROF_BUSY,
    UPROF_GONE,
    UPROF_FAILED,
} UprofAnswer;

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
 * @n_vcpus: current number
 * @kvm: runs on KVM, not on emulation
 * @no_pause: read without stopping the guest
 * @may_be_paused: a guest stopped by somebody else is opened too (to be looked
 *   at, not sampled)
 * @rescue_only: opened by the guardian, for `rescue` and nothing else
 * @marker: (nullable): flags holds for the guardian; borrowed, outlives the guest
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
    bool may_be_paused;
    bool rescue_only;
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
 * @n_vcpus, @grain, @arch: set by open
 * @slow_reads: a read costs a round trip of milliseconds, not a microsecond
 * @paused: somebody else had stopped it when it was opened
 * @left_held: a release failed: it may still be stopped
 * @resets: of the guest, since it was opened; read with g_atomic_int_get()
 * @held: for the choke point's assertions
 */
struct _UprofGuest {
    const UprofGuestOps *ops;
    const UprofArch *arch;
    UprofMarker *marker; /* borrowed */
    unsigned n_vcpus;
    UprofGrain grain;
    bool slow_reads;
    bool paused;
    bool left_held;
    bool held;
    gint resets;
};

struct _UprofGuestOps {
    const char *name; /* as in --access NAME */

    /* Sets arch, n_vcpus and grain. Proves itself once; costs what it costs. */
    UprofGuest *(*open)(const UprofTarget *target, GError **error);
    void (*close)(UprofGuest *guest);

    /*
     * Before each hold, with everything running: BUSY if somebody else has
     * stopped or moves the guest, GONE if it has ended. Optional.
     */
    UprofAnswer (*vet)(UprofGuest *guest, GError **error);
    /*
     * Both or neither: absent if the grain is NONE. @vcpu means something only
     * if the grain is VCPU. What somebody else had stopped is BUSY and stays as
     * it is: release undoes hold and no more, also after GONE.
     */
    UprofAnswer (*hold)(UprofGuest *guest, unsigned vcpu, GError **error);
    UprofAnswer (*release)(UprofGuest *guest, unsigned vcpu, GError **error);
    /* Under a hold that covers @vcpu, or any time if the grain is NONE. */
    UprofAnswer (*read_regs)(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error);
    /* Each span whole or not at all; marks what is missing. Guests have holes. */
    void (*read)(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n);

    /* Optional. For `check` and for the marker. */
    void (*facts)(UprofGuest *guest, UprofGuestFacts *facts);
    /* Optional. Needed where registers come without page-table roots. */
    bool (*translate)(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);
    /* Optional. A recording's next snapshot, in place of hold and read_regs. */
    UprofAnswer (*next)(UprofGuest *guest, UprofSnapshot *snapshot, GError **error);
    /*
     * Grain GUEST. Undoes the one hold that a dead process may have left, and
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
    uint64_t stood_ns; /* stood still from here on */
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

/** uprof_guest_vet: Returns: %UPROF_OK if the guest may be held now */
UprofAnswer uprof_guest_vet(UprofGuest *guest, GError **error);

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
