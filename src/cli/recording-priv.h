/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recording-priv.h - one domain's part of a run: its files, its session, its end
 */
#pragma once

#include "exit-priv.h"
#include "session-priv.h"
#include "uprof/loop.h"

/**
 * UprofRecording:
 * @session: from uprof_recording_open() on
 * @loop: (nullable): its own, if the guest is held as a whole
 * @is_done: its sampler has ended
 * @code: exit code, the worst so far
 */
typedef struct {
    UprofSession *session;
    UprofLoop *loop;
    GArray *outputs; /* of Output, see recording.c */
    UprofFile *capture;
    UprofWriter *writer;
    GError *capture_error;
    bool table;
    bool is_done;
    bool has_fallen_back;
    uint64_t said_stride; /* of the rate that was said last, 0: none yet */
    gint said_hindrance;
    int code;
} UprofRecording;

/**
 * uprof_recording_open:
 * @domain: (transfer full): taken in every case
 * @time: UTC, for %t in file names
 * @ring: borrowed: where its snapshots will go
 * @wait: for another run's lock, up to a minute
 * @locked: (out): another run samples the domain
 *
 * Opens all outputs, then the guest: what cannot be written costs no guest
 * anything.
 *
 * Returns: (transfer full) (nullable)
 */
UprofRecording *uprof_recording_open(UprofDomain *domain, const UprofOptions *options,
                                     const char *time, UprofGuardian *guardian, UprofRing *ring,
                                     bool wait, bool *locked, GError **error);
void uprof_recording_free(UprofRecording *recording);

/** uprof_recording_start: @shared: the loop of guests that are held vCPU by vCPU */
void uprof_recording_start(UprofRecording *recording, UprofLoop *shared);

/** uprof_recording_take: one snapshot; in the worker */
void uprof_recording_take(UprofRecording *recording, const UprofSnapshot *snapshot);

/** uprof_recording_say_rate: a lowered rate is said when it is known, not when it is over */
void uprof_recording_say_rate(UprofRecording *recording, const UprofSamplerCounts *counts);

/** uprof_recording_say_hindrance: that somebody else keeps the guest from being sampled */
void uprof_recording_say_hindrance(UprofRecording *recording);

/** uprof_recording_end: notes in the run how sampling went; says why it ended early */
void uprof_recording_end(UprofRecording *recording, unsigned n_recordings);

/** uprof_recording_save: the summary, then table, capture and files; sets @code */
void uprof_recording_save(UprofRecording *recording, const UprofOptions *options);
