/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session-snapshots.h - snapshots of all vCPUs at one time, for commands that do not sample
 */
#pragma once

#include "uprof/session.h"

/** UprofSnapshots: snapshots of vCPUs */
typedef struct {
    UprofSnapshot **slots; /* owned; the first @n are filled */
    UprofSnapshot *pool;   /* owned; the snapshots themselves */
    unsigned n;
} UprofSnapshots;

void uprof_snapshots_clear(UprofSnapshots *snapshots);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(UprofSnapshots, uprof_snapshots_clear)

/**
 * uprof_session_take_snapshots:
 * @session: prepared with a worker
 * @snapshots: (out): in any case; to be cleared
 *
 * Holds each vCPU once, or twice if the guest runs Linux: from the first snapshots the worker finds
 * the kernel. With the kernel known, the second ones also contain data such as the running process.
 * A guest that somebody else has paused is read as it is.
 *
 * Returns: %UPROF_ERROR_NONE; another code if it failed, after a notice with the reason
 */
UprofErrorCode uprof_session_take_snapshots(UprofSession *session, UprofSnapshots *snapshots,
                                            const UprofNotices *notices);

/**
 * uprof_session_find_linux:
 * @session: prepared with a worker
 * @snapshots: (out): in any case; to be cleared; without complete stacks
 *
 * Holds each vCPU once, so that the worker finds the kernel of Linux. If there is none and the
 * guest is not paused, holds each vCPU again, up to three times in a second. Tries in which no vCPU
 * runs the kernel, so that none can show where the kernel is, do not count; there are up to sixty
 * of them, in some seconds.
 *
 * Returns: %UPROF_ERROR_NONE, also without a kernel; another code if it failed, after a notice
 */
UprofErrorCode uprof_session_find_linux(UprofSession *session, UprofSnapshots *snapshots,
                                        const UprofNotices *notices);
