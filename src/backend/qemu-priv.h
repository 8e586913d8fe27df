/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-priv.h - the QEMU side that access `direct` and access `monitor` share
 *
 * Both use the libvirt connection, QEMU's monitor through libvirt's passthrough, the QEMU process
 * and the map of guest RAM. No second monitor socket is opened. virt-uprof only queries the
 * monitor, and changes nothing through it.
 */
#pragma once

#include "host-priv.h"

#include "uprof/qemu-mtree.h"
#include "uprof/qmp.h"

enum { UPROF_QEMU_BOUNCE_BYTES = 256 * 1024 };

/** UprofRam: the map of guest RAM; constant once it is in use */
typedef struct {
    unsigned n;
    UprofRamRange ranges[UPROF_RAM_RANGES_MAX];
} UprofRam;

/** UprofQemu: a domain, its connection and its process */
typedef struct {
    char *uri; /* owned; NULL: libvirt's default */
    char uuid[UPROF_MARKER_UUID_BYTES];
    char *name; /* owned; safe to print */
    int id;
    bool is_local;  /* the connection ends on this host */
    bool is_kvm;    /* the guest runs on KVM */
    bool may_panic; /* see UprofTarget */

    GMutex vir_lock;          /* guards the next two members, which a reconnect replaces */
    virConnectPtr connection; /* owned */
    virDomainPtr vir;         /* owned */
    uint64_t lost_ns;         /* monotonic: of the first failure since the last answer; 0: none */
    uint64_t tried_ns;        /* monotonic: of the last reconnect */

    /*
     * Locked during each hold and each slow read of the worker, so that a hold never waits in the
     * daemon for a read. If the worker reads during a hold, the gate is locked only for the stop;
     * the release then waits for at most one read.
     */
    GMutex gate;

    UprofRam *ram;       /* owned; atomic pointer */
    GPtrArray *old_rams; /* owned: earlier maps, which the other lane may still use */

    int pid;                        /* of the QEMU process; 0: not known: see @why_slow */
    uint64_t pid_start;             /* its start time */
    int pidfd;                      /* owned; -1: none */
    GArray *cpus;                   /* owned: UprofQmpCpu, from the last query-cpus-fast */
    bool by_process;                /* guest memory is read by process_vm_readv */
    const char *why_slow;           /* NULL if @by_process; else the reason; literal */
    uint8_t *bounce[UPROF_N_LANES]; /* owned: for peeks that several spans share */
} UprofQemu;

/**
 * uprof_qemu_open:
 *
 * Connects and finds the domain by UUID. Does not register for events of libvirt, because libvirtd
 * 9.0.0 crashes if a client is killed while it registers (the daemon frees the list of callbacks in
 * one thread and extends it in another). The backends poll instead.
 */
UprofQemu *uprof_qemu_open(const UprofTarget *target, GError **error);
void uprof_qemu_close(UprofQemu *qemu);

/** uprof_qemu_attach: finds the process and the RAM, and chooses how to read memory */
bool uprof_qemu_attach(UprofQemu *qemu, unsigned *n_vcpus, GError **error);

/** uprof_qemu_ask_cpus: fills @cpus; call it again when vCPUs were plugged */
bool uprof_qemu_ask_cpus(UprofQemu *qemu, GError **error);

/**
 * uprof_qemu_check_running:
 * @target: if may_be_paused is set, a pause is not an error
 * @paused: (out): somebody has stopped the guest
 *
 * Returns: false with an error that says what to do, if QEMU reports that the guest does not run
 */
bool
uprof_qemu_check_running(UprofQemu *qemu, const UprofTarget *target, bool *paused, GError **error);

/** uprof_qemu_is_paused: a user has paused the guest; false for states such as finish-migrate */
bool uprof_qemu_is_paused(const UprofQmpStatus *status);

/**
 * uprof_qemu_compare_bytes: compares a few bytes of the process with those from libvirt
 * @gpa: guest-physical address; without RAM there, nothing is compared
 *
 * Returns: (nullable): why the process may be the wrong one; a literal
 */
const char *uprof_qemu_compare_bytes(UprofQemu *qemu, uint64_t gpa);

/**
 * uprof_qemu_fail: as uprof_host_fail(), but a refusal names the missing permission
 * @permission: of libvirt's access control, such as "domain:write"
 *
 * Returns: always false
 */
bool
uprof_qemu_fail(const UprofQemu *qemu, const char *permission, const char *what, GError **error);

/** uprof_qemu_vir: Returns: (transfer full): the domain, with a reference */
virDomainPtr uprof_qemu_vir(UprofQemu *qemu);

/**
 * uprof_qemu_ask_human: sends a command of the human monitor
 * @command: without text from outside
 *
 * Returns: (transfer full) (nullable): the reply; end it with free()
 */
char *uprof_qemu_ask_human(UprofQemu *qemu, const char *command, GError **error);

/** uprof_qemu_ask_status: asks QEMU itself whether the vCPUs run */
bool uprof_qemu_ask_status(UprofQemu *qemu, UprofQmpStatus *status, GError **error);

/** uprof_qemu_is_gone: the domain has ended since it was opened */
bool uprof_qemu_is_gone(UprofQemu *qemu);

/** uprof_qemu_has_job: a migration, save, snapshot, dump or backup is going on */
bool uprof_qemu_has_job(UprofQemu *qemu);

/** uprof_qemu_reconnect: tries at most once a second. Returns: false if there is no connection */
bool uprof_qemu_reconnect(UprofQemu *qemu);

/** uprof_qemu_refresh: asks for the map of RAM again; never in a hold */
void uprof_qemu_refresh(UprofQemu *qemu);

/** uprof_qemu_read: the backends' `read` */
void uprof_qemu_read(UprofQemu *qemu, UprofLane lane, UprofSpan *spans, unsigned n);

/** uprof_qemu_read_held: the same, while the caller holds a thread of the process */
void uprof_qemu_read_held(UprofQemu *qemu, UprofSpan *spans, unsigned n);

/**
 * uprof_qemu_ask_translation: asks QEMU to translate an address, with the rights of the code that
 * runs
 * @gpa: (out): untouched on failure
 *
 * Returns: false if @gva is not mapped, or QEMU does not answer
 */
bool uprof_qemu_ask_translation(UprofQemu *qemu, unsigned vcpu, uint64_t gva, uint64_t *gpa);

/** UprofQemuPaging: the paging of one vCPU, by its last registers; all zero: not known */
typedef struct {
    bool is_known;
    bool is_on;
    unsigned vcpu; /* the first vCPU whose registers were read */
} UprofQemuPaging;

/**
 * uprof_qemu_note_paging: counts resets in @guest
 *
 * The boot vCPU turns paging on once. If paging is off again, the guest was reset.
 */
void uprof_qemu_note_paging(UprofGuest *guest, UprofQemuPaging *paging, unsigned vcpu,
                            const UprofRegs *regs);

/** uprof_qemu_facts: the backends' `facts` */
void uprof_qemu_facts(UprofQemu *qemu, UprofGuestFacts *facts);
