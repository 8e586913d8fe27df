/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-priv.h - what both ways into a QEMU guest need
 *
 * The connection, the monitor through libvirt's passthrough, the QEMU process,
 * the map of guest RAM and reads of it. No second monitor socket is ever
 * opened, and the monitor is only asked: nothing is changed through it.
 */
#pragma once

#include "host-priv.h"

#include "uprof/qemu-mtree.h"
#include "uprof/qmp.h"

enum { UPROF_QEMU_BOUNCE_BYTES = 256 * 1024 };

/** UprofRam: the map of guest RAM; never changed once it is in use */
typedef struct {
    unsigned n;
    UprofRamRange ranges[UPROF_RAM_RANGES_MAX];
} UprofRam;

/**
 * UprofQemu:
 * @vir_lock: of @connection and @vir, which a reconnect replaces
 * @gate: held by a hold, and by each slow read of the worker: so that a hold
 *   never waits in the daemon behind a read
 * @ram: atomic; the maps it had before are in @old_rams, since the other lane
 *   may still be reading by one
 * @pid, @pid_start, @pidfd: of the QEMU process; 0, 0, -1 if it is not on this host
 * @cpus: of UprofQmpCpu: as query-cpus-fast said last
 * @by_process: guest memory is read by process_vm_readv
 * @why_slow: (nullable): why it is not
 */
typedef struct {
    char *uri;
    char uuid[UPROF_MARKER_UUID_BYTES];
    char *name; /* clean */
    int id;
    bool is_local;
    GMutex vir_lock;
    virConnectPtr connection;
    virDomainPtr vir;
    uint64_t lost_ns;
    uint64_t tried_ns;
    GMutex gate;
    UprofRam *ram;
    GPtrArray *old_rams;
    int pid;
    uint64_t pid_start;
    int pidfd;
    GArray *cpus;
    bool by_process;
    const char *why_slow;
    uint8_t *bounce[UPROF_N_LANES];
} UprofQemu;

/**
 * uprof_qemu_open:
 *
 * Connects and finds the domain by UUID. Registers for none of libvirt's events:
 * libvirtd 9.0.0 crashes when a client is killed while it does (the daemon frees
 * the list of callbacks in one thread and extends it in another), and what they
 * would say can be asked.
 */
UprofQemu *uprof_qemu_open(const UprofTarget *target, GError **error);
void uprof_qemu_close(UprofQemu *qemu);

/** uprof_qemu_attach: finds process and RAM, proves how memory is best read */
bool uprof_qemu_attach(UprofQemu *qemu, unsigned *n_vcpus, GError **error);

/** uprof_qemu_ask_cpus: into @cpus; asked again when vCPUs were plugged */
bool uprof_qemu_ask_cpus(UprofQemu *qemu, GError **error);

/**
 * uprof_qemu_check_running:
 * @may_be_paused: then a pause is no error
 * @paused: (out): somebody has stopped it
 *
 * Returns: false with what to do, if the guest does not run by QEMU's own word
 */
bool
uprof_qemu_check_running(UprofQemu *qemu, const UprofTarget *target, bool *paused, GError **error);

/** uprof_qemu_is_paused: Returns: whether the state is nobody's but a user's who paused */
bool uprof_qemu_is_paused(const UprofQmpStatus *status);

/**
 * uprof_qemu_same_bytes:
 * @gpa: guest-physical address
 *
 * Returns: whether the process and libvirt show the same few bytes there; true
 *   too if there is no RAM, or libvirt may not be asked
 */
bool uprof_qemu_same_bytes(UprofQemu *qemu, uint64_t gpa);

/**
 * uprof_qemu_fail: uprof_host_fail(), and where libvirt refused, which permission it wants
 *
 * Returns: false, always
 */
bool
uprof_qemu_fail(const UprofQemu *qemu, const char *permission, const char *what, GError **error);

/** uprof_qemu_vir: Returns: (transfer full): the domain, with a reference */
virDomainPtr uprof_qemu_vir(UprofQemu *qemu);

/** uprof_qemu_ask_human: @command: a literal or numbers. Returns: (transfer full) (nullable): malloc */
char *uprof_qemu_ask_human(UprofQemu *qemu, const char *command, GError **error);

/** uprof_qemu_ask_status: whether the vCPUs run, by QEMU's own word */
bool uprof_qemu_ask_status(UprofQemu *qemu, UprofQmpStatus *status, GError **error);

/** uprof_qemu_is_gone: Returns: whether this running domain has ended */
bool uprof_qemu_is_gone(UprofQemu *qemu);

/** uprof_qemu_has_job: Returns: whether migration, save, snapshot, dump or backup is going on */
bool uprof_qemu_has_job(UprofQemu *qemu);

/** uprof_qemu_reconnect: Returns: whether there is a connection (again); tries once a second */
bool uprof_qemu_reconnect(UprofQemu *qemu);

/** uprof_qemu_refresh: asks again where RAM is; nothing is held */
void uprof_qemu_refresh(UprofQemu *qemu);

/** uprof_qemu_read: the backends' `read` */
void uprof_qemu_read(UprofQemu *qemu, UprofLane lane, UprofSpan *spans, unsigned n);

/** uprof_qemu_read_held: the same from the process, of which a thread is held by the caller */
void uprof_qemu_read_held(UprofQemu *qemu, UprofSpan *spans, unsigned n);

/**
 * UprofQemuPaging: what a vCPU's registers said of paging last
 * @vcpu: the one that is watched: the first that was read
 */
typedef struct {
    bool is_known;
    bool is_on;
    unsigned vcpu;
} UprofQemuPaging;

/**
 * uprof_qemu_note_paging: the boot vCPU turns paging on once; where it is off
 * again the guest was reset, which is counted in @guest
 */
void uprof_qemu_note_paging(UprofGuest *guest, UprofQemuPaging *paging, unsigned vcpu,
                            const UprofRegs *regs);

/** uprof_qemu_facts: the backends' `facts`, as far as they have them in common */
void uprof_qemu_facts(UprofQemu *qemu, UprofGuestFacts *facts);
