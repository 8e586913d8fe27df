/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * backend.h - all backends but `xen`, which is a loadable module: xen-module.h
 */
#pragma once

#include "uprof/capture.h"
#include "uprof/guest.h"

/** uprof_direct_ops: stops one vCPU at a time by ptrace; for local guests on KVM */
extern const UprofGuestOps uprof_direct_ops;

/**
 * uprof_direct_obstacle:
 * @code: (out): %UPROF_ERROR_DENIED or %UPROF_ERROR_UNSUPPORTED
 *
 * Returns: (nullable): why this process cannot use access `direct` on this host, for any guest;
 *   literal. %NULL: no obstacle is known
 */
const char *uprof_direct_obstacle(UprofErrorCode *code);

/**
 * uprof_monitor_ops: stops the guest through libvirt, and asks QEMU's monitor; for all QEMU guests
 */
extern const UprofGuestOps uprof_monitor_ops;

/** uprof_replay_ops: a capture file as a guest; the target's @path names the file */
extern const UprofGuestOps uprof_replay_ops;

/**
 * uprof_replay_run:
 * @guest: of uprof_replay_ops
 *
 * Returns: (transfer none): the facts of the recorded run
 */
UprofRun *uprof_replay_run(UprofGuest *guest);

/**
 * uprof_replay_tasks: Returns: the list of the guest's tasks, after the last snapshot; borrowed;
 * empty if the capture has none. See uprof_task_record_parse()
 */
UprofSlice uprof_replay_tasks(UprofGuest *guest);

/** uprof_replay_is_complete: the capture was written to its end, not cut off */
bool uprof_replay_is_complete(UprofGuest *guest);

/**
 * uprof_recorder_new:
 * @guest: borrowed: must outlive the result
 * @writer: borrowed
 *
 * Wraps @guest for the worker, and appends each page that the worker reads to a capture. The
 * result cannot be held and has no registers. The sampler uses @guest itself.
 *
 * Returns: (transfer full): close it with uprof_guest_close()
 */
UprofGuest *uprof_recorder_new(UprofGuest *guest, UprofWriter *writer);

/**
 * uprof_recorder_error: Returns: (nullable) (transfer none): why a page could not be written
 */
const GError *uprof_recorder_error(UprofGuest *guest);
