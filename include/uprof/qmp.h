/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qmp.h - the QMP commands that virt-uprof sends to QEMU, and their replies
 *
 * Commands are literals and numbers: no text from outside is ever part of a command.
 */
#pragma once

#include "uprof/bytes.h"

#define UPROF_QMP_QUERY_STATUS "{\"execute\":\"query-status\"}"
#define UPROF_QMP_QUERY_CPUS "{\"execute\":\"query-cpus-fast\"}"

/* Translates an address (uint64_t) by the tables of a CPU (unsigned), with the rights of its mode
 */
#define UPROF_QMP_TRANSLATE                                                                        \
    "{\"execute\":\"human-monitor-command\",\"arguments\":{\"command-line\":"                      \
    "\"gva2gpa 0x%" G_GINT64_MODIFIER "x\",\"cpu-index\":%u}}"

enum {
    UPROF_QMP_STATUS_BYTES_MAX = 32,
};

typedef struct {
    bool running;                            /* vCPUs run */
    char status[UPROF_QMP_STATUS_BYTES_MAX]; /* RunState of qapi/run-state.json, like "paused" */
} UprofQmpStatus;

typedef struct {
    uint32_t index; /* QEMU's CPU index */
    int32_t thread; /* id of the thread on QEMU's host; 0: unknown */
} UprofQmpCpu;

/**
 * uprof_qmp_parse_status:
 * @reply: reply to %UPROF_QMP_QUERY_STATUS, as libvirt returns it
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, or %UPROF_ERROR_FAILED with QEMU's
 *   message if the reply is an error
 */
bool uprof_qmp_parse_status(UprofSlice reply, UprofQmpStatus *status, GError **error);

/**
 * uprof_qmp_parse_cpus:
 * @reply: reply to %UPROF_QMP_QUERY_CPUS
 * @cpus: (out) (transfer full): array of UprofQmpCpu, sorted by index
 *
 * Returns: as uprof_qmp_parse_status()
 */
bool uprof_qmp_parse_cpus(UprofSlice reply, GArray **cpus, GError **error);

/**
 * uprof_qmp_parse_translation:
 * @reply: reply to %UPROF_QMP_TRANSLATE
 * @is_mapped: (out): QEMU has found the address
 * @gpa: (out): guest-physical address, if it is mapped
 *
 * Returns: as uprof_qmp_parse_status()
 */
bool uprof_qmp_parse_translation(UprofSlice reply, bool *is_mapped, uint64_t *gpa, GError **error);
