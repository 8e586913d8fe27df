/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * backend.h - the backends there are
 *
 * Access `xen` is a module of its own: xen-module.h.
 */
#pragma once

#include "uprof/capture.h"
#include "uprof/guest.h"

/** Stops one vCPU at a time by ptrace; local guests on KVM */
extern const UprofGuestOps uprof_direct_ops;

/**
 * uprof_direct_obstacle:
 * @code: (out): %UPROF_ERROR_DENIED or %UPROF_ERROR_UNSUPPORTED
 *
 * Returns: (nullable): why this process on this host cannot use it, whatever
 *   the guest; literal. %NULL: nothing is known that stands in the way
 */
const char *uprof_direct_obstacle(UprofErrorCode *code);

/** Stops the guest through libvirt, asks QEMU's monitor; works everywhere */
extern const UprofGuestOps uprof_monitor_ops;

/** A capture file, as a guest; @path of the target names it */
extern const UprofGuestOps uprof_replay_ops;

/**
 * uprof_replay_run:
 * @guest: of uprof_replay_ops
 *
 * Returns: (transfer none): the facts of the recorded run; those that are known
 *   only at its end are there once uprof_guest_next() has said %UPROF_GONE
 */
UprofRun *uprof_replay_run(UprofGuest *guest);

/** uprof_replay_is_whole: Returns: whether the capture was ended, not cut off */
bool uprof_replay_is_whole(UprofGuest *guest);

/**
 * uprof_record_new:
 * @guest: borrowed, must outlive what is returned
 * @writer: borrowed
 *
 * A guest that reads what @guest reads and appends each page to a capture: for
 * the worker's memory. It neither holds nor has registers; the sampler goes on
 * with @guest itself.
 *
 * Returns: (transfer full): end it with uprof_guest_close()
 */
UprofGuest *uprof_record_new(UprofGuest *guest, UprofWriter *writer);

/**
 * uprof_record_error: Returns: (nullable) (transfer none): why a page could not be written
 */
const GError *uprof_record_error(UprofGuest *guest);
