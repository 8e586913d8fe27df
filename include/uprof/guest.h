/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * guest.h - a running virtual machine, through one of several backends
 *
 * Every call into a backend passes through the functions below. They assert the rules of the ops
 * table before and after each call, so that no backend has to check them: a release undoes one
 * hold, registers are read in a hold, a read is complete or marked as missing. This module does not
 * handle stacks or names.
 *
 * doc/extending.md ("An access") says how to write a backend.
 */
#pragma once

#include "uprof/error.h"
#include "uprof/marker.h"
#include "uprof/snapshot.h"

typedef struct _UprofGuest UprofGuest;
typedef struct _UprofGuestOps UprofGuestOps;

enum { UPROF_VCPUS_MAX = 4096 };

/** UprofAnswer: the answer of a backend; only %UPROF_FAILED is an error, and sets a GError */
typedef enum {
    UPROF_OK,
    /* The vCPU is halted. This is known without a hold. */
    UPROF_IDLE,
    /*
     * The vCPU is not halted, but has not run since its last sample, because the hypervisor
     * emulates a device for it. Its last stack is still its stack.
     */
    UPROF_SAME,
    /* The vCPU is not plugged in. */
    UPROF_ABSENT,
    /*
     * Somebody else has stopped, traces, migrates, saves or dumps the guest. The tick is
     * skipped and counted.
     */
    UPROF_BUSY,
    /*
     * The vCPU did not stop in time, so this is not a hold. The vCPU may still stop later:
     * `release_late` releases it then.
     */
    UPROF_STUCK,
    /* The guest has ended. Its samples remain valid. */
    UPROF_GONE,
    UPROF_FAILED,
} UprofAnswer;

/** UprofHindrance: why a guest is %UPROF_BUSY */
typedef enum {
    UPROF_HINDRANCE_NONE,    /* nothing, or unknown to the backend */
    UPROF_HINDRANCE_PAUSED,  /* libvirt or the hypervisor has paused it */
    UPROF_HINDRANCE_JOB,     /* migration, save, snapshot, dump or backup */
    UPROF_HINDRANCE_STOPPED, /* a signal has stopped its process */
    UPROF_HINDRANCE_TRACED,  /* its process has another tracer, such as gdb */
} UprofHindrance;

/**
 * UprofLane: a reader of memory. Each lane has its own cache, so a hold never waits for the worker.
 */
typedef enum {
    UPROF_LANE_SAMPLER,
    UPROF_LANE_WORKER,
    UPROF_N_LANES,
} UprofLane;

/** UprofSpan: a piece of guest-physical memory to read */
typedef struct {
    uint64_t gpa;
    void *into;   /* borrowed: where len bytes go; undefined if they are missing */
    uint32_t len; /* bytes */
    bool missing; /* (out): there is no memory, or it could not be read */
} UprofSpan;

/** UprofTarget: the guest to open, and settings for it. All pointers are borrowed for the call. */
typedef struct {
    /* (nullable): libvirt connection; %NULL: libvirt's default */
    const char *uri;
    /* of the domain */
    const char *uuid;
    /* of the domain, as libvirt has it: not safe to print */
    const char *name;
    /* libvirt's number of the running domain; -1: not known */
    int id;
    /* (nullable): file name of a recording */
    const char *path;
    /* of the guest; (nullable): a recording names its own */
    const UprofArch *arch;
    /* the largest number of vCPUs that the guest may have */
    unsigned n_vcpus;
    /* the guest runs on KVM, not on QEMU's emulation */
    bool kvm;
    /* the guest has a device by which it can stop itself when it crashes */
    bool may_panic;
    /* read without stopping the guest */
    bool no_pause;
    /* the stacks of halted vCPUs are wanted: a halted vCPU is held once after it has run */
    bool idle_stacks;
    /* also open a guest that somebody else has paused; such a guest gives snapshots, but no run */
    bool may_be_paused;
    /* the guardian opens it, only for `rescue` */
    bool rescue_only;
    /* how long a hold waits for a vCPU to stop; 0: the backend's default */
    uint64_t max_pause_ns;
    /*
     * (nullable): flags holds for the guardian, and has the facts of the last hold for `rescue`. It
     * must outlive the guest.
     */
    UprofMarker *marker;
} UprofTarget;

/** UprofGuestFacts: facts that a backend reports about its guest */
typedef struct {
    int pid;              /* of the process that runs the guest; 0: not on this host */
    uint64_t pid_start;   /* start time of that process: see process-stat.h */
    unsigned n_ranges;    /* of RAM */
    uint64_t ram_bytes;   /* sum of the ranges */
    const char *reads;    /* (nullable): how memory is read; literal */
    const char *why_slow; /* (nullable): why memory is not read in a faster way; literal */
} UprofGuestFacts;

/**
 * UprofGuest: the part that all backends share; each backend puts its own members behind it
 *
 * The sampler's thread uses all members but the atomic ones.
 */
struct _UprofGuest {
    const UprofGuestOps *ops;
    const UprofArch *arch; /* set by open */
    UprofMarker *marker;   /* borrowed; NULL: nobody guards this guest */
    unsigned n_vcpus;      /* set by open: highest number of a vCPU + 1; some may be absent */
    UprofGrain grain;      /* set by open: the extent of a hold */
    bool needs_roots;      /* set by open: its registers have no system registers */
    bool slow_reads;       /* a read takes a round trip of milliseconds, not a microsecond */
    /* A hold can only read memory that was read outside of a hold before. */
    bool maps_outside_holds;
    /*
     * The backend measures holds itself, because reading the clock is expensive. If the clock of
     * this process shows at least a millisecond more, its time counts.
     */
    bool measures_holds;
    bool paused;    /* somebody else had stopped the guest when it was opened */
    bool left_held; /* a release failed: the guest may still be stopped */
    bool held;      /* for assertions */
    /* Set between holds: the worker reads during holds, so a hold must not make its reads wait. */
    bool worker_reads;

    gint resets;         /* atomic: resets of the guest since open */
    gint hindrance;      /* atomic: UprofHindrance */
    gint tracer;         /* atomic: process id of the other tracer */
    gint has_late_stops; /* atomic: a vCPU did not stop in time and is still to be released */

    /*
     * If needs_roots: the system registers of all vCPUs, as a search in memory found them. Each
     * vCPU gets them with its registers.
     */
    uint64_t found_sys[UPROF_SYS_MAX];

    uint64_t probe_ns;     /* length of an undisturbed hold, measured by open; 0: not measured */
    uint64_t last_hold_ns; /* if measures_holds: length of the last hold; 0: not measured */
    uint64_t asked_ns;     /* when the backend asked for the last stop; 0: at the call of hold */
    uint64_t released_ns;  /* when the last hold ended */
    uint64_t ticked_ns;    /* monotonic, in a tick: the clock is not earlier; 0: not in a tick */
};

/** UprofGuestOps: a backend. A member is required unless its comment says otherwise. */
struct _UprofGuestOps {
    const char *name; /* as in --access NAME */

    /*
     * Sets arch, n_vcpus and grain. Proves once that the guest can be read; this may take
     * as long as it needs.
     */
    UprofGuest *(*open)(const UprofTarget *target, GError **error);
    void (*close)(UprofGuest *guest);

    /*
     * Optional. Called before each hold, while everything runs. Answers BUSY if somebody else
     * has stopped or moves the guest, GONE if the guest has ended. With grain VCPU also IDLE,
     * SAME, ABSENT and STUCK, about @vcpu. With grain GUEST also IDLE, if all vCPUs are idle.
     * In a tick, a backend may leave this check to its hold.
     */
    UprofAnswer (*vet)(UprofGuest *guest, unsigned vcpu, GError **error);

    /*
     * A backend has both hold and release, or neither if the grain is NONE. @vcpu has a meaning
     * only if the grain is VCPU.
     *
     * If somebody else has stopped the guest, the answer of hold is BUSY, and the guest stays
     * stopped. A release undoes one hold and nothing else, also after GONE.
     *
     * After BUSY, and after a failure with the code DENIED, nothing is stopped. Either the
     * backend made no stop, or it undid the stop, and `take_lost_ns` counts the lost time. A
     * backend that cannot be sure fails with another code. With grain GUEST the guest then counts
     * as stopped, and the guardian's `rescue` resumes it.
     */
    UprofAnswer (*hold)(UprofGuest *guest, unsigned vcpu, GError **error);
    UprofAnswer (*release)(UprofGuest *guest, unsigned vcpu, GError **error);

    /* Absent for recordings. Called in a hold of @vcpu; if the grain is NONE, at any time. */
    UprofAnswer (*read_regs)(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error);

    /* Reads each span completely, or marks it as missing. Missing memory is not an error. */
    void (*read)(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n);

    /*
     * Optional, both or neither, only in a worker: read() in two steps. The caller has other work
     * between them.
     */
    void (*begin_read)(UprofGuest *guest, UprofSpan *spans, unsigned n);
    void (*end_read)(UprofGuest *guest);

    /*
     * Optional. Called about once a second, in a thread that holds nothing, while the sampler
     * goes on. Checks for pauses, jobs, and plugged memory and vCPUs. These change rarely, so
     * that a tick need not check for them.
     */
    void (*poll)(UprofGuest *guest);

    /*
     * Optional. Called in the sampler's thread between holds, while @has_late_stops is set.
     * Releases the vCPUs that did not stop in time and have stopped since.
     */
    void (*release_late)(UprofGuest *guest);

    /*
     * Optional. Called in the sampler's thread between holds. Some stops do not become a hold.
     * Returns an upper bound of the time for which @vcpu stood still in such stops since the last
     * call.
     */
    uint64_t (*take_lost_ns)(UprofGuest *guest, unsigned vcpu);

    /* Optional. For `check` and for the marker. */
    void (*facts)(UprofGuest *guest, UprofGuestFacts *facts);

    /*
     * Optional. For backends whose registers have no page-table roots, but that can translate an
     * address now and then, by the tables of @vcpu and with the rights of the code that it runs.
     * Called in the sampler's thread between holds, so the guest may run. Returns false if @gva is
     * not mapped for this code.
     */
    bool (*ask_translation)(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);

    /* Optional. For backends that translate all addresses themselves. */
    bool (*translate)(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);

    /* Only for recordings: the next snapshot, in place of hold and read_regs. */
    UprofAnswer (*next)(UprofGuest *guest, UprofSnapshot *snapshot, GError **error);

    /*
     * Required unless the grain is NONE. Undoes the one hold that a dead process may have
     * left, and nothing else. @asked: the process may have died while its stop was on its
     * way. Returns true when no hold of this program is left.
     */
    bool (*rescue)(UprofGuest *guest, bool asked, GError **error);
};

/**
 * UprofHold: a hold as a scope: g_auto(UprofHold) hold = { 0 };
 *
 * The hold ends with the scope, however the function returns. If that release fails, the guest's
 * @left_held is set.
 */
typedef struct {
    UprofGuest *guest;         /* borrowed; NULL: nothing is held */
    unsigned vcpu;             /* first held vCPU */
    unsigned n_vcpus;          /* how many are held, from vcpu on */
    uint64_t began_ns;         /* monotonic: time of the request to stop */
    uint64_t stopped_since_ns; /* monotonic: from this time on everything stood still */
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
 * uprof_guest_vet: see `vet` above
 *
 * Returns: %UPROF_OK if the guest, or that vCPU, may be held now
 */
UprofAnswer uprof_guest_vet(UprofGuest *guest, unsigned vcpu, GError **error);

/** uprof_guest_poll: see `poll` above */
void uprof_guest_poll(UprofGuest *guest);

/**
 * uprof_guest_release_late: see `release_late` above
 *
 * Returns: false if some vCPU has still not stopped
 */
bool uprof_guest_release_late(UprofGuest *guest);

/** uprof_guest_take_lost_ns: see `take_lost_ns` above. Returns: 0 if nothing was lost */
uint64_t uprof_guest_take_lost_ns(UprofGuest *guest, unsigned vcpu);

/**
 * uprof_guest_hold:
 * @vcpu: the first vCPU wanted
 * @hold: (out): empty unless the answer is %UPROF_OK. If the grain is NONE, the hold covers all
 *   vCPUs, although nothing stands still.
 *
 * Flags the hold for the guardian before the guest is stopped. If the stop fails with
 * another code than %UPROF_ERROR_DENIED, the guest counts as left held.
 */
UprofAnswer uprof_guest_hold(UprofGuest *guest, unsigned vcpu, UprofHold *hold, GError **error);

/**
 * uprof_hold_release:
 * @hold: (inout): if it is empty, nothing happens; always empty on return
 * @hold_ns: (out) (optional): time since the request to stop
 * @stopped_ns: (out) (optional): how long everything stood still
 *
 * If the release fails, the guest counts as left held, and stays flagged for the guardian.
 */
UprofAnswer
uprof_hold_release(UprofHold *hold, uint64_t *hold_ns, uint64_t *stopped_ns, GError **error);

/** uprof_hold_clear: uprof_hold_release() at the end of a scope */
void uprof_hold_clear(UprofHold *hold);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofHold, uprof_hold_clear)

/** uprof_guest_read_regs: @regs: (out): untouched unless the answer is %UPROF_OK */
UprofAnswer
uprof_guest_read_regs(UprofGuest *guest, unsigned vcpu, UprofRegs *regs, GError **error);

/** uprof_guest_read: reads guest-physical memory; see UprofSpan */
void uprof_guest_read(UprofGuest *guest, UprofLane lane, UprofSpan *spans, unsigned n);

/**
 * uprof_guest_begin_read: begins uprof_guest_read() in a worker
 * @spans: @n of them, at least 1; they and their bytes are borrowed until uprof_guest_end_read(),
 *   and undefined until then
 *
 * One such read may be on its way. Other reads may be made meanwhile.
 */
void uprof_guest_begin_read(UprofGuest *guest, UprofSpan *spans, unsigned n);

/** uprof_guest_end_read: waits for the read that uprof_guest_begin_read() has begun */
void uprof_guest_end_read(UprofGuest *guest);

/** uprof_guest_ask_translation: see `ask_translation` above; @gpa: (out): untouched on failure */
bool uprof_guest_ask_translation(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);

/** uprof_guest_translates: only the backend can translate virtual addresses of this guest */
bool uprof_guest_translates(const UprofGuest *guest);

/**
 * uprof_guest_translate: only if uprof_guest_translates()
 * @gpa: (out): untouched on failure
 *
 * Returns: false if @gva is not mapped
 */
bool uprof_guest_translate(UprofGuest *guest, unsigned vcpu, uint64_t gva, uint64_t *gpa);

/** uprof_guest_next: only for recordings. Returns: %UPROF_GONE after the last snapshot */
UprofAnswer uprof_guest_next(UprofGuest *guest, UprofSnapshot *snapshot, GError **error);

/** uprof_guest_facts: @facts: (out): zero where the backend reports nothing */
void uprof_guest_facts(UprofGuest *guest, UprofGuestFacts *facts);
