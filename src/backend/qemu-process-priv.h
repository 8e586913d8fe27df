/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qemu-process-priv.h - is a process the QEMU of a domain?
 *
 * The number of the process comes from QEMU, through libvirt. It may be wrong: the daemon may run
 * in another PID namespace, QEMU may have ended, or a tenant may have taken over QEMU. A local user
 * can start a process whose command line looks like that of QEMU. So the process must also have the
 * user and the executable that libvirt's QEMU has, and the descriptors of its vCPUs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** UprofQemuIdentity: what is known of the process; all pointers are borrowed */
typedef struct {
    const char *uuid;    /* of the domain */
    const uid_t *users;  /* users that the process may have */
    unsigned n_users;    /* at least 1 */
    bool is_system;      /* of root's daemon: then the executable belongs to root */
    unsigned n_kvm_cpus; /* vCPUs of KVM; 0: the guest is emulated */
} UprofQemuIdentity;

/** UprofQemuProcess: a process that was identified; all zero: none */
typedef struct {
    pid_t pid;
    uint64_t start; /* see process-stat.h */
    int pidfd;      /* owned by the caller; -1: this kernel has none */
    /* (nullable): which part of the checks is not permitted to this user; a literal. Then the memory
     * of the process must not be read, but its end can be waited for. */
    const char *why_unproven;
} UprofQemuProcess;

/**
 * uprof_qemu_process_open: checks that the process is the QEMU of a domain
 * @pid: of a process on this host
 * @process: (out): untouched on failure
 *
 * The descriptor is opened before the checks, and the process runs after them. So all checks were
 * of this process, and @pid belongs to it as long as the descriptor says that it runs.
 *
 * Returns: (nullable): why it is not that process; a literal; %NULL on success, also if @process is
 *   not proven
 */
const char *
uprof_qemu_process_open(pid_t pid, const UprofQemuIdentity *identity, UprofQemuProcess *process);

/** uprof_qemu_process_has_ended: @pidfd: of a process; -1: not known, so false */
bool uprof_qemu_process_has_ended(int pidfd);
