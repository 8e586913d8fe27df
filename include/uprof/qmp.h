/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * qmp.h - the few questions that QEMU is asked in QMP, and its answers
 *
 * Questions are literals: nothing from outside is ever part of a command.
 */
#pragma once

#include "uprof/bytes.h"

#define UPROF_QMP_QUERY_STATUS "{\"execute\":\"query-status\"}"
#define UPROF_QMP_QUERY_CPUS "{\"execute\":\"query-cpus-fast\"}"

enum {
    UPROF_QMP_BYTES_MAX = 4 * 1024 * 1024,
    UPROF_QMP_CPUS_MAX = 4096,
    UPROF_QMP_STATUS_BYTES_MAX = 32,
};

/**
 * UprofQmpStatus:
 * @running: vCPUs run
 * @status: RunState of qapi/run-state.json, such as "paused"; cut if longer
 */
typedef struct {
    bool running;
    char status[UPROF_QMP_STATUS_BYTES_MAX];
} UprofQmpStatus;

/** UprofQmpCpu: @index: QEMU's CPU index; @thread: its thread on QEMU's host, 0: not said */
typedef struct {
    uint32_t index;
    int32_t thread;
} UprofQmpCpu;

/**
 * uprof_qmp_parse_status:
 * @reply: answer to %UPROF_QMP_QUERY_STATUS as libvirt passes it on
 *
 * Returns: false with %UPROF_ERROR_BAD_DATA, or %UPROF_ERROR_FAILED with QEMU's
 *   own words if the reply is an error
 */
bool uprof_qmp_parse_status(UprofSlice reply, UprofQmpStatus *status, GError **error);

/**
 * uprof_qmp_parse_cpus:
 * @reply: answer to %UPROF_QMP_QUERY_CPUS
 * @cpus: (out) (transfer full): array of UprofQmpCpu, sorted by index
 *
 * Returns: as uprof_qmp_parse_status()
 */
bool uprof_qmp_parse_cpus(UprofSlice reply, GArray **cpus, GError **error);
