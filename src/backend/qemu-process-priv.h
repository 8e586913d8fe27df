/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-process-priv.h - checks whether a process is the QEMU of a domain
 *
 * The number of the process comes from QEMU, through libvirt. It may be wrong: the daemon may run
 * in another PID namespace, QEMU may have ended, or a tenant may have taken over QEMU. A local user
 * can start a process whose command line looks like that of QEMU. So the process must also have the
 * user and the executable of libvirt's QEMU, and descriptors of vCPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** UprofQemuIdentity: the properties that the process must have; all pointers are borrowed */
typedef struct {
    const char *uuid;    /* of the domain */
    const uid_t *users;  /* users that the process may have */
    unsigned n_users;    /* at least 1 */
    bool is_system;      /* of root's daemon, so the executable must belong to root */
    unsigned n_kvm_cpus; /* vCPUs of KVM; 0: the guest is emulated */
} UprofQemuIdentity;

/** UprofQemuProcess: a process that was identified; all zero: none */
typedef struct {
    pid_t pid;
    uint64_t start; /* see process-stat.h */
    int pidfd;      /* owned by the caller; -1: this kernel has none */
    /* (nullable): the check that this user is not permitted to make; a literal. If set, callers
     * must not read the memory of the process, but may wait for its end. */
    const char *why_unproven;
} UprofQemuProcess;

/**
 * uprof_qemu_process_open: checks that the process is the QEMU of a domain
 * @pid: of a process on this host
 * @process: (out): untouched on failure
 *
 * The descriptor is opened before the checks, and the process still runs after them. So all checks
 * saw the same process, and @pid means this process until the descriptor reports its end.
 *
 * Returns: (nullable): why it is another process; a literal; %NULL on success, also if @process is
 *   not proven
 */
const char *
uprof_qemu_process_open(pid_t pid, const UprofQemuIdentity *identity, UprofQemuProcess *process);

/** uprof_qemu_process_has_ended: @pidfd: of a process; -1: unknown, so the answer is false */
bool uprof_qemu_process_has_ended(int pidfd);
