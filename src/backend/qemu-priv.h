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
    uint64_t ram_asked_ns;
    int pid;
    uint64_t pid_start;
    int pidfd;
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

/** uprof_qemu_refresh: asks again where RAM is, now and then; nothing is held */
void uprof_qemu_refresh(UprofQemu *qemu);

/** uprof_qemu_read: the backends' `read` */
void uprof_qemu_read(UprofQemu *qemu, UprofLane lane, UprofSpan *spans, unsigned n);
